//! Operations: paused, resumed, cancelled, done once.

use redrive_broker::{Bury, Clock, NewOperation, Operation, OperationState, Work};
use redrive_core::message::{ErrorText, MessageId};
use redrive_core::queue::QueueConfig;
use redrive_core::time::Millis;
use redrive_store::{Filter, Limit};

use crate::instances::machine_time;
use crate::world::World;

#[tokio::test]
async fn an_operation_can_be_paused_goes_on_after_a_restart_and_is_done_once() {
    let world = World::new().await;
    world.put(30).await;
    for delivery in world.lease(30).await {
        let bury = Bury { receipt: delivery.receipt, error: ErrorText::new("never") };
        world.broker.bury(vec![bury]).await.unwrap();
    }
    let work = Work::Redrive { by: "ann".parse().unwrap(), reason: "fixed".parse().unwrap() };
    let new = NewOperation { queue: world.queue.clone(), filter: Filter::default(), work, rate: Some(10) };
    assert_eq!(world.broker.dry_run(&new).await.unwrap(), 30);
    assert_eq!(world.states().await.3, 30, "a dry run changes nothing");
    let id = world.broker.start_operation(new).await.unwrap().id;
    world.broker.pause_operation(id).await.unwrap();
    while world.broker.operation(id).await.unwrap().state != OperationState::Paused {
        tokio::task::yield_now().await;
    }
    let paused = world.broker.operation(id).await.unwrap();
    assert!(paused.progress.applied <= 10, "{paused:?}");
    let World { broker, _background: background, store, .. } = world;
    drop(broker);
    background.stop().await;
    let world = World::over(store, QueueConfig::default()).await;
    assert_eq!(world.broker.operation(id).await.unwrap(), paused, "paused it stays");
    world.broker.resume_operation(id).await.unwrap();
    while !world.broker.operation(id).await.unwrap().state.is_ended() {
        tokio::task::yield_now().await;
    }
    let ended = world.broker.operation(id).await.unwrap();
    assert_eq!((ended.state, ended.progress.applied), (OperationState::Done, 30));
    assert_eq!(world.states().await, (30, 0, 0, 0));
    let error = world.broker.cancel_operation(id).await.unwrap_err();
    assert_eq!(error.code(), "OPERATION_ENDED");
}

#[tokio::test]
async fn an_operation_that_is_cancelled_keeps_what_it_did() {
    let world = World::new().await;
    world.put(20).await;
    let work = Work::Discard { force: false };
    let new = NewOperation { queue: world.queue.clone(), filter: Filter::default(), work, rate: Some(1) };
    let id = world.broker.start_operation(new).await.unwrap().id;
    world.broker.cancel_operation(id).await.unwrap();
    while !world.broker.operation(id).await.unwrap().state.is_ended() {
        tokio::task::yield_now().await;
    }
    let ended = world.broker.operation(id).await.unwrap();
    assert_eq!(ended.state, OperationState::Cancelled);
    assert_eq!(world.states().await.0, 20 - ended.progress.applied);
    assert_eq!(world.broker.operations(None, Limit::MAX).await.unwrap(), [ended]);
}

/// Discards everything, ten messages a second.
async fn slow_discard(world: &World) -> Operation {
    let work = Work::Discard { force: false };
    let new = NewOperation { queue: world.queue.clone(), filter: Filter::default(), work, rate: Some(10) };
    world.broker.start_operation(new).await.unwrap()
}

/// Lets the time of the machine pass until the operation has ended.
async fn to_the_end(world: &World, operation: &Operation) -> Operation {
    for _ in 0..100 {
        machine_time(1_000).await;
        let now = world.broker.operation(operation.id).await.unwrap();
        if now.state.is_ended() {
            return now;
        }
    }
    panic!("it does not come to an end: {:?}", world.broker.operation(operation.id).await)
}

#[tokio::test(start_paused = true)]
async fn an_operation_is_about_what_was_there_when_it_was_started() {
    let world = World::new().await;
    world.put(25).await;
    let started = slow_discard(&world).await;
    assert_eq!((started.progress.total, &started.filter), (25, &Filter::default()));
    // More comes in than it discards, for as long as it would go on.
    for _ in 0..10 {
        world.put(20).await;
        machine_time(1_000).await;
    }
    let ended = to_the_end(&world, &started).await;
    assert_eq!((ended.state, ended.progress.matched, ended.progress.applied), (OperationState::Done, 25, 25));
    assert_eq!(world.states().await, (200, 0, 0, 0), "what came later is there");
}

#[tokio::test(start_paused = true)]
async fn an_operation_on_nothing_touches_nothing_that_comes() {
    let world = World::new().await;
    let started = slow_discard(&world).await;
    world.put(5).await;
    let ended = to_the_end(&world, &started).await;
    assert_eq!((ended.state, ended.progress.matched), (OperationState::Done, 0));
    assert_eq!(world.states().await, (5, 0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_id_from_the_future_does_not_let_in_what_comes_before_it() {
    let world = World::new().await;
    world.put(15).await;
    let far = MessageId::new(world.clock.now().plus(Millis::from_secs(1_000_000)), 1);
    world.put_one(|message| message.id = Some(far)).await;
    let started = slow_discard(&world).await;
    assert_eq!(started.progress.total, 16);
    world.clock.advance(Millis::new(1));
    world.put(30).await;
    let ended = to_the_end(&world, &started).await;
    assert_eq!((ended.state, ended.progress.applied), (OperationState::Done, 16));
    assert_eq!(world.states().await, (30, 0, 0, 0), "the one from the future is gone, too");
}
