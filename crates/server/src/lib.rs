//! The server: HTTP over a broker. Each handler decodes, calls the broker once, and encodes.
//!
//! `http` has one file for each kind of thing; `convert` stands between the wire and the domain, and is the only place that
//! reads what came from outside. One mapping says what each error is in HTTP.

mod convert;
pub mod http;
