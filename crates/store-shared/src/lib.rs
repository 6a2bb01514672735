//! What the stores have in common that many instances share.
//!
//! * `joined.rs`: small calls of many callers as one, and what each is told; `together.rs`: how they come together.
//! * `pause.rs`: waiting for a server that is away.

mod joined;
mod pause;
mod together;

pub use joined::{Alone, Joints};
pub use pause::Pauses;
