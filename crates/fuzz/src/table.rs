//! The table of targets.

use crate::Target;
use crate::targets::names;

/// Every target. A row is all that it takes: the tests, the search and libFuzzer go by this table.
pub const TARGETS: &[Target] = &[
    Target::new("queue_name", names::queue_name),
    Target::new("text", names::text_of_a_kind),
    Target::new("topic", names::topic).knowing(&["*", "**", ".*.", ".**.", "\n", "orders", "orders.eu"]),
    Target::new("message_id", names::message_id).knowing(&["urn:uuid:", "{", "}", "-"]),
    Target::new("lease_id", names::lease_id),
    Target::new("receipt", names::receipt),
    Target::new("error_text", names::error_text),
    Target::new("fingerprint", names::fingerprint)
        .knowing(&["'", "\"", "`", "0x", "#", "::", "…", "µs", "don't"]),
];

/// The target of that name.
pub fn named(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
