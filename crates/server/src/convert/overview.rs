//! The server as a whole.

use redrive_broker::{
    Attention, ConsumerSeen, ConsumersSeen, GroupOfQueue, LeaseOfQueue, Overview, QueueRow, Rows,
};
use redrive_core::queue::QueueName;
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::{Millis, Timestamp};
use redrive_wire as wire;

use super::{message, queue, time};

/// The subscription whose queue that is.
fn subscription_of(queue: &QueueName) -> Option<String> {
    SubscriptionId::of_queue(queue).map(str::to_owned)
}

pub(crate) fn overview(overview: &Overview, interval: Millis) -> wire::Overview {
    let Overview { store, .. } = overview;
    wire::Overview {
        at: time(overview.at),
        queues: overview.queues,
        complete: overview.complete,
        states: queue::states(&overview.states),
        overdue: overview.overdue,
        interval_ms: interval.get(),
        samples: overview.samples.iter().map(queue::sample).collect(),
        attention: overview.attention.iter().map(attention).collect(),
        attention_more: overview.attention_more,
        server: wire::ServerView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            store: store.name.to_owned(),
            survives: store.survives.as_str().to_owned(),
            shared: store.shared,
            started_at: time(overview.started_at),
        },
    }
}

fn attention(one: &Attention) -> wire::AttentionView {
    wire::AttentionView {
        kind: one.kind.name().to_owned(),
        severity: one.severity.name().to_owned(),
        detail: one.detail.clone(),
        queue: one.queue.as_ref().map(|queue| queue.as_str().to_owned()),
        subscription: one.subscription.clone(),
        operation: one.operation.map(|id| id.to_string()),
        count: one.count,
        age_ms: one.age.map(Millis::get),
        since: one.since.map(time),
        until: one.until.map(time),
    }
}

pub(crate) fn rows(rows: &Rows, interval: Millis) -> wire::StatsPage {
    wire::StatsPage {
        at: time(rows.at),
        interval_ms: interval.get(),
        rows: rows.rows.iter().map(row).collect(),
        total: rows.total as u64,
        ranked_of: rows.ranked as u64,
        next_cursor: rows.next.as_ref().map(ToString::to_string),
    }
}

fn row(row: &QueueRow) -> wire::QueueRow {
    let QueueRow { stats, rates, wait, run, breaker, depths } = row;
    let name = &stats.queue.name;
    let keys = stats.queue.pauses.keys.values().filter(|pause| pause.holds(stats.at));
    wire::QueueRow {
        queue: name.as_str().to_owned(),
        subscription: subscription_of(name),
        paused: stats.queue.pauses.holds_queue(stats.at),
        pauses_of_keys: keys.count() as u64,
        states: queue::states(&stats.states),
        overdue: stats.overdue,
        oldest_ready_age_ms: stats.oldest_ready.map(|since| stats.at.since(since).get()),
        enqueued_per_s: rates.enqueued,
        acked_per_s: rates.acked,
        failed_per_s: rates.failed,
        failed_share: rates.failed_share,
        wait_p50_ms: wait.map(|times| times.p50.get()),
        wait_p99_ms: wait.map(|times| times.p99.get()),
        run_p50_ms: run.map(|times| times.p50.get()),
        run_p99_ms: run.map(|times| times.p99.get()),
        breaker: breaker.map(|state| state.as_str().to_owned()),
        depth: depths.clone(),
    }
}

pub(crate) fn lease(lease: &LeaseOfQueue, now: Timestamp) -> Option<wire::LeaseRow> {
    let LeaseOfQueue { message: leased, max_attempts } = lease;
    Some(wire::LeaseRow {
        queue: leased.queue.as_str().to_owned(),
        id: leased.id().to_string(),
        r#type: leased.spec.kind.as_str().to_owned(),
        fairness_key: leased.spec.fairness_key.as_str().to_owned(),
        attempts: leased.progress.attempts,
        max_attempts: max_attempts.map(std::num::NonZeroU32::get),
        deliveries: leased.progress.deliveries,
        lease: message::lease(leased.lease()?, now),
    })
}

pub(crate) fn consumers(seen: &ConsumersSeen) -> wire::Consumers {
    let consumers = seen.consumers.iter().map(|one| consumer(one, seen.at)).collect();
    wire::Consumers { at: time(seen.at), consumers, complete: seen.complete }
}

fn consumer(seen: &ConsumerSeen, now: Timestamp) -> wire::ConsumerView {
    wire::ConsumerView {
        consumer: seen.consumer.as_str().to_owned(),
        queues: seen.queues.iter().map(|queue| queue.as_str().to_owned()).collect(),
        held: seen.held,
        overdue: seen.overdue,
        oldest_lease_ms: seen.oldest_lease.map(|since| now.since(since).get()),
        leased: seen.leased,
        acked: seen.acked,
        failed: seen.failed,
        expired: seen.expired,
        released: seen.released,
        acked_per_s: seen.acked_per_s,
        failed_per_s: seen.failed_per_s,
        first_seen: time(seen.first_seen),
        last_seen: time(seen.last_seen),
        here: seen.here,
    }
}

pub(crate) fn group(found: &GroupOfQueue) -> wire::FailureGroupOfQueue {
    let wire::FailureGroupView { fingerprint, sample, messages, first, last, deaths } =
        super::operation::group(found);
    wire::FailureGroupOfQueue {
        queue: found.queue.as_str().to_owned(),
        subscription: subscription_of(&found.queue),
        fingerprint,
        sample,
        messages,
        first,
        last,
        deaths,
    }
}
