//! The server: HTTP and gRPC over a broker. Each handler decodes, calls the broker once, and encodes.
//!
//! [`http`] has one file for each kind of thing, [`grpc`] one for the stream. `convert` stands between the wire and the
//! domain, and is the only place that reads what came from outside. One mapping for each API says what an error is there. `listen` is the
//! port, which a request passes before any of them.

mod convert;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod grpc;
pub mod http;
mod listen;

pub(crate) use listen::Peer;
pub use listen::{ConnectionLimits, Port, PortConfig, PortMetrics, Tls, TlsError};

use axum::http::{Extensions, HeaderMap, header};
use redrive_broker::{BrokerError, Caller, Gate, Shown};

/// Who makes a request, over whichever API.
fn caller(gate: &Gate, headers: &HeaderMap, extensions: &Extensions) -> Result<Caller, BrokerError> {
    let mut shown = headers.get_all(header::AUTHORIZATION).iter();
    let shown = match (shown.next(), shown.next()) {
        (None, _) => Shown::Nothing,
        (Some(header), None) => Shown::Header(header.as_bytes()),
        (Some(_), Some(_)) => Shown::Several,
    };
    let from = extensions.get::<Peer>().map(|peer| peer.0.ip().to_canonical());
    gate.caller(shown, from)
}
