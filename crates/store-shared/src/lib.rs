//! What the stores have in common that many instances share.
//!
//! * `joined.rs`: small calls of many callers as one, and what each is told; `together.rs`: how they come together; `turns.rs`: how many of
//!   them are under way at once.
//! * `pause.rs`: waiting for a server that is away.

mod joined;
mod pause;
mod together;
mod turns;

pub use joined::{Alone, Joints};
pub use pause::Pauses;
