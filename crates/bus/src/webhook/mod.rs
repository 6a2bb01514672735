//! One outgoing webhook request: who may be called, how it is signed, what is made of the answer.
//!
//! A request passes four stations, and nothing of queues or subscriptions is known at any of them:
//!
//! * [`WebhookUrl`] is what a person wrote, checked when it is registered.
//! * [`Guard`] says which addresses may be dialled. It is asked again for every connection, with the very address that is
//!   dialled then, because a name may lead elsewhere by that time.
//! * [`sign`] lets the receiver see who sent it, by the Standard Webhooks specification.
//! * [`Webhooks`] sends it, and turns whatever happens into an [`Answer`].

mod answer;
mod cidr;
mod client;
mod failure;
mod guard;
mod headers;
mod resolve;
mod secret;
mod sign;
mod tls;
mod url;

pub use answer::{Answer, Capture, RETRY_AFTER_MAX, Verdict};
pub use client::{Call, Unusable, WebhookConfig, Webhooks};
pub use guard::{AllowRule, Guard, Refused};
pub use headers::check_header;
pub use resolve::{Lookup, SystemLookup};
pub use secret::SigningSecret;
pub use sign::{Signed, TOLERANCE, Unverified, sign, verify};
pub use url::WebhookUrl;
