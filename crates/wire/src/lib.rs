//! What goes over the wire: the types of the HTTP API, the gRPC API as [`v1`], and nothing that knows how they are served.
//!
//! A field that is here stays here. Names are in snake case, times are RFC 3339 in UTC with milliseconds, spans end in
//! `_ms`, numbers that do not fit a double are strings. What a client sends is refused where it has a field that is
//! not known: a typing error must not pass for a default.

#![expect(
    clippy::allow_attributes_without_reason,
    reason = "what is made from the protos allows a few things"
)]

mod codec;
mod consumer;
mod event;
mod key;
mod lease;
mod maybe;
mod message;
mod object;
mod operation;
mod overview;
mod problem;
mod queue;
mod schedule;
pub mod schema;
mod subscription;
mod time;
mod topic;

#[expect(missing_docs, clippy::pedantic, reason = "made from the proto, which says what is what")]
mod made {
    tonic::include_proto!("redrive.v1");
}

/// The gRPC API, `redrive.v1`.
pub mod v1 {
    pub use super::made::*;

    /// The protos as they were compiled, for reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptor.bin"));
}

pub use codec::{LimitedCodec, LimitedDecoder};
pub use consumer::{ConsumerView, Consumers};
pub use event::{Event, EventPayload};
pub use key::{
    AuditPage, AuditView, CreateKeyRequest, Grant, KeyPage, KeyView, NewKeyView, RotateKeyRequest, WhoAmI,
};
pub use lease::{
    AckRequest, Acked, Batch, BuryRequest, DeliveredMessage, ExtendRequest, Extended, LeasePage,
    LeaseRequest, LeaseResponse, LeaseRow, LeaseView, Leases, NackRequest, Nacked, OperatorExtendRequest,
    OperatorReleaseRequest, ReleaseRequest, Released, RequeueExpiredRequest, Requeued, SettleResult,
    SettleResults,
};
pub use maybe::Maybe;
pub use message::{
    AttemptView, EnqueueBatchRequest, EnqueueResult, EnqueueResults, Enqueued, FilterBody, Imported,
    MessagePage, MessageView, MoveRequest, NewMessage, ObstacleView, RescheduleRequest, WhyView,
};
pub use object::Object;
pub use operation::{
    AllFailureGroups, DiscardRequest, FailureGroupOfQueue, FailureGroupView, FailureGroups, Matched,
    MoveManyRequest, OperationPage, OperationView, PurgeRequest, RedriveRequest,
};
pub use overview::{AttentionView, Overview, QueueRow, ServerTime, ServerView, StatsPage};
pub use problem::{FieldProblem, Problem};
pub use queue::{
    Breaker, BreakerStatus, CreateQueueRequest, History, HistorySample, KeyWeights, PauseRequest, PauseView,
    QueueConfig, QueuePage, QueueStats, QueueView, ResumeRequest, Retention, Retry, RetryStats, StateCounts,
    TypeStats, UpdateQueueRequest,
};
pub use schedule::{RetrySchedule, RetryScheduleRequest, ScheduledRetry};
pub use subscription::{
    AnswerView, BreakerPage, BreakerView, CreateSubscriptionRequest, DeadDeliveryPage, DeadDeliveryView,
    DeliveryAttempt, DeliveryAttempts, DeliverySettings, DisabledView, HeaderFilter, HeaderView,
    NewSubscriptionView, NewTarget, ReplayRequest, ReplayStarted, ReplayView, Replays, ResendRequest, Resent,
    RotateSecretRequest, SentView, SubscriptionPage, SubscriptionView, TargetUpdate, TargetView,
    UpdateSubscriptionRequest,
};
pub use time::Time;
pub use topic::{
    NewEvent, PublishRequest, PublishResult, PublishResults, SetTopicRequest, TopicPage, TopicView,
};
