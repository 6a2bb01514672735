//! Few that are leased or dead are found at once, however many wait.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use futures::executor::block_on;
use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::{Draft, When};
use redrive_core::message::{
    Body, ContentType, DeadReason, ErrorText, FairnessKey, Headers, Message, MessageId, MessageType,
    Priority, Source, Spec, State,
};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::receipt::Claim;
use redrive_core::time::Timestamp;
use redrive_store::{
    Batch, BuryItem, CreateQueue, EnqueueItem, Filter, LeaseRequest, Limit, ListRequest, Now, Settled, Store,
};
use redrive_store_embedded::{EmbeddedStore, Options};

/// More than one call looks at.
const WAITING: u64 = 21_000;
/// Those that are handed out first, though they came last.
const URGENT: u64 = 4;

fn item(n: u64) -> EnqueueItem {
    let spec = Spec {
        id: MessageId::new(Timestamp::from_millis(n), u128::from(n)),
        body: Body::new(Vec::new()).unwrap(),
        content_type: ContentType::default(),
        headers: Headers::default(),
        kind: MessageType::default(),
        source: Source::default(),
        fairness_key: FairnessKey::default(),
        dedup: None,
        lease_timeout: None,
        max_attempts: None,
    };
    let priority = if n < WAITING { Priority::default() } else { Priority::MAX };
    let draft = Draft { spec, priority, visible: When::Now, expires: None };
    EnqueueItem { queue: QueueName::new("work").unwrap(), draft }
}

#[test]
fn what_is_leased_or_dead_is_on_the_first_page_behind_many_that_wait() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path().join("store"), Options::default()).unwrap();
    let queue = QueueName::new("work").unwrap();
    let create = CreateQueue { name: queue.clone(), config: QueueConfig::default() };
    block_on(store.create_queue(Now::Store, create)).unwrap();
    let all: Vec<EnqueueItem> = (0..WAITING + URGENT).map(item).collect();
    for some in all.chunks(1_000) {
        block_on(store.enqueue(Now::Store, Batch::each(some.to_vec()).unwrap())).unwrap();
    }
    let limit = Limit::new(usize::try_from(URGENT).unwrap()).unwrap();
    let request = LeaseRequest::new(queue.clone(), limit, ConsumerName::default(), 0);
    let leased = block_on(store.lease(Now::Store, request)).unwrap().messages;
    let bury = |message| BuryItem {
        claim: Claim::on(message).unwrap(),
        reason: DeadReason::Buried,
        error: ErrorText::new("no"),
    };
    let half = leased.len() / 2;
    let buried = Batch::each(leased.iter().take(half).map(bury).collect()).unwrap();
    assert!(block_on(store.bury(Now::Store, buried)).unwrap().iter().all(Settled::is_applied));
    for (state, newest_first) in
        [(State::Leased, false), (State::Leased, true), (State::Dead, false), (State::Dead, true)]
    {
        let list = |after| {
            let request = ListRequest::new(queue.clone(), Filter::state(state));
            let request = ListRequest { after, limit: Limit::ONE, newest_first, ..request };
            block_on(store.list(Now::Store, request)).unwrap()
        };
        let first = list(None);
        let second = list(first.next);
        let mut found: Vec<MessageId> =
            first.messages.iter().chain(&second.messages).map(Message::id).collect();
        assert_eq!((found.len(), second.next), (half, None), "{state:?}");
        assert_eq!(found.is_sorted(), !newest_first, "{state:?}");
        found.sort_unstable();
        let skipped = if state == State::Dead { 0 } else { half };
        let expected: Vec<MessageId> = leased.iter().skip(skipped).take(half).map(Message::id).collect();
        assert_eq!(found, expected, "{state:?}");
    }
}
