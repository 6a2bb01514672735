//! The table of targets.

use crate::Target;
use crate::target::FIXED_BYTES;
use crate::targets::{api, command_line, config, events, journal, json, names, proto, time};

/// Every target. A row is all that it takes: the tests, the search and libFuzzer go by this table.
pub const TARGETS: &[Target] = &[
    Target::new("queue_name", names::queue_name),
    Target::new("text", names::text_of_a_kind),
    Target::new("topic", names::topic).knowing(&["*", "**", ".*.", ".**.", "\n", "orders", "orders.eu"]),
    Target::new("queue_pattern", names::queue_pattern).knowing(&["*", "\n", "orders", ".*", "a*b"]),
    Target::new("cursor", names::cursor).knowing(&[
        ":",
        "orders",
        "0",
        "01987654-3210-7abc-8def-0123456789ab",
    ]),
    Target::new("token", names::token).knowing(&["rdk_", "_", "0123456789abcdef", "AAAA", "="]),
    Target::new("signal", names::signal).knowing(&["1 ", "ready ", "queue ", "entry ", "lock ", "notice "]),
    Target::new("message_id", names::message_id).knowing(&["urn:uuid:", "{", "}", "-"]),
    Target::new("lease_id", names::lease_id),
    Target::new("receipt", names::receipt),
    Target::new("error_text", names::error_text),
    Target::new("fingerprint", names::fingerprint)
        .knowing(&["'", "\"", "`", "0x", "#", "::", "…", "µs", "don't"]),
    Target::new("time", time::time).knowing(&["T", "Z", "+01:00", "[UTC]", ".999"]),
    Target::new("traceparent", time::traceparent).knowing(&["00-", "-01", "ff", "-"]),
    Target::new("json_message", json::message).knowing(JSON),
    Target::new("json_batch", json::batch).knowing(JSON).costing(BATCH_BYTES, 64),
    Target::new("json_import", json::import).knowing(JSON).costing(BATCH_BYTES, MESSAGE_BYTES),
    Target::new("json_lease", json::lease).knowing(JSON),
    Target::new("json_settle", json::settle).knowing(JSON),
    Target::new("json_queue", json::queue_request).knowing(JSON),
    Target::new("json_key", json::key_request).knowing(JSON),
    Target::new("json_operation", json::operation).knowing(JSON),
    Target::new("cloudevent", events::structured).knowing(CLOUDEVENT),
    Target::new("cloudevent_batch", events::batch).knowing(CLOUDEVENT),
    Target::new("cloudevent_binary", events::binary).knowing(&[
        "specversion:1.0\n",
        "type:",
        "source:",
        "id:",
        "%E2",
        "\n\n",
    ]),
    Target::new("webhook_url", events::url)
        .knowing(&["https://", "http://", "@", "[::1]", "127.1", "0x7f", ":443", "%00", "xn--"]),
    Target::new("webhook_rule", events::rule).knowing(&["whsec_", "/8", ":*", "[::1]", "10.0.0.0", "AAAA"]),
    Target::new("http", api::http).knowing(HTTP).costing(SERVER_BYTES, 256),
    Target::new("grpc", api::grpc).costing(GRPC_BYTES, 64),
    Target::new("proto", proto::proto).costing(FIXED_BYTES, PROTO_BYTES),
    Target::new("config_file", config::file)
        .knowing(&["[", "]]", " = ", "\"\"\"", "inf", "1979-05-27"])
        .costing(CONFIG_FIXED_BYTES, CONFIG_BYTES),
    Target::new("config_environment", config::environment).knowing(&[
        "REDRIVE_",
        "\n",
        "=",
        "interval:",
        "::1",
    ]),
    Target::new("span", command_line::span).knowing(&["ms", "s", "m", "h", "d", ".5", "0", "36500d"]),
    Target::new("events", command_line::events)
        .knowing(&["data", "event", "id", "retry", ": ", "\n\n", "\r\n", "\u{feff}"])
        .costing(FIXED_BYTES, EVENT_BYTES),
    Target::new("frame", journal::frame).knowing(&["RDR1"]),
    Target::new("segment_header", journal::segment_header).knowing(&["REDRIVE\n"]),
    Target::new("record", journal::record),
    Target::new("segment", journal::segment).knowing(&["REDRIVE\n", "RDR1"]).costing(STORE_BYTES, 64),
    Target::new("log_segment", journal::log_segment).knowing(&["REDRIVE\n", "RDR1"]).costing(STORE_BYTES, 64),
    Target::new("journal", journal::journal).knowing(&["RDR1"]).costing(STORE_BYTES, 64),
];

/// What events are made of.
const CLOUDEVENT: &[&str] = &[
    "{\"specversion\":\"1.0\",",
    "\"type\":\"t\",",
    "\"source\":\"/s\",",
    "\"id\":\"1\",",
    "\"data\":",
    "\"data_base64\":\"AA==\"",
    "\"datacontenttype\":\"text/plain\",",
    "null",
    "[",
    "]",
    "}",
];

/// What requests are made of.
const HTTP: &[&str] = &[
    "GET ",
    "POST ",
    "PUT ",
    "DELETE ",
    "/v1/queues",
    "/q",
    "/messages",
    "/lease",
    "/leases/",
    "/dead",
    "/redrive",
    "\n====\n",
    "?limit=",
    "&cursor=",
    "?state=",
    ",",
    "%00",
    "%2F",
    "%ff",
    "&",
    "$I",
    "$R",
    "\n\n",
    "Prefer: wait=",
    "If-Match: \"",
    "Idempotency-Key: ",
    "traceparent: ",
    "Last-Event-ID: ",
    "{\"",
    "null",
    "true",
];

/// What the server takes for a request: its buffers, and what it counts and remembers.
const SERVER_BYTES: u64 = 2 * 1024 * 1024;

/// The same where a message is decoded that has as many fields as the codec of the service lets pass.
const GRPC_BYTES: u64 = 16 * 1024 * 1024;

/// What an empty item of a list takes that prost decodes, for each of its two bytes: it is decoded twice, into a list that
/// doubles its room. The codec of the service counts items before it decodes them.
const PROTO_BYTES: u64 = 2_048;

/// What the refusal of a setting takes that is not known: it names all that are.
const CONFIG_FIXED_BYTES: u64 = 4 * FIXED_BYTES;

/// What the parser of TOML takes for a byte: it says much about little that is wrong. The file is the operator's.
const CONFIG_BYTES: u64 = 4_096;

/// What an event takes that says nothing, for each of its six bytes: it is read twice, into lists that double their room.
const EVENT_BYTES: u64 = 512;

/// What JSON is made of, where parsers go wrong; the names of fields are in the corpus.
const JSON: &[&str] = &[
    "null",
    "true",
    "{}",
    "[]",
    "\"\"",
    "\":",
    ",\"",
    "{\"",
    "\"}",
    "[[[[[[[[",
    "{\"a\":",
    "1e999",
    "-0.0",
    "\\u0000",
    "\\ud800",
    "\\ud83d\\ude00",
    "2030-01-31T12:00:00.000Z",
    "9999-12-31T23:59:59.999Z",
    "AAAA",
    "====",
];

/// What a message takes that says nothing, `{}` and a line break: it is read, written, and read again.
const MESSAGE_BYTES: u64 = 4 * 1024;
/// What a batch of them takes: a thousand, and not one more.
const BATCH_BYTES: u64 = 1_000 * MESSAGE_BYTES;

/// What a store takes that is opened, closed and opened again, with nothing in it: buffers and spare segments.
const STORE_BYTES: u64 = 16 * 1024 * 1024;

/// The target of that name.
pub fn named(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
