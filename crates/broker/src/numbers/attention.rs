//! What somebody should look at, and in which order: facts in, a ranked list out. Nothing here asks a store or a clock.
//!
//! One cause is one line. A queue that is paused, or whose breaker is open, has old messages because of that, and the pause
//! or the breaker is what is told; so it is with a subscription that is switched off. Where nobody takes work at all, that is told instead of how old the oldest message is.

use std::collections::BTreeSet;

use redrive_core::policy::BreakerState;
use redrive_core::queue::{Pause, QueueName};
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::{Millis, Timestamp};

use crate::operations::OperationId;

/// Most things that are told; the rest is counted.
pub(super) const ATTENTION_MAX: usize = 100;
/// So many times the interval of the sweeper, a lease that ran out may wait for it.
const OVERDUE_INTERVALS: u64 = 2;
/// Nobody has asked for work for so long, while something was ready for as long: nobody is there.
const NOBODY_FOR: Millis = Millis::from_secs(60);
/// A message that is ready for longer is too old.
const READY_FOR: Millis = Millis::from_secs(5 * 60);
/// A failed operation is told for so long.
const FAILED_FOR: Millis = Millis::from_days(1);

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Work stands still.
    Critical,
    /// Something goes wrong.
    Warning,
    /// Somebody should know.
    Notice,
}

impl Severity {
    /// Every one of them, the worst first.
    pub const ALL: [Self; 3] = [Self::Critical, Self::Warning, Self::Notice];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
            Self::Notice => "notice",
        }
    }
}

/// What is to be looked at; of one severity, the first come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttentionKind {
    /// The store has no room, and refuses messages.
    Storage,
    /// A breaker lets nothing through, or one probe at a time.
    BreakerOpen,
    /// An endpoint does nothing but fail.
    EndpointFailing,
    /// Leases ran out, and nothing ends them.
    Overdue,
    /// Messages are ready, and nobody takes them.
    NoConsumers,
    /// A subscription is switched off.
    SubscriptionDisabled,
    /// The oldest ready message is too old.
    OldestReady,
    /// Messages died.
    DeadRising,
    /// Leases ran out.
    LeasesExpiring,
    /// An operation failed.
    OperationFailed,
    /// A queue is paused.
    Paused,
}

impl AttentionKind {
    /// Every one of them.
    pub const ALL: [Self; 11] = [
        Self::Storage,
        Self::BreakerOpen,
        Self::EndpointFailing,
        Self::Overdue,
        Self::NoConsumers,
        Self::SubscriptionDisabled,
        Self::OldestReady,
        Self::DeadRising,
        Self::LeasesExpiring,
        Self::OperationFailed,
        Self::Paused,
    ];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Storage => "storage",
            Self::BreakerOpen => "breaker_open",
            Self::EndpointFailing => "endpoint_failing",
            Self::Overdue => "overdue",
            Self::NoConsumers => "no_consumers",
            Self::SubscriptionDisabled => "subscription_disabled",
            Self::OldestReady => "oldest_ready",
            Self::DeadRising => "dead_rising",
            Self::LeasesExpiring => "leases_expiring",
            Self::OperationFailed => "operation_failed",
            Self::Paused => "paused",
        }
    }
}

/// Something that somebody should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attention {
    /// What it is.
    pub kind: AttentionKind,
    /// How bad.
    pub severity: Severity,
    /// The same as a sentence.
    pub detail: String,
    /// The queue that it is about.
    pub queue: Option<QueueName>,
    /// The subscription that it is about, or whose queue it is about.
    pub subscription: Option<String>,
    /// The operation that it is about.
    pub operation: Option<OperationId>,
    /// How many messages it is about.
    pub count: Option<u64>,
    /// How old the oldest of them is.
    pub age: Option<Millis>,
    /// Since when it has been so.
    pub since: Option<Timestamp>,
    /// When it ends by itself, or is tried again.
    pub until: Option<Timestamp>,
}

impl Attention {
    fn new(kind: AttentionKind, severity: Severity, detail: String) -> Self {
        let (queue, subscription, operation) = (None, None, None);
        let (count, age, since, until) = (None, None, None, None);
        Self { kind, severity, detail, queue, subscription, operation, count, age, since, until }
    }
}

/// What is known of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueueFacts {
    /// The queue.
    pub(super) queue: QueueName,
    /// Messages that are ready.
    pub(super) ready: u64,
    /// Messages that are delayed.
    pub(super) delayed: u64,
    /// Messages that are with consumers.
    pub(super) leased: u64,
    /// Since when the oldest ready message has been ready.
    pub(super) oldest_ready: Option<Timestamp>,
    /// Leases that have run out and were not ended.
    pub(super) overdue: u64,
    /// When the first of them ran out.
    pub(super) overdue_since: Option<Timestamp>,
    /// The pause that holds the whole queue.
    pub(super) paused: Option<Pause>,
    /// How its breaker stands, and when it next lets a probe through.
    pub(super) breaker: Option<(BreakerState, Option<Timestamp>)>,
    /// When somebody last asked for work here, or this instance started.
    pub(super) asked_at: Timestamp,
    /// Whether somebody waits for work here.
    pub(super) waited_for: bool,
    /// Messages that were handed out in the last minute, where other instances may have done it.
    pub(super) leased_lately: u64,
    /// Messages that died in the last quarter of an hour.
    pub(super) died_lately: u64,
    /// Leases that ran out in the last quarter of an hour.
    pub(super) expired_lately: u64,
}

/// Why a subscription is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disabled {
    /// Its endpoint said that it is gone.
    Gone,
    /// Its endpoint has failed for too long.
    Failing,
    /// An operator did it.
    Operator,
}

/// What is known of a subscription that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionFacts {
    /// The subscription.
    pub id: SubscriptionId,
    /// Since when its endpoint does nothing but fail.
    pub failing_since: Option<Timestamp>,
    /// Why and since when it is switched off.
    pub disabled: Option<(Disabled, Timestamp)>,
}

/// What is known of an operation that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OperationFacts {
    /// The operation.
    pub(super) id: OperationId,
    /// What it does.
    pub(super) what: &'static str,
    /// In which queue.
    pub(super) queue: QueueName,
    /// When it failed.
    pub(super) failed_at: Timestamp,
    /// Why.
    pub(super) problem: String,
}

/// What is known of a store that has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StorageFacts {
    /// Since when messages are refused.
    pub(super) full_since: Timestamp,
}

/// Everything that is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    pub(super) now: Timestamp,
    pub(super) overdue_check_interval: Millis,
    pub(super) queues: Vec<QueueFacts>,
    pub(super) subscriptions: Vec<SubscriptionFacts>,
    pub(super) operations: Vec<OperationFacts>,
    pub(super) storage: Option<StorageFacts>,
}

/// What somebody should look at, the worst first, and how many more there are.
pub(super) fn attention(facts: &Facts) -> (Vec<Attention>, u64) {
    let mut all: Vec<Attention> = Vec::new();
    all.extend(facts.storage.map(|storage| full(facts.now, storage)));
    let off: BTreeSet<&str> =
        facts.subscriptions.iter().filter(|one| one.disabled.is_some()).map(|one| one.id.as_str()).collect();
    for queue in &facts.queues {
        let off = SubscriptionId::of_queue(&queue.queue).is_some_and(|id| off.contains(id));
        of_queue(facts, queue, off, &mut all);
    }
    all.extend(facts.subscriptions.iter().filter_map(|one| of_subscription(facts.now, one)));
    all.extend(facts.operations.iter().filter_map(|one| of_operation(facts.now, one)));
    all.sort_by(|one, other| rank(one).cmp(&rank(other)));
    let more = all.len().saturating_sub(ATTENTION_MAX) as u64;
    all.truncate(ATTENTION_MAX);
    (all, more)
}

/// What comes first: the worse, then the kind, then the larger, then the older, then by name.
fn rank(one: &Attention) -> impl Ord + '_ {
    use std::cmp::Reverse;
    let oldest = one.since.unwrap_or(Timestamp::MAX);
    let name = (one.queue.as_ref().map(QueueName::as_str), one.subscription.as_deref(), one.operation);
    (one.severity, one.kind, Reverse(one.count), Reverse(one.age), oldest, name)
}

fn full(now: Timestamp, storage: StorageFacts) -> Attention {
    let since = storage.full_since;
    let detail = format!("the store has no room: messages have been refused for {}", span(now.since(since)));
    let one = Attention::new(AttentionKind::Storage, Severity::Critical, detail);
    Attention { since: Some(since), ..one }
}

/// The rules about a queue. Where it is that of a subscription that is switched off, nobody is to take anything from it.
fn of_queue(facts: &Facts, queue: &QueueFacts, off: bool, all: &mut Vec<Attention>) {
    let now = facts.now;
    let breaker = breaker_open(queue);
    let paused = paused(queue);
    let held_back = off || breaker.is_some() || paused.is_some();
    let nobody = if held_back { None } else { no_consumers(now, queue) };
    let old = if held_back || nobody.is_some() { None } else { oldest_ready(now, queue) };
    let found = [
        breaker,
        overdue(now, facts.overdue_check_interval, queue),
        nobody,
        old,
        dead_rising(queue),
        leases_expiring(queue),
        paused,
    ];
    all.extend(found.into_iter().flatten().map(|one| Attention {
        subscription: SubscriptionId::of_queue(&queue.queue).map(str::to_owned),
        queue: Some(queue.queue.clone()),
        ..one
    }));
}

fn breaker_open(queue: &QueueFacts) -> Option<Attention> {
    let (state, until) = queue.breaker?;
    let detail = match state {
        BreakerState::Closed => return None,
        BreakerState::Open => "the breaker is open: nothing is handed out until a probe",
        BreakerState::HalfOpen => "the breaker is half-open: one probe at a time is handed out",
    };
    let one = Attention::new(AttentionKind::BreakerOpen, Severity::Critical, detail.to_owned());
    Some(Attention { until, count: Some(queue.ready + queue.delayed), ..one })
}

fn overdue(now: Timestamp, interval: Millis, queue: &QueueFacts) -> Option<Attention> {
    let age = now.since(queue.overdue_since.filter(|_| queue.overdue > 0)?);
    let patience = Millis::new(interval.get().saturating_mul(OVERDUE_INTERVALS));
    if age <= patience {
        return None;
    }
    let count = queue.overdue;
    let detail = format!("{} run out and nothing ends {}, for {}", leases(count), them(count), span(age));
    let one = Attention::new(AttentionKind::Overdue, Severity::Critical, detail);
    Some(Attention { count: Some(count), age: Some(age), since: queue.overdue_since, ..one })
}

fn no_consumers(now: Timestamp, queue: &QueueFacts) -> Option<Attention> {
    let age = now.since(queue.oldest_ready.filter(|_| queue.ready > 0)?);
    let somebody = queue.waited_for || queue.leased > 0 || queue.leased_lately > 0;
    if somebody || age <= NOBODY_FOR || now.since(queue.asked_at) <= NOBODY_FOR {
        return None;
    }
    let detail = format!("nobody takes work: {} ready, the oldest for {}", messages(queue.ready), span(age));
    let one = Attention::new(AttentionKind::NoConsumers, Severity::Critical, detail);
    Some(Attention { count: Some(queue.ready), age: Some(age), since: Some(queue.asked_at), ..one })
}

fn oldest_ready(now: Timestamp, queue: &QueueFacts) -> Option<Attention> {
    let age = now.since(queue.oldest_ready.filter(|_| queue.ready > 0)?);
    if age <= READY_FOR {
        return None;
    }
    let detail = format!("the oldest of {} ready messages has been ready for {}", queue.ready, span(age));
    let one = Attention::new(AttentionKind::OldestReady, Severity::Warning, detail);
    Some(Attention { count: Some(queue.ready), age: Some(age), ..one })
}

fn dead_rising(queue: &QueueFacts) -> Option<Attention> {
    let count = queue.died_lately;
    let detail = || format!("{} died in the last 15 minutes", few(count, "message"));
    let one = || Attention::new(AttentionKind::DeadRising, Severity::Warning, detail());
    (count > 0).then(|| Attention { count: Some(count), ..one() })
}

fn leases_expiring(queue: &QueueFacts) -> Option<Attention> {
    let count = queue.expired_lately;
    let detail = || format!("{} ran out in the last 15 minutes", few(count, "lease"));
    let one = || Attention::new(AttentionKind::LeasesExpiring, Severity::Warning, detail());
    (count > 0).then(|| Attention { count: Some(count), ..one() })
}

fn paused(queue: &QueueFacts) -> Option<Attention> {
    let until = queue.paused?.end();
    let count = queue.ready + queue.delayed;
    let severity = if count > 0 { Severity::Warning } else { Severity::Notice };
    let detail = match count {
        0 => "the queue is paused, and nothing waits in it".to_owned(),
        count => format!("the queue is paused, and {} in it", waits(count)),
    };
    Some(Attention { count: Some(count), until, ..Attention::new(AttentionKind::Paused, severity, detail) })
}

/// The rules about a subscription.
fn of_subscription(now: Timestamp, subscription: &SubscriptionFacts) -> Option<Attention> {
    let one = if let Some((why, since)) = subscription.disabled {
        let (severity, because) = match why {
            Disabled::Gone => (Severity::Warning, "its endpoint said that it is gone"),
            Disabled::Failing => (Severity::Warning, "its endpoint failed for too long"),
            Disabled::Operator => (Severity::Notice, "an operator did it"),
        };
        let detail = format!("the subscription is switched off: {because}");
        let one = Attention::new(AttentionKind::SubscriptionDisabled, severity, detail);
        Attention { since: Some(since), ..one }
    } else {
        let since = subscription.failing_since?;
        let detail = format!("the endpoint does nothing but fail, for {}", span(now.since(since)));
        let one = Attention::new(AttentionKind::EndpointFailing, Severity::Critical, detail);
        Attention { since: Some(since), ..one }
    };
    Some(Attention { subscription: Some(subscription.id.as_str().to_owned()), ..one })
}

/// The rule about an operation.
fn of_operation(now: Timestamp, operation: &OperationFacts) -> Option<Attention> {
    if now.since(operation.failed_at) > FAILED_FOR {
        return None;
    }
    let detail = format!("the {} failed: {}", operation.what, operation.problem);
    let one = Attention::new(AttentionKind::OperationFailed, Severity::Warning, detail);
    Some(Attention {
        queue: Some(operation.queue.clone()),
        operation: Some(operation.id),
        since: Some(operation.failed_at),
        ..one
    })
}

/// A count with its word.
fn few(count: u64, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

fn messages(count: u64) -> String {
    format!("{} {}", few(count, "message"), if count == 1 { "is" } else { "are" })
}

fn leases(count: u64) -> String {
    format!("{} {}", few(count, "lease"), if count == 1 { "has" } else { "have" })
}

const fn them(count: u64) -> &'static str {
    if count == 1 { "it" } else { "them" }
}

fn waits(count: u64) -> String {
    format!("{} {}", few(count, "message"), if count == 1 { "waits" } else { "wait" })
}

/// A span as people say it.
fn span(span: Millis) -> String {
    let seconds = span.get() / 1_000;
    match seconds {
        0..120 => few(seconds, "second"),
        120..7_200 => few(seconds / 60, "minute"),
        7_200..172_800 => few(seconds / 3_600, "hour"),
        _ => few(seconds / 86_400, "day"),
    }
}

#[cfg(test)]
mod tests;
