//! `docs/reference/http.md`, from the description of the API that the server serves.

use std::path::Path;

use serde_json::{Map, Value};

use super::add;

const INTRODUCTION: &str = "\
# HTTP

Made from [openapi.json](../openapi.json) by a test; do not edit. `REDRIVE_BLESS=1` writes it. The server serves the same
description at `/openapi.json`.

* Bodies are JSON. Times are RFC 3339 in UTC, spans are whole milliseconds in fields that end with `_ms`, ids are strings.
* Errors are `application/problem+json`; [errors](errors.md) has the codes.
* Lists are paged: where there is a `next_cursor`, ask again with it as `cursor`.
* `Authorization: Bearer KEY` where the server has API keys.
* Settings of queues, topics and subscriptions carry an `ETag`; `If-Match` guards a change.
";

type Object = Map<String, Value>;

pub(crate) fn make(root: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(root.join("docs/openapi.json")).map_err(|error| error.to_string())?;
    let api: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let mut page = INTRODUCTION.to_owned();
    for tag in api["tags"].as_array().into_iter().flatten() {
        calls(&api, tag, &mut page);
    }
    let empty = Object::new();
    let schemas = api["components"]["schemas"].as_object().unwrap_or(&empty);
    page.push_str("\n## Types\n");
    for (name, schema) in schemas.iter().filter(|(_, schema)| schema["properties"].is_object()) {
        object(name, schema, &mut page);
    }
    page.push_str("\n## Values\n\n| | | |\n|---|---|---|\n");
    for (name, schema) in schemas.iter().filter(|(_, schema)| !schema["properties"].is_object()) {
        line(&mut page, &[&anchored(name), &kind(schema), &words(schema, "description")]);
    }
    Ok(page)
}

/// The calls about one subject.
fn calls(api: &Value, tag: &Value, page: &mut String) {
    let name = tag["name"].as_str().unwrap_or_default();
    add(page, &format!("\n## Calls: {name}\n\n{}.\n\n", words(tag, "description")));
    page.push_str("| call | | takes | answers |\n|---|---|---|---|\n");
    for (path, calls) in api["paths"].as_object().into_iter().flatten() {
        for (method, call) in calls.as_object().into_iter().flatten() {
            if call["tags"][0] == *name {
                let address = format!("`{} {path}`", method.to_uppercase());
                line(page, &[&address, &words(call, "summary"), &takes(call), &answers(call)]);
            }
        }
    }
}

fn takes(call: &Value) -> String {
    let body = call["requestBody"]["content"].as_object().into_iter().flatten();
    let mut takes: Vec<String> = body.map(|(_, content)| kind(&content["schema"])).collect();
    for parameter in call["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default();
        match parameter["in"].as_str() {
            Some("query") => takes.push(format!("`?{name}`")),
            Some("header") => takes.push(format!("header `{name}`")),
            _ => {}
        }
    }
    takes.join(", ")
}

/// What is answered where it goes well. Every call may be refused, and says so in the same form.
fn answers(call: &Value) -> String {
    let fine =
        call["responses"].as_object().into_iter().flatten().filter(|(status, _)| status.starts_with('2'));
    let shown = fine.map(|(status, response)| {
        let content = response["content"].as_object().into_iter().flatten().map(|(_, content)| content);
        let kinds: Vec<String> = content.map(|content| kind(&content["schema"])).collect();
        format!("{status} {}", kinds.join(", ")).trim_end().to_owned()
    });
    shown.collect::<Vec<_>>().join("; ")
}

fn object(name: &str, schema: &Value, page: &mut String) {
    add(page, &format!("\n### {name}\n\n{}\n\n| field | | |\n|---|---|---|\n", words(schema, "description")));
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (field, value) in schema["properties"].as_object().into_iter().flatten() {
        let needed = if required.contains(&field.as_str()) { "" } else { ", optional" };
        line(
            page,
            &[&format!("`{field}`"), &format!("{}{needed}", kind(value)), &words(value, "description")],
        );
    }
}

/// What a value is, in a few words.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(choice) = choices(schema).find(|choice| choice["type"] != "null") {
        return kind(choice);
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> =
            words.iter().map(|word| format!("`{}`", word.as_str().unwrap_or("null"))).collect();
        return words.join(", ");
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        kind => kind.as_str(),
    };
    match kind {
        Some("array") => format!("list of {}", self::kind(&schema["items"])),
        Some("object") if schema["additionalProperties"].is_object() => {
            format!("object of {}", self::kind(&schema["additionalProperties"]))
        }
        Some(kind) => format!("{kind}{}", limits(schema)),
        None => "anything".to_owned(),
    }
}

fn choices(schema: &Value) -> impl Iterator<Item = &Value> {
    ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|word| schema[word].as_array()).flatten()
}

fn limits(schema: &Value) -> String {
    let said = |names: [&str; 2], unit: &str| match names.map(|name| &schema[name]) {
        [Value::Null, Value::Null] => None,
        [Value::Null, most] => Some(format!(" up to {most}{unit}")),
        [Value::Number(least), Value::Null] if least.as_f64() == Some(0.0) => None,
        [least, Value::Null] => Some(format!(" from {least}{unit}")),
        [least, most] => Some(format!(" {least} to {most}{unit}")),
    };
    let number = said(["minimum", "maximum"], "");
    number.or_else(|| said(["minLength", "maxLength"], " characters")).unwrap_or_default()
}

/// A text of the description. What stands beside a reference to a type is about the field.
fn words(value: &Value, name: &str) -> String {
    let own = value[name].as_str();
    let text = own.or_else(|| choices(value).find_map(|choice| choice[name].as_str())).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A name that links lead to.
fn anchored(name: &str) -> String {
    format!("<a id=\"{}\"></a>{name}", name.to_lowercase())
}

fn line(page: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    add(page, &format!("| {} |\n", cells.join(" | ")));
}
