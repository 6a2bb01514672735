//! Webhooks over real sockets: receivers that do what they should, and receivers that do not.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod answers;
mod guarded;
mod hostile;
mod limits;
mod receiver;
mod sender;
mod tls;
