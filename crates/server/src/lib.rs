//! The server: HTTP and gRPC over a broker. Each handler decodes, calls the broker once, and encodes.
//!
//! [`http`] has one file for each kind of thing, [`grpc`] one for the stream. `convert` stands between the wire and the
//! domain, and is the only place that reads what came from outside. One mapping for each API says what an error is there.

mod convert;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod grpc;
pub mod http;
mod listen;

pub use listen::{listen, serve};
