//! Settlements, and leases that run out.

use redrive_broker::{Bury, Extend, Target, Trigger};
use redrive_core::message::ErrorText;
use redrive_core::time::Millis;
use redrive_store::{Limit, UpdateQueue};

use crate::world::{World, event, retry};

#[tokio::test]
async fn an_overdue_lease_ends_when_its_time_comes_and_is_told_as_the_design_says() {
    let world = World::with(retry(Millis::ZERO, 2)).await;
    let mut watch = world.broker.watch(None);
    world.put(3).await;
    let held = world.lease(3).await;
    world.clock.advance(Millis::from_secs(20));
    let extend = Extend {
        target: Target::Receipt(held[0].receipt.clone()),
        time: Some(Millis::from_secs(30)),
        checkpoint: None,
    };
    let deadline = world.broker.extend(vec![extend]).await.unwrap().remove(0).applied().unwrap();
    assert_eq!(deadline, world.broker.now().plus(Millis::from_secs(30)));
    world.clock.advance(Millis::from_secs(10));
    world.until_states((2, 0, 1, 0)).await;
    let requeue = event(&mut watch, "requeue").await;
    assert_eq!((requeue.count, requeue.dlq_count, requeue.trigger), (2, 0, Trigger::Scheduler));
    let again = world.lease(2).await;
    assert!(again.iter().all(|delivery| delivery.message.progress.attempts == 2));
    world.clock.advance(Millis::from_secs(30));
    world.until_states((1, 0, 0, 2)).await;
    let requeue = event(&mut watch, "requeue").await;
    let dead = event(&mut watch, "move_to_dlq").await;
    assert_eq!(requeue.dlq_count + requeue.count, 3, "{requeue:?}");
    assert_eq!(dead.count, 2);
    let stale = world.broker.ack(vec![held[1].receipt.clone()]).await.unwrap();
    assert_eq!(stale[0].code(), Some("LEASE_LOST"));
}

#[tokio::test]
async fn an_operator_can_end_what_is_overdue_and_say_why() {
    let world = World::new().await;
    world.put(1).await;
    let held = world.lease(1).await.remove(0);
    let requeue = |error: &str| {
        let queue = Some(world.queue.clone());
        world.broker.requeue_expired(queue, Limit::MAX, Some(ErrorText::new(error)))
    };
    assert_eq!(requeue("not yet").await.unwrap(), 0);
    let mut watch = world.broker.watch(None);
    // Nothing runs between these two lines: the sweeper has not seen yet that the time has come.
    world.clock.advance(Millis::from_secs(30));
    assert_eq!(requeue("ended by hand").await.unwrap(), 1);
    let message = world.broker.get(&world.queue, held.message.id()).await.unwrap();
    assert_eq!(message.history.last_error.unwrap().as_str(), "ended by hand");
    assert_eq!(event(&mut watch, "requeue").await.trigger, Trigger::Operator);
}

#[tokio::test]
async fn settling_answers_each_item_by_itself() {
    let world = World::new().await;
    world.put(2).await;
    let held = world.lease(2).await;
    let receipts = vec!["nonsense".to_owned(), held[0].receipt.clone(), held[0].receipt.clone()];
    let codes: Vec<Option<&str>> =
        world.broker.ack(receipts).await.unwrap().iter().map(redrive_broker::Settlement::code).collect();
    assert_eq!(codes, [Some("INVALID_RECEIPT"), None, Some("NOT_FOUND")]);
    let bury = Bury { receipt: held[1].receipt.clone(), error: ErrorText::new("never") };
    assert_eq!(world.broker.bury(vec![bury]).await.unwrap()[0].code(), None);
    assert_eq!(world.states().await, (0, 0, 0, 1));
}

#[tokio::test]
async fn a_lowered_cap_is_carried_out_by_the_sweeper_at_once() {
    let world = World::with(retry(Millis::ZERO, 5)).await;
    world.put(1).await;
    for _ in 0..2 {
        let delivery = world.lease(1).await.remove(0);
        world.nack(&delivery).await;
    }
    let update = UpdateQueue { name: world.queue.clone(), config: retry(Millis::ZERO, 2), expected: None };
    world.broker.update_queue(update).await.unwrap();
    world.until_states((0, 0, 0, 1)).await;
}
