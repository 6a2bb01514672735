//! One breaker over all instances.

use redrive_core::policy::{BreakerConfig, BreakerState};
use redrive_core::queue::QueueConfig;
use redrive_core::time::Millis;

use super::{Resident, Town, settle};
use crate::world::{event, retry};

fn guarded() -> QueueConfig {
    QueueConfig { breaker: Some(Some(BreakerConfig::default())), ..retry(Millis::ZERO, 100) }
}

async fn state(resident: &Resident) -> BreakerState {
    resident.broker.breaker(&resident.queue).await.unwrap().unwrap().state
}

/// Both know it, and the breaker is open because of what `a` saw.
async fn opened() -> (Town, Resident, Resident) {
    let (town, a, b) = Town::two(guarded()).await;
    a.put(8).await;
    for delivery in a.lease(8).await {
        a.nack(&delivery).await;
    }
    settle().await;
    (town, a, b)
}

#[tokio::test(start_paused = true)]
async fn a_breaker_that_one_instance_opens_is_open_at_all_and_burns_no_attempt() {
    let (_town, a, b) = opened().await;
    assert_eq!((state(&a).await, state(&b).await), (BreakerState::Open, BreakerState::Open));
    let leases = b.door.calls("lease");
    assert!(b.lease(8).await.is_empty() && a.lease(8).await.is_empty());
    assert_eq!(b.door.calls("lease"), leases, "nobody asked the store");
}

#[tokio::test(start_paused = true)]
async fn one_probe_means_one_over_all_instances() {
    let (town, a, b) = opened().await;
    let (at_a, at_b) = (a.poll(a.call(8)).await, b.poll(b.call(8)).await);
    town.advance(Millis::from_secs(30)).await;
    let probes = usize::from(at_a.is_finished()) + usize::from(at_b.is_finished());
    assert_eq!(probes, 1, "both wait for the same moment, and one gets the slot");
    assert_eq!(a.states().await, (7, 0, 1, 0));
    let (probe, waits) = if at_a.is_finished() { (at_a, at_b) } else { (at_b, at_a) };
    let probe = probe.await.unwrap().unwrap().remove(0);
    assert!(!waits.is_finished());
    // It may be settled anywhere.
    b.ack(&probe).await;
    settle().await;
    assert_eq!((state(&a).await, state(&b).await), (BreakerState::Closed, BreakerState::Closed));
    assert_eq!(waits.await.unwrap().unwrap().len(), 1, "the target has just come back: one at a time");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_fails_at_one_instance_opens_it_anew_at_all() {
    let (town, a, b) = opened().await;
    town.advance(Millis::from_secs(30)).await;
    let probe = a.lease(8).await.remove(0);
    assert!(b.lease(8).await.is_empty());
    b.nack(&probe).await;
    settle().await;
    assert_eq!((state(&a).await, state(&b).await), (BreakerState::Open, BreakerState::Open));
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_given_back_frees_the_slot_for_another_instance() {
    let (town, a, b) = opened().await;
    town.advance(Millis::from_secs(30)).await;
    let probe = a.lease(8).await.remove(0);
    let waits = b.poll(b.call(8)).await;
    a.broker
        .release(vec![redrive_broker::Release {
            target: redrive_broker::Target::Receipt(probe.receipt),
            delay: None,
        }])
        .await
        .unwrap();
    assert_eq!(crate::world::done(waits).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_slot_of_an_instance_that_was_killed_is_free_when_its_time_is_over() {
    let (town, a, b) = opened().await;
    town.advance(Millis::from_secs(30)).await;
    // It has reserved the slot, and is killed before it leases a message.
    a.door.hold("lease");
    let (broker, call) = (a.broker.clone(), a.call(8));
    let lost = tokio::spawn(async move { broker.lease(call).await });
    settle().await;
    lost.abort();
    a.kill();
    assert!(b.lease(8).await.is_empty());
    town.advance(Millis::from_secs(30)).await;
    assert_eq!(b.lease(8).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_operator_opens_and_closes_it_for_all_and_it_is_told_once() {
    let (_town, a, b) = Town::two(guarded()).await;
    let (mut at_a, mut at_b) = (a.broker.watch(None), b.broker.watch(None));
    a.broker.set_breaker(&a.queue, true).await.unwrap();
    settle().await;
    assert_eq!(state(&b).await, BreakerState::Open);
    b.broker.set_breaker(&b.queue, false).await.unwrap();
    settle().await;
    assert_eq!(state(&a).await, BreakerState::Closed);
    // Three changes, three events, at each.
    b.broker.set_breaker(&b.queue, true).await.unwrap();
    for watch in [&mut at_a, &mut at_b] {
        let mut to = Vec::new();
        for _ in 0..3 {
            let told = event(watch, "breaker").await;
            let redrive_broker::Happening::Breaker(change) = told.what else { panic!("{told:?}") };
            to.push(change.to);
        }
        assert_eq!(to, [BreakerState::Open, BreakerState::Closed, BreakerState::Open]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_starts_later_finds_it_open() {
    let (town, a, _b) = opened().await;
    let late = town.instance().await;
    assert!(late.lease(8).await.is_empty());
    assert_eq!((state(&late).await, state(&a).await), (BreakerState::Open, BreakerState::Open));
}

#[tokio::test(start_paused = true)]
async fn another_queue_of_the_same_name_starts_with_a_closed_breaker() {
    let (_town, a, b) = opened().await;
    let delete = redrive_store::DeleteQueue { name: a.queue.clone(), force: true };
    a.broker.delete_queue(delete).await.unwrap();
    let create = redrive_store::CreateQueue { name: a.queue.clone(), config: guarded() };
    a.broker.create_queue(create).await.unwrap();
    settle().await;
    assert_eq!((state(&a).await, state(&b).await), (BreakerState::Closed, BreakerState::Closed));
}
