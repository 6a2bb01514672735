//! What went wrong, as RFC 9457 writes it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::schema;

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A stable address of the kind of problem.
    pub r#type: String,
    /// The kind of problem, for people.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The stable word for the kind of problem, for programs.
    pub code: String,
    /// This problem, for people.
    pub detail: String,
    /// What a program can do: `retry` the same call later, `ask` what happened before repeating it, or `give_up`.
    #[schema(value_type = schema::Advice)]
    pub advice: String,
    /// Which fields are wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldProblem>,
    /// How long to wait before a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// A field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldProblem {
    /// Where: a JSON pointer into the body, or the name of a parameter.
    pub pointer: String,
    /// What is wrong.
    pub detail: String,
}
