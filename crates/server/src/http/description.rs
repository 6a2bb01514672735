//! The description of the API, as far as the attributes of the handlers do not say it.

use utoipa::Modify;
use utoipa::openapi::path::{Operation, ParameterIn, PathItem};
use utoipa::openapi::schema::{SchemaType, Type};
use utoipa::openapi::{OpenApi, RefOr, Schema};

/// What may be left out is not `null`. An `Option` is described as either, which is true of a field; but a header has no
/// `null`, and a body that is `null` is refused.
pub(super) struct LeftOut;

impl Modify for LeftOut {
    fn modify(&self, document: &mut OpenApi) {
        for operation in document.paths.paths.values_mut().flat_map(operations) {
            for parameter in operation.parameters.iter_mut().flatten() {
                if let RefOr::T(parameter) = parameter
                    && parameter.parameter_in == ParameterIn::Header
                {
                    parameter.schema = parameter.schema.take().map(without_null);
                }
            }
            if let Some(RefOr::T(body)) = &mut operation.request_body {
                for content in body.content.values_mut() {
                    if let RefOr::T(content) = content {
                        content.schema = content.schema.take().map(without_null);
                    }
                }
            }
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().flatten()
}

fn without_null(schema: RefOr<Schema>) -> RefOr<Schema> {
    match schema {
        RefOr::T(Schema::OneOf(mut choice)) => {
            choice.items.retain(|item| !is_null(item));
            match choice.items.pop() {
                Some(only) if choice.items.is_empty() => only,
                last => {
                    choice.items.extend(last);
                    RefOr::T(Schema::OneOf(choice))
                }
            }
        }
        RefOr::T(Schema::Object(mut object)) => {
            if let SchemaType::Array(types) = &mut object.schema_type {
                types.retain(|kind| *kind != Type::Null);
                if let [only] = types.as_slice() {
                    object.schema_type = SchemaType::Type(only.clone());
                }
            }
            RefOr::T(Schema::Object(object))
        }
        other => other,
    }
}

fn is_null(schema: &RefOr<Schema>) -> bool {
    matches!(schema, RefOr::T(Schema::Object(object)) if object.schema_type == SchemaType::Type(Type::Null))
}

#[cfg(test)]
mod tests;
