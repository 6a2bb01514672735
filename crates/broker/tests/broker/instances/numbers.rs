//! What one instance tells people of what the others do.

use redrive_broker::{AttentionKind, Clock, LeaseCall, Overview};
use redrive_core::lease::ConsumerName;
use redrive_core::queue::QueueConfig;
use redrive_core::time::Millis;
use redrive_store::Limit;

use super::{Resident, Town, settle};
use crate::numbers::anyone;

fn told(overview: &Overview, kind: AttentionKind) -> bool {
    overview.attention.iter().any(|one| one.kind == kind)
}

async fn overview(resident: &Resident) -> Overview {
    anyone(resident).await.overview(Vec::new()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_full_store_is_told_until_it_takes_messages_again() {
    let (_town, resident, _other) = Town::two(QueueConfig::default()).await;
    assert!(!told(&overview(&resident).await, AttentionKind::Storage));
    resident.door.fill(true);
    let since = resident.broker.now();
    for _ in 0..2 {
        let refused = resident.broker.enqueue(vec![resident.message()], false).await.unwrap_err();
        assert_eq!(refused.code(), "STORAGE_FULL");
        resident.clock.advance(Millis::from_secs(3));
    }
    let full = overview(&resident).await;
    assert_eq!((full.attention[0].kind, full.attention[0].since), (AttentionKind::Storage, Some(since)));
    resident.door.fill(false);
    resident.put(1).await;
    assert!(!told(&overview(&resident).await, AttentionKind::Storage));
}

#[tokio::test(start_paused = true)]
async fn leases_that_nothing_ends_are_told() {
    let (town, here, there) = Town::two(QueueConfig::default()).await;
    here.put(2).await;
    here.lease(2).await;
    let ends_at = town.clock.now().plus(Millis::from_secs(30));
    for resident in [&here, &there] {
        resident.door.hold("expire");
    }
    town.advance(Millis::from_secs(40)).await;
    let soon = overview(&here).await;
    assert!(soon.overdue == 2 && !told(&soon, AttentionKind::Overdue), "the sweeper may still come");
    town.advance(Millis::from_secs(1)).await;
    let late = overview(&here).await;
    let one = late.attention.iter().find(|one| one.kind == AttentionKind::Overdue).unwrap();
    assert_eq!((one.count, one.since, one.age), (Some(2), Some(ends_at), Some(Millis::from_secs(11))));
    for resident in [&here, &there] {
        resident.door.open();
    }
    super::eventually(async || overview(&here).await.overdue == 0).await;
    let ended = overview(&here).await;
    assert!(!told(&ended, AttentionKind::Overdue) && told(&ended, AttentionKind::LeasesExpiring));
}

#[tokio::test(start_paused = true)]
async fn who_settles_elsewhere_is_known_by_the_store_and_counted_where_it_settles() {
    let (_town, here, there) = Town::two(QueueConfig::default()).await;
    here.put(1).await;
    let call = LeaseCall::new(here.queue.clone(), Limit::ONE, ConsumerName::new("anna").unwrap());
    let delivery = here.broker.lease(call).await.unwrap().remove(0);
    let seen = anyone(&there).await.consumers().await.unwrap().consumers;
    assert_eq!((seen[0].consumer.as_str(), seen[0].held, seen[0].here), ("anna", 1, false));
    there.ack(&delivery).await;
    let seen = anyone(&there).await.consumers().await.unwrap().consumers;
    assert_eq!((seen[0].acked, seen[0].held, seen[0].here, seen[0].leased), (1, 0, true, 0));
    let seen = anyone(&here).await.consumers().await.unwrap().consumers;
    assert_eq!((seen[0].acked, seen[0].leased), (0, 1), "each counts its own");
}

#[tokio::test(start_paused = true)]
async fn work_that_is_taken_elsewhere_is_not_left_alone() {
    let (town, here, there) = Town::two(QueueConfig::default()).await;
    here.put(20).await;
    // One is acked every ten seconds, over there, while both take their samples.
    for _ in 0..12 {
        let delivery = there.lease(1).await.remove(0);
        there.ack(&delivery).await;
        town.advance(Millis::from_secs(10)).await;
    }
    assert!(!told(&overview(&here).await, AttentionKind::NoConsumers), "somebody is there");
    for _ in 0..8 {
        town.advance(Millis::from_secs(10)).await;
    }
    assert!(told(&overview(&here).await, AttentionKind::NoConsumers), "and has gone");
}

#[tokio::test(start_paused = true)]
async fn those_who_look_at_once_share_a_look() {
    let (_town, resident, _other) = Town::two(QueueConfig::default()).await;
    let caller = anyone(&resident).await;
    let before = resident.door.calls("stats");
    resident.door.hold("stats");
    let looks: Vec<_> = (0..50)
        .map(|_| {
            let caller = caller.clone();
            tokio::spawn(async move { caller.overview(Vec::new()).await.unwrap().queues })
        })
        .collect();
    // All of them have asked.
    settle().await;
    resident.door.open();
    for look in looks {
        assert_eq!(look.await.unwrap(), 1);
    }
    assert_eq!(
        resident.door.calls("stats") - before,
        2,
        "the one that was under way, and one for all the others"
    );
}
