//! The event bus: topics, subscriptions, and what brings events to them.
//!
//! A [`Bus`] stands over a broker. [`publish`](Bus::publish) finds who wants an event (`trie`, `view`) and enqueues it for all
//! of them in one step, each into the queue of its subscription: from there on an event is a message like any other, and
//! retries, breakers, dead letters and redrives are those of queues. `dispatch` takes it out again and brings it to its
//! target: a handler in this process, a [`webhook`], or nobody, where the target is a queue that others consume.
//!
//! `manage` creates, changes and deletes; [`Subscription`] and [`TopicSettings`] are what it keeps, `record` is how. `relay`
//! does what one step cannot: it fans out to very many, and replays what a topic retained (`retain`). `resend` brings one event
//! once more. [`cloudevents`] reads and writes events as others know them.
//!
//! APIs reach the bus through a [`BusGate`], as they reach the broker through a gate.

mod access;
mod bus;
pub mod cloudevents;
mod config;
mod dead;
mod deliveries;
mod dispatch;
mod error;
mod event;
mod health;
mod manage;
mod metrics;
mod own_queue;
mod publish;
mod record;
mod relay;
mod resend;
mod retain;
mod subscription;
mod time;
mod topic;
mod trie;
mod view;
pub mod webhook;

pub use access::BusGate;
pub use bus::{Bus, BusBackground};
pub use config::BusConfig;
pub use dead::{DeadCursor, DeadDelivery};
pub use deliveries::{Attempt, Outcome};
pub use dispatch::{Handler, HandlerFailure, Incoming};
pub use error::BusError;
pub use event::{Event, EventType, NewEvent};
pub use manage::{Created, EndpointSettings, NewSubscription, NewTarget, SubscriptionChange};
pub use publish::Published;
pub use relay::ReplayProgress;
pub use resend::Resent;
pub use subscription::{
    Endpoint, Format, HeaderFilter, LiveSecret, State, Subscription, SubscriptionSettings, Target,
    WhyDisabled,
};
pub use topic::{Dispatch, TopicConfig, TopicSettings};
pub use trie::Trie;
