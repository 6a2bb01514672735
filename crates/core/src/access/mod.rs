//! Who may do what: API keys, what they grant, and what each act asks for.
//!
//! A key holds grants, each a [`Scope`] over the queues that a [`QueuePattern`] chooses. Every act is a [`Use`] or a
//! [`Deed`], and says which scopes allow it; [`Grants::allow`] is the only place where the two meet. What no grant
//! allows is refused.

mod grant;
mod pattern;
mod right;
mod scope;
mod token;

pub use grant::{Grant, Grants, On};
pub use pattern::QueuePattern;
pub use right::{Deed, Right, Use};
pub use scope::Scope;
pub use token::{KeyId, KeyName, NotAToken, Secret, SecretHash, Token};
