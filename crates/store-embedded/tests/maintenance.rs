//! verify, repair, backup and restore.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use futures::executor::block_on;
use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::{Draft, When};
use redrive_core::message::{
    Body, ContentType, FairnessKey, Headers, Message, MessageId, MessageType, Priority, Source, Spec, State,
};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::receipt::Claim;
use redrive_core::time::Timestamp;
use redrive_store::{
    AckItem, Batch, CreateQueue, EnqueueItem, EnqueueOutcome, Filter, LeaseRequest, Limit, ListRequest, Now,
    Store, StoreError,
};
use redrive_store_embedded::disk::{Disk, RealDisk, SimulatedDisk};
use redrive_store_embedded::{EmbeddedStore, MachineClock, Options, contents, repair, restore, verify};

fn queue() -> QueueName {
    QueueName::new("work").unwrap()
}

fn options() -> Options {
    Options { segment_bytes: 64 * 1024, ..Options::default() }
}

fn draft(n: u64) -> Draft {
    Draft {
        spec: Spec {
            id: MessageId::new(Timestamp::from_millis(n), u128::from(n)),
            body: Body::new(vec![7; 200]).unwrap(),
            content_type: ContentType::default(),
            headers: Headers::default(),
            kind: MessageType::default(),
            source: Source::default(),
            fairness_key: FairnessKey::default(),
            dedup: None,
            lease_timeout: None,
            max_attempts: None,
        },
        priority: Priority::default(),
        visible: When::Now,
        expires: None,
    }
}

fn create(store: &EmbeddedStore) {
    let request = CreateQueue { name: queue(), config: QueueConfig::default() };
    block_on(store.create_queue(Now::Store, request)).unwrap();
}

fn put(store: &EmbeddedStore, n: u64) -> MessageId {
    let batch = Batch::one(EnqueueItem { queue: queue(), draft: draft(n) }).unwrap();
    match block_on(store.enqueue(Now::Store, batch)).unwrap().remove(0) {
        EnqueueOutcome::Enqueued { id, .. } => id,
        other => panic!("{other:?}"),
    }
}

/// Hands one message out and acks it; answers which.
fn consume(store: &EmbeddedStore) -> Option<MessageId> {
    let request = LeaseRequest::new(queue(), Limit::ONE, ConsumerName::default(), 1);
    let message = block_on(store.lease(Now::Store, request)).unwrap().messages.pop()?;
    let ack = Batch::one(AckItem { claim: Claim::on(&message).unwrap() }).unwrap();
    assert!(block_on(store.ack(Now::Store, ack)).unwrap()[0].is_applied());
    Some(message.id())
}

fn ids(store: &EmbeddedStore) -> BTreeSet<MessageId> {
    let mut ids = BTreeSet::new();
    let mut request = ListRequest::new(queue(), Filter::default());
    loop {
        let page = block_on(store.list(Now::Store, request.clone())).unwrap();
        ids.extend(page.messages.iter().map(Message::id));
        match page.next {
            None => return ids,
            next => request.after = next,
        }
    }
}

#[test]
fn a_backup_under_load_has_everything_that_was_answered_before_it_began() {
    let dirs = tempfile::tempdir().unwrap();
    let disk = |name: &str| -> Arc<dyn Disk> { Arc::new(RealDisk::new(dirs.path().join(name)).unwrap()) };
    let store = EmbeddedStore::open_on(disk("live"), Arc::new(MachineClock), options()).unwrap();
    create(&store);
    let (next, stop) = (AtomicU64::new(1), AtomicBool::new(false));
    // Two sets and not one: a message may be consumed before the thread that put it has noted it.
    let (put_in, gone) = (Mutex::new(BTreeSet::new()), Mutex::new(BTreeSet::new()));
    let backup = disk("backup");
    let (started, begin) = mpsc::sync_channel(64);
    let before = thread::scope(|scope| {
        for _ in 0..4 {
            let started = started.clone();
            let (store, next, stop, put_in, gone) = (&store, &next, &stop, &put_in, &gone);
            scope.spawn(move || {
                for turn in 0.. {
                    if stop.load(Ordering::SeqCst) {
                        break;
                    }
                    let id = put(store, next.fetch_add(1, Ordering::SeqCst));
                    put_in.lock().unwrap().insert(id);
                    if turn % 2 == 0
                        && let Some(consumed) = consume(store)
                    {
                        gone.lock().unwrap().insert(consumed);
                    }
                    if turn == 300 {
                        started.send(()).unwrap();
                    }
                }
            });
        }
        begin.recv().unwrap();
        let before = put_in.lock().unwrap().clone();
        let report = block_on(store.backup(Arc::clone(&backup))).unwrap();
        stop.store(true, Ordering::SeqCst);
        assert!(report.verified.messages > 0, "{report:?}");
        before
    });
    let restored = disk("restored");
    let verified = restore(&backup, restored.as_ref(), &options()).unwrap();
    assert_eq!(verify(&restored, &options()).unwrap(), verified);
    let copy = EmbeddedStore::open_on(restored, Arc::new(MachineClock), options()).unwrap();
    let (copied, gone) = (ids(&copy), gone.into_inner().unwrap());
    // What was put before may have been consumed before, or while the copy was made; what nobody consumed was there
    // all the time.
    let lost: Vec<&MessageId> = before.difference(&gone).filter(|id| !copied.contains(id)).collect();
    assert!(lost.is_empty(), "{} of {} are not in the backup", lost.len(), before.len());
    assert!(consume(&copy).is_some(), "the copy is a store like any other");
}

#[test]
fn a_backup_does_not_write_over_what_is_there() {
    let (store, _) =
        EmbeddedStore::stepped(Arc::new(SimulatedDisk::new(1)), Arc::new(MachineClock), options()).unwrap();
    let target: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(2));
    target.create("something", 8).unwrap();
    let refused = block_on(store.backup(Arc::clone(&target))).unwrap_err();
    assert!(refused.to_string().contains("something"), "{refused}");
}

/// A store with two hundred messages, and the damage that a flipped bit at that share of the journal does.
fn damaged(share: u64) -> (SimulatedDisk, StoreError) {
    let disk = SimulatedDisk::new(3);
    let (store, _) =
        EmbeddedStore::stepped(Arc::new(disk.clone()), Arc::new(MachineClock), options()).unwrap();
    create(&store);
    for n in 1..=200 {
        put(&store, n);
    }
    store.close().unwrap();
    let disk = disk.kill();
    let name = "0000000001.segment";
    let used = 200 * 260;
    disk.flip(name, used * share / 100, 3);
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let error = verify(&shared, &options()).unwrap_err();
    (disk, error)
}

#[test]
fn repair_says_what_is_lost_before_it_drops_anything() {
    let (disk, error) = damaged(50);
    let StoreError::Damaged { location, .. } = &error else { panic!("{error}") };
    assert!(location.contains("0000000001.segment at offset "), "{location}");
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let content = disk.content("0000000001.segment");
    let looked = repair(&shared, &options(), true).unwrap();
    assert!(!looked.done && looked.frames_lost > 50, "{looked:?}");
    assert_eq!(disk.content("0000000001.segment"), content, "a look changes nothing");
    let done = repair(&shared, &options(), false).unwrap();
    assert_eq!((done.frames_lost, done.done), (looked.frames_lost, true));
    drop(shared);
    let disk = disk.kill();
    let (store, _) = EmbeddedStore::stepped(Arc::new(disk), Arc::new(MachineClock), options()).unwrap();
    let kept = ids(&store).len();
    assert!((50..150).contains(&kept), "{kept} messages stood before the damage");
    put(&store, 1_000);
}

#[test]
fn a_whole_directory_needs_no_repair() {
    let disk: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(4));
    drop(EmbeddedStore::stepped(Arc::clone(&disk), Arc::new(MachineClock), options()).unwrap());
    let report = repair(&disk, &options(), false).unwrap();
    assert_eq!((report.cut, report.done, report.frames_lost), (None, false, 0));
}

#[test]
fn what_is_in_a_directory_is_counted_without_changing_it() {
    let disk = SimulatedDisk::new(5);
    let (store, _) =
        EmbeddedStore::stepped(Arc::new(disk.clone()), Arc::new(MachineClock), options()).unwrap();
    create(&store);
    for n in 1..=7 {
        put(&store, n);
    }
    consume(&store).unwrap();
    store.close().unwrap();
    let disk = disk.kill();
    let before = disk.content("0000000001.segment");
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let found = contents(&shared, &options()).unwrap();
    let verified = verify(&shared, &options()).unwrap();
    assert_eq!((found.queues.len(), found.queues[0].states.of(State::Ready)), (1, 6));
    assert_eq!(found.queues[0].queue.name, queue());
    assert_eq!((found.usage.live_bytes, found.entries), (verified.live_bytes, verified.entries));
    assert_eq!(disk.content("0000000001.segment"), before);
}
