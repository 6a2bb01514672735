//! A directory that version 1 of the format wrote opens for ever, and means what it meant.
//!
//! `fixtures/v1` was written by `REDRIVE_BLESS=1 cargo test -p redrive-store-embedded --test format`, once. A change of
//! the format adds a directory beside it; this one is never written again.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::fs;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::{Draft, When};
use redrive_core::message::{
    Body, Checkpoint, ContentType, DeadReason, Dedup, DedupKey, ErrorText, FairnessKey, Headers, Message,
    MessageId, MessageType, Note, Priority, Source, Spec, State, Uniqueness,
};
use redrive_core::policy::{
    Asked, BreakerConfig, Jitter, Multiplier, RetryLane, RetryOverride, Share, Weight,
};
use redrive_core::queue::{Pause, QueueConfig, QueueName, Retention, Weights};
use redrive_core::receipt::Claim;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Append, Batch, BuryItem, CreateQueue, EnqueueItem, EnqueueOutcome, EntryKey, EntryKind,
    EntryName, Expect, ExtendItem, Filter, LeaseRequest, LeaseTarget, Limit, ListRequest, LogRange, NackItem,
    Now, PauseQueue, Selection, Store, Write, Writes,
};
use redrive_store_embedded::disk::{Disk, RealDisk};
use redrive_store_embedded::{Clock, EmbeddedStore, Options, verify};

const NOW: Now = Now::At(Timestamp::from_millis(1_800_000_000_000));

/// A clock that stands still.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000)
    }

    fn uptime(&self) -> Millis {
        Millis::ZERO
    }
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1")
}

fn options() -> Options {
    Options { segment_bytes: 8 * 1024, first_epoch: 7, ..Options::default() }
}

fn open(dir: &Path) -> EmbeddedStore {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(dir).unwrap());
    EmbeddedStore::stepped(disk, Arc::new(Still), options()).unwrap().0
}

fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

fn id(n: u128) -> MessageId {
    MessageId::new(Timestamp::from_millis(1_700_000_000_000), n)
}

fn draft(n: u128) -> Draft {
    Draft {
        spec: Spec {
            id: id(n),
            body: Body::new(format!("body {n}")).unwrap(),
            content_type: ContentType::new("text/plain").unwrap(),
            headers: Headers::new([("name".to_owned(), "välue".to_owned())]).unwrap(),
            kind: MessageType::new("invoice.paid").unwrap(),
            source: Source::new("shop").unwrap(),
            fairness_key: FairnessKey::new("tenant").unwrap(),
            dedup: None,
            lease_timeout: None,
            max_attempts: None,
        },
        priority: Priority::new(7).unwrap(),
        visible: When::Now,
        expires: None,
    }
}

fn put(store: &EmbeddedStore, name: &str, draft: Draft) -> EnqueueOutcome {
    let batch = Batch::one(EnqueueItem { queue: queue(name), draft }).unwrap();
    block_on(store.enqueue(NOW, batch)).unwrap().remove(0)
}

fn unique(n: u128, key: &str, unique: Uniqueness) -> Draft {
    let mut draft = draft(n);
    draft.spec.dedup = Some(Dedup { key: DedupKey::new(key).unwrap(), unique });
    draft
}

fn lease(store: &EmbeddedStore, name: &str) -> Message {
    let request = LeaseRequest::new(queue(name), Limit::ONE, ConsumerName::new("worker").unwrap(), 1);
    block_on(store.lease(NOW, request)).unwrap().messages.remove(0)
}

fn claim(message: &Message) -> Claim {
    Claim::on(message).unwrap()
}

/// Every setting there is.
fn config() -> QueueConfig {
    let kept = Some(Some(Retention { age: Some(Millis::from_days(300)), count: Some(500) }));
    QueueConfig {
        lease_timeout: Some(Millis::from_days(1)),
        max_lease: Some(Millis::from_days(2)),
        max_deliveries: Some(NonZeroU32::new(50)),
        retry_share: Some(Share::new(0.25).unwrap()),
        retry_lane: Some(RetryLane::Shared),
        max_retries_in_flight: Some(NonZeroU32::new(9)),
        overdue_backoff: Some(true),
        breaker: Some(Some(BreakerConfig {
            window: Millis::from_secs(60),
            min_messages: 4,
            failure_share_permille: 500,
            open_for: Millis::from_secs(30),
            probe_timeout: Millis::from_secs(10),
        })),
        dead_letter_to: Some(None),
        retain_done: kept,
        retain_dead: kept,
        dedup_window: Some(Millis::from_days(7)),
        max_waiting: Some(NonZeroU64::new(1_000)),
        weights: Some(
            Weights::new([(FairnessKey::new("tenant").unwrap(), Weight::new(3).unwrap())]).unwrap(),
        ),
        retry: RetryOverride {
            max_attempts: Some(NonZeroU32::new(4)),
            base_delay: Some(Millis::from_secs(60)),
            multiplier: Some(Multiplier::new(1.5).unwrap()),
            max_delay: Some(Some(Millis::from_secs(3_600))),
            jitter: Some(Jitter::None),
        },
    }
}

fn entry(name: &str) -> EntryKey {
    EntryKey { kind: EntryKind::Operation, name: EntryName::new(name).unwrap() }
}

fn write(store: &EmbeddedStore, name: &str, value: Option<&'static [u8]>) {
    let write = Write { key: entry(name), expect: Expect::Anything, value: value.map(Bytes::from_static) };
    block_on(store.registry_write(Writes::new(vec![write]).unwrap())).unwrap();
}

/// Something of everything: every kind of record, bases that were written again, changes that are stale.
fn fill(store: &EmbeddedStore) {
    block_on(store.create_queue(NOW, CreateQueue { name: queue("work"), config: config() })).unwrap();
    let letters = QueueConfig { dead_letter_to: Some(Some(queue("letters"))), ..QueueConfig::default() };
    for (name, config) in
        [("letters", QueueConfig::default()), ("strict", letters), ("gone", QueueConfig::default())]
    {
        block_on(store.create_queue(NOW, CreateQueue { name: queue(name), config })).unwrap();
    }
    put(store, "gone", draft(1));
    let delete = redrive_store::DeleteQueue { name: queue("gone"), force: true };
    block_on(store.delete_queue(NOW, delete)).unwrap();

    put(store, "work", draft(10));
    put(store, "work", Draft { visible: When::At(Timestamp::MAX), ..draft(11) });
    put(store, "work", unique(12, "once", Uniqueness::UntilDone));
    put(store, "work", unique(13, "window", Uniqueness::Window));
    let nacked = lease(store, "work");
    let error = ErrorText::new("connection refused");
    let checkpoint = Some(Checkpoint::new("half way").unwrap());
    let nack = NackItem { claim: claim(&nacked), asked: Asked::Nothing, error: error.clone(), checkpoint };
    block_on(store.nack(NOW, Batch::one(nack).unwrap(), 1)).unwrap();
    let buried = lease(store, "work");
    let bury = |message: &Message| BuryItem {
        claim: claim(message),
        reason: DeadReason::Buried,
        error: error.clone(),
    };
    block_on(store.bury(NOW, Batch::one(bury(&buried)).unwrap())).unwrap();
    let (by, why) = (Note::new("somebody").unwrap(), Note::new("fixed").unwrap());
    let dead = Selection { limit: Limit::ONE, ..Selection::new(queue("work"), Filter::state(State::Dead)) };
    block_on(store.redrive(NOW, dead, by, why)).unwrap();
    let acked = lease(store, "work");
    block_on(store.ack(NOW, Batch::one(AckItem { claim: claim(&acked) }).unwrap())).unwrap();
    put(store, "work", draft(14));
    let held = lease(store, "work");
    let target = LeaseTarget::Claim(claim(&held));
    let extend = ExtendItem {
        target,
        time: Millis::from_days(2),
        checkpoint: Some(Checkpoint::new("on it").unwrap()),
    };
    block_on(store.extend(NOW, Batch::one(extend).unwrap())).unwrap();

    put(store, "strict", draft(20));
    let died = lease(store, "strict");
    block_on(store.bury(NOW, Batch::one(bury(&died)).unwrap())).unwrap();
    put(store, "letters", draft(21));
    let moved = Selection { limit: Limit::ONE, ..Selection::new(queue("letters"), Filter::ids([id(21)])) };
    block_on(store.move_to(NOW, moved, queue("strict"))).unwrap();
    let pause = PauseQueue { name: queue("strict"), key: None, pause: Some(Pause::UntilResumed) };
    block_on(store.pause_queue(NOW, pause)).unwrap();

    write(store, "kept", Some(b"value"));
    write(store, "deleted", Some(b"value"));
    write(store, "deleted", None);
    let log = EntryName::new("audit").unwrap();
    let append =
        |values: &[&'static str]| Append::new(values.iter().map(|v| Bytes::from(*v)).collect()).unwrap();
    block_on(store.log_append(NOW, &log, append(&["one", "two"]))).unwrap();
    let later = Timestamp::from_millis(1_800_000_000_001);
    block_on(store.log_append(later.into(), &log, append(&["three"]))).unwrap();
    block_on(store.log_trim(&log, later)).unwrap();
    churn(store);
}

/// Enough traffic that the first segments are cleaned and go.
fn churn(store: &EmbeddedStore) {
    block_on(store.create_queue(NOW, CreateQueue { name: queue("churn"), config: QueueConfig::default() }))
        .unwrap();
    for n in 0..150 {
        put(store, "churn", draft(1_000 + n));
        let message = lease(store, "churn");
        block_on(store.ack(NOW, Batch::one(AckItem { claim: claim(&message) }).unwrap())).unwrap();
    }
}

fn list(store: &EmbeddedStore, name: &str) -> Vec<Message> {
    block_on(store.list(NOW, ListRequest::new(queue(name), Filter::default()))).unwrap().messages
}

fn message(messages: &[Message], n: u128) -> &Message {
    messages
        .iter()
        .find(|message| message.id() == id(n))
        .unwrap_or_else(|| panic!("message {n} is not there"))
}

fn copy_of_fixture() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in fs::read_dir(fixture()).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), dir.path().join(file.file_name())).unwrap();
    }
    dir
}

#[test]
fn what_version_1_wrote_means_what_it_meant() {
    if std::env::var_os("REDRIVE_BLESS").is_some() && !fixture().exists() {
        let store = open(&fixture());
        fill(&store);
        let usage = block_on(store.usage()).unwrap();
        assert!(usage.cleaned_segments > 2, "bases were written again: {usage:?}");
        store.close().unwrap();
        fs::remove_file(fixture().join("lock")).unwrap();
    }
    let dir = copy_of_fixture();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(dir.path()).unwrap());
    verify(&disk, &options()).unwrap();
    let store = open(dir.path());
    let now = Timestamp::from_millis(1_800_000_000_001);

    let work = list(&store, "work");
    let states: Vec<(MessageId, State)> =
        work.iter().map(|message| (message.id(), message.state(now))).collect();
    let expected = [
        (10, State::Delayed),
        (11, State::Delayed),
        (12, State::Ready),
        (13, State::Done),
        (14, State::Leased),
    ];
    assert_eq!(states, expected.map(|(n, state)| (id(n), state)));

    let nacked = message(&work, 10);
    assert_eq!(nacked.spec.body.bytes().as_ref(), b"body 10");
    assert_eq!(nacked.spec.headers.get("name"), Some("välue"));
    assert_eq!(
        (nacked.progress.attempts, nacked.progress.deliveries, nacked.progress.priority.get()),
        (1, 1, 7)
    );
    assert_eq!(nacked.history.last_error.as_ref().map(ErrorText::as_str), Some("connection refused"));
    assert_eq!(nacked.history.checkpoint.as_ref().map(|c| c.bytes().as_ref()), Some(&b"half way"[..]));
    assert_eq!(message(&work, 11).progress.visible_at, Timestamp::MAX);
    let redriven = message(&work, 12);
    assert_eq!((redriven.progress.attempts, redriven.progress.redrives), (0, 1));
    assert_eq!(
        redriven.history.redriven.as_ref().map(ToString::to_string).as_deref(),
        Some("Retry requested by somebody: fixed")
    );
    assert_eq!(redriven.history.death.map(|death| death.reason), Some(DeadReason::Buried));
    let held = message(&work, 14);
    assert_eq!(held.lease().map(|lease| (lease.id.epoch(), lease.consumer.as_str())), Some((7, "worker")));
    assert_eq!(held.history.checkpoint.as_ref().map(|c| c.bytes().as_ref()), Some(&b"on it"[..]));

    let numbers = block_on(store.stats(NOW, &queue("work"))).unwrap();
    assert_eq!((numbers.totals.died, numbers.totals.retained, numbers.dedup_keys), (1, 1, 2));
    assert_eq!(numbers.queue.config, config());
    assert_eq!(
        put(&store, "work", unique(98, "once", Uniqueness::UntilDone)),
        EnqueueOutcome::Duplicate { id: id(12) }
    );
    assert_eq!(
        put(&store, "work", unique(99, "window", Uniqueness::Window)),
        EnqueueOutcome::Duplicate { id: id(13) }
    );

    let letters = list(&store, "letters");
    assert_eq!(letters.iter().map(Message::id).collect::<Vec<_>>(), [id(20)]);
    assert_eq!(letters[0].origin_queue, Some(queue("strict")));
    let strict = list(&store, "strict");
    assert_eq!((strict[0].id(), strict[0].origin_queue.clone()), (id(21), Some(queue("letters"))));
    assert!(block_on(store.get_queue(&queue("strict"))).unwrap().unwrap().pauses.holds_queue(now));
    assert!(block_on(store.get_queue(&queue("gone"))).unwrap().is_none());

    let kept = block_on(store.registry_get(&entry("kept"))).unwrap().unwrap();
    assert_eq!(kept.value.as_ref(), b"value");
    assert!(block_on(store.registry_get(&entry("deleted"))).unwrap().is_none());
    let log =
        block_on(store.log_read(&EntryName::new("audit").unwrap(), LogRange::After(0), Limit::MAX)).unwrap();
    assert_eq!(
        log.iter().map(|record| (record.sequence, record.value.as_ref())).collect::<Vec<_>>(),
        [(3, &b"three"[..])]
    );

    let acked = block_on(store.ack(NOW, Batch::one(AckItem { claim: claim(held) }).unwrap())).unwrap();
    assert!(acked[0].is_applied(), "a consumer of version 1 can ack after the upgrade");
}

#[test]
fn what_a_later_version_wrote_is_refused_by_name() {
    let dir = copy_of_fixture();
    let segment = dir.path().join("0000000016.segment");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[8] = 2;
    let sum = crc32c::crc32c(&bytes[..60]);
    bytes[60..64].copy_from_slice(&sum.to_le_bytes());
    fs::write(&segment, &bytes).unwrap();
    let refused = EmbeddedStore::open(dir.path(), options()).unwrap_err().to_string();
    assert!(refused.contains("0000000016.segment") && refused.contains("another version"), "{refused}");
    assert_eq!(fs::read(&segment).unwrap(), bytes, "and left as it is");
}
