//! One sweeper at a time, whoever holds the lock.

use redrive_broker::Delivery;
use redrive_core::queue::QueueConfig;
use redrive_core::receipt::ReceiptKey;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{Entry, EntryKey, EntryKind, EntryName, Store};
use redrive_store_memory::{MemoryStore, Options};
use std::sync::Arc;

use redrive_broker::{Broker, BrokerConfig, ManualClock};

use super::door::{Door, EVERYTHING};
use super::{Resident, Town, settle};
use crate::world::retry;

/// How often somebody looks.
const INTERVAL: Millis = Millis::from_secs(5);
/// So often within the life of a lock.
const LIFETIME: usize = 6;

/// Time passes, and all who look now and then do.
async fn look(town: &Town, times: usize) {
    for _ in 0..times {
        town.advance(INTERVAL).await;
    }
}

async fn lock(town: &Town) -> Option<Entry> {
    let name = EntryName::new("sweep.expire").unwrap();
    town.store.registry_get(&EntryKey { kind: EntryKind::Lock, name }).await.unwrap()
}

/// Which instance a lock names.
async fn holder(town: &Town) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(&lock(town).await?.value).unwrap();
    Some(value["token"].as_str().unwrap().to_owned())
}

/// A message with a consumer that will never be heard of again.
async fn abandoned(resident: &Resident) -> Delivery {
    resident.put(1).await;
    resident.lease(1).await.remove(0)
}

#[tokio::test(start_paused = true)]
async fn one_instance_sweeps_and_the_others_do_not() {
    let (town, a, b) = Town::two(retry(Millis::ZERO, 100)).await;
    abandoned(&b).await;
    let before = a.door.calls("expire");
    look(&town, LIFETIME).await;
    assert_eq!(a.states().await, (1, 0, 0, 0), "it was overdue, and was requeued");
    assert!(a.door.calls("expire") > before);
    for sweep in ["expire", "lapse", "retain"] {
        assert_eq!(b.door.calls(sweep), 0, "{sweep}");
    }
    let asked = b.door.calls("next_due");
    // Leases that end soon wake a sweeper, and only the one that may sweep.
    for _ in 0..20 {
        let mut call = b.call(1);
        call.time = Some(Millis::new(100));
        let held = b.broker.lease(call).await.unwrap();
        b.nack(&held[0]).await;
    }
    settle().await;
    assert_eq!((b.door.calls("expire"), b.door.calls("next_due")), (0, asked));
}

#[tokio::test(start_paused = true)]
async fn the_lock_is_kept_and_renewed_now_and_then() {
    let (town, a, _b) = Town::two(QueueConfig::default()).await;
    let (first, owner) = (lock(&town).await.unwrap(), holder(&town).await);
    town.advance(INTERVAL).await;
    assert_eq!(lock(&town).await, Some(first.clone()), "it is young");
    look(&town, 20).await;
    assert_eq!(holder(&town).await, owner, "it is the same instance's for as long as that goes on");
    assert_ne!(lock(&town).await, Some(first));
    let writes = a.door.calls("registry_write");
    assert!(writes <= 4 * 13, "four locks, every ten seconds: {writes}");
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_ends_hands_the_lock_over_at_once() {
    let (town, a, b) = Town::two(retry(Millis::ZERO, 9)).await;
    abandoned(&b).await;
    let owner = holder(&town).await;
    a.stop().await;
    settle().await;
    assert!(b.door.calls("expire") > 0, "without any time passing");
    assert!(holder(&town).await.is_some_and(|now| Some(now) != owner));
}

#[tokio::test(start_paused = true)]
async fn the_lock_of_an_instance_that_was_killed_is_taken_over_when_its_time_is_over() {
    let (town, a, b) = Town::two(retry(Millis::ZERO, 9)).await;
    abandoned(&b).await;
    a.kill();
    town.clock.advance(Millis::from_secs(25));
    settle().await;
    assert_eq!(b.door.calls("expire"), 0, "it may still be alive");
    // Twice the life of a lock is the longest that nobody sweeps.
    look(&town, LIFETIME + 1).await;
    assert!(b.door.calls("expire") > 0);
    assert_eq!(b.states().await, (1, 0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_late_holder_changes_nothing_that_it_should_not() {
    let (town, a, b) = Town::two(retry(Millis::ZERO, 9)).await;
    abandoned(&b).await;
    // It has the lock, has seen that it may sweep, and is stopped before it does.
    a.door.hold("expire");
    look(&town, LIFETIME).await;
    a.door.hold(EVERYTHING);
    look(&town, LIFETIME + 1).await;
    assert_eq!(b.states().await, (1, 0, 0, 0), "another took over");
    let owner = holder(&town).await;
    let held = b.lease(1).await.remove(0);
    assert_eq!(held.message.progress.attempts, 2);
    let (lock_before, swept) = (lock(&town).await, a.door.calls("expire"));
    a.door.open();
    settle().await;
    assert_eq!(a.door.calls("expire"), swept + 1, "it ends the step it was at, and no other");
    assert_eq!(b.states().await, (0, 0, 1, 0), "the lease of now is not the one that ran out");
    b.ack(&held).await;
    assert_eq!((lock(&town).await, holder(&town).await), (lock_before.clone(), owner));
    // Nor does it let go of what is not its own any more.
    a.stop().await;
    assert_eq!(lock(&town).await, lock_before);
}

#[tokio::test(start_paused = true)]
async fn two_that_sweep_at_once_end_each_lease_once() {
    let (town, a, b) = Town::two(retry(Millis::ZERO, 9)).await;
    a.put(50).await;
    assert_eq!(a.lease(50).await.len(), 50);
    // Both were told that they may: one of them is late, the other took over.
    a.door.hold("expire");
    look(&town, LIFETIME).await;
    look(&town, LIFETIME + 1).await;
    a.door.open();
    settle().await;
    assert_eq!(b.states().await, (50, 0, 0, 0));
    let messages = b.lease(50).await;
    assert!(messages.iter().all(|delivery| delivery.message.progress.attempts == 2), "one attempt each");
}

#[tokio::test(start_paused = true)]
async fn a_store_with_one_owner_has_no_locks_and_no_signals() {
    let store = MemoryStore::new(Options::new(ReceiptKey::new([7; 32])));
    assert!(store.door().is_none() && store.listen().is_none());
    let door = Arc::new(Door::new(store));
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_000_000)));
    let config = BrokerConfig::default();
    let (broker, background) =
        Broker::start(Arc::<Door>::clone(&door), Arc::<ManualClock>::clone(&clock), config).await.unwrap();
    let queue = redrive_core::queue::QueueName::new("orders").unwrap();
    let create = redrive_store::CreateQueue { name: queue.clone(), config: retry(Millis::ZERO, 9) };
    broker.create_queue(create).await.unwrap();
    for _ in 0..20 {
        clock.advance(INTERVAL);
        settle().await;
    }
    assert!(door.calls("expire") > 10);
    background.stop().await;
    for call in ["registry_write", "registry_get", "tell"] {
        assert_eq!(door.calls(call), 0, "{call}");
    }
    assert_eq!(door.calls("registry_list"), 1, "the operations that were under way");
}
