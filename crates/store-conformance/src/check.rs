//! What must be true of every store at every moment, whatever happened: checked by counting everything twice.

use std::collections::BTreeMap;

use redrive_core::message::{Lane, Message, State};
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{CountBy, CountRow, Filter, Limit, ListRequest, Now, Store};

/// Panics unless every queue adds up: each message is in exactly one state and in exactly the places that state
/// needs, counters agree with a recount, and what came in is there or went out.
pub(crate) async fn audit(store: &dyn Store, now: Timestamp) {
    for queue in store.list_queues(None, Limit::MAX).await.expect("the store answers") {
        audit_queue(store, now, &queue.name).await;
    }
}

async fn audit_queue(store: &dyn Store, now: Timestamp, queue: &QueueName) {
    let all = list(store, now, queue, Filter::default()).await;
    let stats = store.stats(Now::At(now), queue).await.expect("the store answers");
    for state in State::ALL {
        let here: Vec<_> =
            all.iter().filter(|message| message.state(now) == state).map(Message::id).collect();
        let listed = list(store, now, queue, Filter::state(state)).await;
        let listed: Vec<_> = listed.iter().map(Message::id).collect();
        assert_eq!(
            listed, here,
            "{queue}: the list of {state} messages is another than the messages that are {state}"
        );
        assert_eq!(
            stats.states.of(state),
            here.len() as u64,
            "{queue}: the count of {state} messages is off"
        );
    }
    let expected = stats.totals.expected_present();
    assert_eq!(
        expected,
        Some(all.len() as u64),
        "{queue}: what came in is not what is there and what went out"
    );
    assert_eq!(
        stats.overdue,
        count(&all, |m| m.lease().is_some_and(|lease| lease.is_overdue(now))),
        "{queue}: overdue"
    );
    let retries = count(&all, |m| m.lease().is_some() && m.progress.lane() == Lane::Retry);
    assert_eq!(stats.retries_in_flight, retries, "{queue}: retries in flight");
    let ready = all.iter().filter(|message| message.state(now) == State::Ready);
    assert_eq!(
        stats.oldest_ready,
        ready.map(|message| message.progress.visible_at).min(),
        "{queue}: oldest ready"
    );
    audit_counts(store, now, queue, &all).await;
    for message in &all {
        assert_eq!(message.queue, *queue, "a message is listed in a queue that it is not in");
        let same = store.get(queue, message.id()).await.expect("the store answers");
        assert_eq!(same.as_ref(), Some(message), "get and list disagree");
    }
}

async fn audit_counts(store: &dyn Store, now: Timestamp, queue: &QueueName, all: &[Message]) {
    let by = CountBy { kind: true, source: true, key: true };
    let counts = store.count(Now::At(now), queue, by, Limit::MAX).await.expect("the store answers");
    assert!(!counts.truncated, "{queue}: fewer rows than the limit");
    let mut recount: BTreeMap<CountRow, u64> = BTreeMap::new();
    for message in all {
        let row = CountRow {
            state: message.state(now),
            kind: Some(message.spec.kind.clone()),
            source: Some(message.spec.source.clone()),
            key: Some(message.spec.fairness_key.clone()),
            messages: 0,
        };
        *recount.entry(row).or_default() += 1;
    }
    let counted: BTreeMap<CountRow, u64> =
        counts.rows.into_iter().map(|row| (CountRow { messages: 0, ..row.clone() }, row.messages)).collect();
    assert_eq!(counted, recount, "{queue}: counts by state, type, source and key are off");
}

fn count(messages: &[Message], which: impl Fn(&Message) -> bool) -> u64 {
    messages.iter().filter(|message| which(message)).count() as u64
}

/// Every message of a queue that matches, over as many pages as it takes.
pub(crate) async fn list(
    store: &dyn Store,
    now: Timestamp,
    queue: &QueueName,
    filter: Filter,
) -> Vec<Message> {
    let mut request = ListRequest::new(queue.clone(), filter);
    let mut all = Vec::new();
    loop {
        let page = store.list(Now::At(now), request.clone()).await.expect("the store answers");
        all.extend(page.messages);
        match page.next {
            Some(next) => request.after = Some(next),
            None => return all,
        }
    }
}
