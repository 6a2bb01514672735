//! The server: HTTP and gRPC over a broker. Each handler decodes, calls the broker once, and encodes.
//!
//! [`http`] has one file for each kind of thing, [`grpc`] one for the stream. `convert` stands between the wire and the
//! domain, and is the only place that reads what came from outside. One mapping for each API says what an error is there. `listen` is the
//! port, which a request passes before any of them. `dashboard` is the page, where the feature `ui` is on; it and the API lie
//! below a [`BasePath`].

mod base_path;
mod convert;
mod dashboard;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod grpc;
pub mod http;
mod listen;

pub use base_path::{BasePath, InvalidBasePath};
pub(crate) use listen::Peer;
pub use listen::{ConnectionLimits, Port, PortConfig, PortMetrics, Tls, TlsError};

use std::net::IpAddr;

use axum::http::{Extensions, HeaderMap, header};
use redrive_broker::{BrokerError, Caller, Gate, Shown, Watcher};

/// Who makes a request, over whichever API.
fn caller(gate: &Gate, headers: &HeaderMap, extensions: &Extensions) -> Result<Caller, BrokerError> {
    gate.caller(shown(headers), from(extensions))
}

/// The same for who wants to be told what happens.
fn watcher(gate: &Gate, headers: &HeaderMap, extensions: &Extensions) -> Result<Watcher, BrokerError> {
    gate.watcher(shown(headers), from(extensions))
}

/// What a request shows to be let in.
fn shown(headers: &HeaderMap) -> Shown<'_> {
    let mut shown = headers.get_all(header::AUTHORIZATION).iter();
    match (shown.next(), shown.next()) {
        (None, _) => Shown::Nothing,
        (Some(header), None) => Shown::Header(header.as_bytes()),
        (Some(_), Some(_)) => Shown::Several,
    }
}

/// From where a request came.
fn from(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<Peer>().map(|peer| peer.0.ip().to_canonical())
}
