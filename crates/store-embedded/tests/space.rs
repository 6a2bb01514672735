//! The journal stays short: below three times what is needed of it, and a few segments.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::sync::Arc;

use futures::executor::block_on;
use redrive_core::dice::Dice;
use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::{Draft, When};
use redrive_core::message::{
    Body, ContentType, Dedup, DedupKey, ErrorText, FairnessKey, Headers, MessageId, MessageType, Priority,
    Source, Spec, Uniqueness,
};
use redrive_core::policy::Asked;
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::receipt::Claim;
use redrive_core::time::Timestamp;
use redrive_store::{AckItem, Batch, CreateQueue, EnqueueItem, LeaseRequest, Limit, NackItem, Now, Store};
use redrive_store_embedded::disk::SimulatedDisk;
use redrive_store_embedded::{EmbeddedStore, MachineClock, Options};

const SEGMENT_BYTES: u32 = 64 * 1024;

fn draft(n: u64, visible: When) -> Draft {
    Draft {
        spec: Spec {
            id: MessageId::new(Timestamp::from_millis(n), u128::from(n)),
            body: Body::new(vec![1; 300]).unwrap(),
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
        visible,
        expires: None,
    }
}

#[test]
fn the_journal_is_never_much_longer_than_three_times_what_is_needed() {
    let queue = QueueName::new("work").unwrap();
    let options = Options { segment_bytes: SEGMENT_BYTES, ..Options::default() };
    let disk = Arc::new(SimulatedDisk::new(1));
    let (store, _) = EmbeddedStore::stepped(disk, Arc::new(MachineClock), options).unwrap();
    let request = CreateQueue { name: queue.clone(), config: QueueConfig::default() };
    block_on(store.create_queue(Now::Store, request)).unwrap();
    let mut dice = Dice::seeded(1);
    let mut longest = 0.0f64;
    for n in 0..6_000 {
        // One in ten stays for ever, scattered over everything that goes.
        let visible = if dice.between(0, 9) == 0 { When::At(Timestamp::MAX) } else { When::Now };
        let batch = Batch::one(EnqueueItem { queue: queue.clone(), draft: draft(n, visible) }).unwrap();
        block_on(store.enqueue(Now::Store, batch)).unwrap();
        let request = LeaseRequest::new(queue.clone(), Limit::ONE, ConsumerName::default(), n);
        for message in block_on(store.lease(Now::Store, request)).unwrap().messages {
            let ack = Batch::one(AckItem { claim: Claim::on(&message).unwrap() }).unwrap();
            block_on(store.ack(Now::Store, ack)).unwrap();
        }
        let usage = block_on(store.usage()).unwrap();
        let bound = 3 * usage.live_bytes + 4 * u64::from(SEGMENT_BYTES);
        assert!(usage.total_bytes <= bound, "after {n}: {usage:?}");
        #[expect(clippy::cast_precision_loss, reason = "a ratio for a person")]
        let ratio = usage.total_bytes as f64 / (usage.live_bytes + u64::from(SEGMENT_BYTES)) as f64;
        longest = longest.max(ratio);
    }
    let usage = block_on(store.usage()).unwrap();
    println!("{longest:.2} times what is needed and a segment, at most; {usage:?}");
    assert!(usage.cleaned_segments > 20 && usage.cleaned_bytes > 0, "{usage:?}");
}

#[test]
fn a_batch_that_was_taken_back_keeps_no_segment_for_ever() {
    let queue = QueueName::new("work").unwrap();
    let options = Options { segment_bytes: SEGMENT_BYTES, ..Options::default() };
    let disk = Arc::new(SimulatedDisk::new(1));
    let (store, _) = EmbeddedStore::stepped(disk, Arc::new(MachineClock), options).unwrap();
    let mut config = QueueConfig::default();
    config.retry.max_attempts = Some(None);
    block_on(store.create_queue(Now::Store, CreateQueue { name: queue.clone(), config })).unwrap();
    let put = |n, unique: bool| {
        let mut draft = draft(n, When::Now);
        let key = DedupKey::new("only one").unwrap();
        draft.spec.dedup = unique.then_some(Dedup { key, unique: Uniqueness::UntilDone });
        let batch = Batch::one(EnqueueItem { queue: queue.clone(), draft }).unwrap();
        block_on(store.enqueue(Now::Store, batch)).unwrap();
        let request = LeaseRequest::new(queue.clone(), Limit::ONE, ConsumerName::default(), n);
        Claim::on(&block_on(store.lease(Now::Store, request)).unwrap().messages[0]).unwrap()
    };
    let (held, gone) = (put(0, true), put(1, false));
    let ack = |claim| block_on(store.ack(Now::Store, Batch::one(AckItem { claim }).unwrap())).unwrap();
    ack(gone.clone());
    let nack =
        |claim| NackItem { claim, asked: Asked::Nothing, error: ErrorText::new("failed"), checkpoint: None };
    let both = Batch::all_or_nothing(vec![nack(held), nack(gone)]).unwrap();
    let settled = block_on(store.nack(Now::Store, both, 1)).unwrap();
    assert_eq!(settled.iter().filter(|settled| settled.is_applied()).count(), 0);
    // The message and its key are written anew with every segment that is cleaned.
    for n in 2..3_000 {
        ack(put(n, false));
    }
    assert!(block_on(store.usage()).unwrap().cleaned_segments > 5);
}

#[test]
fn what_was_nacked_in_the_frame_that_cleans_keeps_its_history() {
    let queue = QueueName::new("work").unwrap();
    let options = Options { segment_bytes: SEGMENT_BYTES, ..Options::default() };
    let disk = Arc::new(SimulatedDisk::new(1));
    let (store, _) = EmbeddedStore::stepped(disk, Arc::new(MachineClock), options).unwrap();
    let mut config = QueueConfig::default();
    config.retry.max_attempts = Some(None);
    config.retry.base_delay = Some(redrive_core::time::Millis::ZERO);
    block_on(store.create_queue(Now::Store, CreateQueue { name: queue.clone(), config })).unwrap();
    let item = |n| EnqueueItem { queue: queue.clone(), draft: draft(n, When::Now) };
    block_on(store.enqueue(Now::Store, Batch::each((0..40).map(item).collect()).unwrap())).unwrap();
    for n in 0..3_000 {
        let request = LeaseRequest::new(queue.clone(), Limit::ONE, ConsumerName::default(), n);
        let message = block_on(store.lease(Now::Store, request)).unwrap().messages.remove(0);
        let failed = usize::try_from(message.progress.attempts - 1).unwrap().min(20);
        assert_eq!(message.history.failures.len(), failed, "after {n}");
        let nack = NackItem {
            claim: Claim::on(&message).unwrap(),
            asked: Asked::Nothing,
            error: ErrorText::new(format!("failure {n}")),
            checkpoint: None,
        };
        let judged = block_on(store.nack(Now::Store, Batch::one(nack).unwrap(), n)).unwrap();
        assert!(judged[0].is_applied());
    }
    assert!(block_on(store.usage()).unwrap().cleaned_segments > 5);
}

#[test]
fn without_syncs_a_power_cut_costs_nothing_that_was_on_the_disk_long_before() {
    let queue = QueueName::new("work").unwrap();
    let options = Options {
        segment_bytes: SEGMENT_BYTES,
        durability: redrive_store_embedded::Durability::None,
        ..Options::default()
    };
    for seed in 0..40 {
        let disk = SimulatedDisk::new(seed);
        let opened = EmbeddedStore::stepped(Arc::new(disk.clone()), Arc::new(MachineClock), options.clone());
        let (store, _) = opened.unwrap();
        let request = CreateQueue { name: queue.clone(), config: QueueConfig::default() };
        block_on(store.create_queue(Now::Store, request)).unwrap();
        let put = |n, visible| {
            let batch = Batch::one(EnqueueItem { queue: queue.clone(), draft: draft(n, visible) }).unwrap();
            block_on(store.enqueue(Now::Store, batch)).unwrap();
        };
        put(0, When::At(Timestamp::MAX));
        // Until the segment that has the message was cleaned, and the message lies in the last one.
        let mut n = 0;
        while block_on(store.usage()).unwrap().cleaned_segments == 0 {
            n += 1;
            put(n, When::Now);
            let request = LeaseRequest::new(queue.clone(), Limit::ONE, ConsumerName::default(), n);
            let message = block_on(store.lease(Now::Store, request)).unwrap().messages.remove(0);
            let ack = Batch::one(AckItem { claim: Claim::on(&message).unwrap() }).unwrap();
            block_on(store.ack(Now::Store, ack)).unwrap();
        }
        let cut = disk.crash();
        let shared: Arc<dyn redrive_store_embedded::disk::Disk> = Arc::new(cut.clone());
        redrive_store_embedded::repair(&shared, &options, false).unwrap();
        let opened = EmbeddedStore::stepped(Arc::new(cut.kill()), Arc::new(MachineClock), options.clone());
        let (store, _) = opened.unwrap();
        let id = draft(0, When::Now).spec.id;
        assert!(block_on(store.get(&queue, id)).unwrap().is_some(), "seed {seed}: it is lost");
    }
}
