//! What can be done, and which scopes allow it.

use super::scope::Scope;

/// Something that asks for a scope.
pub trait Right: Copy {
    /// The word in refusals and in the audit trail.
    fn name(self) -> &'static str;

    /// The scope that it asks for; `None` is any of them.
    fn scope(self) -> Option<Scope>;
}

/// Daily use. It is written down only where it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Use {
    /// To see a queue's settings and numbers. Whoever may do anything with a queue may see that.
    Look,
    /// To see messages, their bodies and their errors.
    Inspect,
    /// To be told what happens.
    Watch,
    /// To see the numbers of the server.
    Measure,
    /// To enqueue.
    Enqueue,
    /// To publish events on a topic.
    Publish,
    /// To subscribe to topics: whoever does sees their events.
    Subscribe,
    /// To lease.
    Lease,
    /// To settle what was leased.
    Settle,
    /// To see the keys.
    ListKeys,
    /// To read the audit trail.
    ReadAudit,
}

impl Right for Use {
    fn name(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Inspect => "inspect",
            Self::Watch => "watch",
            Self::Measure => "measure",
            Self::Enqueue => "enqueue",
            Self::Publish => "publish",
            Self::Subscribe => "subscribe",
            Self::Lease => "lease",
            Self::Settle => "settle",
            Self::ListKeys => "list_keys",
            Self::ReadAudit => "read_audit",
        }
    }

    fn scope(self) -> Option<Scope> {
        match self {
            Self::Look => None,
            Self::Inspect | Self::Watch | Self::Measure | Self::Subscribe => Some(Scope::Read),
            Self::Enqueue | Self::Publish => Some(Scope::Produce),
            Self::Lease | Self::Settle => Some(Scope::Consume),
            Self::ListKeys | Self::ReadAudit => Some(Scope::Admin),
        }
    }
}

/// What an operator does. Each is written down in the audit trail, with what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deed {
    /// A queue comes into being.
    CreateQueue,
    /// Its configuration is set.
    UpdateQueue,
    /// It goes.
    DeleteQueue,
    /// It, or a key of it, is paused.
    PauseQueue,
    /// It, or a key of it, goes on.
    ResumeQueue,
    /// The weights of its keys are set.
    SetWeights,
    /// Everything in it is discarded.
    PurgeQueue,
    /// Its breaker is opened.
    TripBreaker,
    /// Its breaker is closed.
    ResetBreaker,
    /// Messages are discarded.
    DiscardMessages,
    /// A message gets another time or priority.
    RescheduleMessage,
    /// Messages go to another queue.
    MoveMessages,
    /// Messages are written out, bodies and all.
    ExportMessages,
    /// Dead messages come back.
    Redrive,
    /// Dead messages are discarded.
    DiscardDead,
    /// Somebody's lease is extended.
    ExtendLease,
    /// Somebody's lease is taken away.
    ReleaseLease,
    /// Overdue leases are ended.
    RequeueExpired,
    /// An operation is paused.
    PauseOperation,
    /// An operation goes on.
    ResumeOperation,
    /// An operation is ended.
    CancelOperation,
    /// It is set how events of some topics are dispatched and kept.
    SetTopic,
    /// That is forgotten.
    DeleteTopic,
    /// A subscription comes into being.
    CreateSubscription,
    /// What is set of it changes.
    UpdateSubscription,
    /// It goes.
    DeleteSubscription,
    /// Its events wait.
    PauseSubscription,
    /// They go on.
    ResumeSubscription,
    /// It is switched off.
    DisableSubscription,
    /// It is switched on again.
    EnableSubscription,
    /// Its webhook gets another secret.
    RotateSecret,
    /// Events of the past are brought to it.
    Replay,
    /// That is ended.
    CancelReplay,
    /// One event is brought to it once more.
    Resend,
    /// A key comes into being.
    CreateKey,
    /// A key gets another secret.
    RotateKey,
    /// A key is revoked.
    RevokeKey,
}

impl Deed {
    /// Every deed.
    pub const ALL: [Self; 37] = [
        Self::CreateQueue,
        Self::UpdateQueue,
        Self::DeleteQueue,
        Self::PauseQueue,
        Self::ResumeQueue,
        Self::SetWeights,
        Self::PurgeQueue,
        Self::TripBreaker,
        Self::ResetBreaker,
        Self::DiscardMessages,
        Self::RescheduleMessage,
        Self::MoveMessages,
        Self::ExportMessages,
        Self::Redrive,
        Self::DiscardDead,
        Self::ExtendLease,
        Self::ReleaseLease,
        Self::RequeueExpired,
        Self::PauseOperation,
        Self::ResumeOperation,
        Self::CancelOperation,
        Self::SetTopic,
        Self::DeleteTopic,
        Self::CreateSubscription,
        Self::UpdateSubscription,
        Self::DeleteSubscription,
        Self::PauseSubscription,
        Self::ResumeSubscription,
        Self::DisableSubscription,
        Self::EnableSubscription,
        Self::RotateSecret,
        Self::Replay,
        Self::CancelReplay,
        Self::Resend,
        Self::CreateKey,
        Self::RotateKey,
        Self::RevokeKey,
    ];
}

impl Right for Deed {
    fn name(self) -> &'static str {
        match self {
            Self::CreateQueue => "create_queue",
            Self::UpdateQueue => "update_queue",
            Self::DeleteQueue => "delete_queue",
            Self::PauseQueue => "pause_queue",
            Self::ResumeQueue => "resume_queue",
            Self::SetWeights => "set_weights",
            Self::PurgeQueue => "purge_queue",
            Self::TripBreaker => "trip_breaker",
            Self::ResetBreaker => "reset_breaker",
            Self::DiscardMessages => "discard_messages",
            Self::RescheduleMessage => "reschedule_message",
            Self::MoveMessages => "move_messages",
            Self::ExportMessages => "export_messages",
            Self::Redrive => "redrive",
            Self::DiscardDead => "discard_dead",
            Self::ExtendLease => "extend_lease",
            Self::ReleaseLease => "release_lease",
            Self::RequeueExpired => "requeue_expired",
            Self::PauseOperation => "pause_operation",
            Self::ResumeOperation => "resume_operation",
            Self::CancelOperation => "cancel_operation",
            Self::SetTopic => "set_topic",
            Self::DeleteTopic => "delete_topic",
            Self::CreateSubscription => "create_subscription",
            Self::UpdateSubscription => "update_subscription",
            Self::DeleteSubscription => "delete_subscription",
            Self::PauseSubscription => "pause_subscription",
            Self::ResumeSubscription => "resume_subscription",
            Self::DisableSubscription => "disable_subscription",
            Self::EnableSubscription => "enable_subscription",
            Self::RotateSecret => "rotate_secret",
            Self::Replay => "replay",
            Self::CancelReplay => "cancel_replay",
            Self::Resend => "resend",
            Self::CreateKey => "create_key",
            Self::RotateKey => "rotate_key",
            Self::RevokeKey => "revoke_key",
        }
    }

    fn scope(self) -> Option<Scope> {
        match self {
            Self::CreateKey | Self::RotateKey | Self::RevokeKey => Some(Scope::Admin),
            // To read all of a queue at once is worth a line in the trail, but asks for no more than to read it.
            Self::ExportMessages => Some(Scope::Read),
            _ => Some(Scope::Manage),
        }
    }
}
