//! Operations: paused, resumed, cancelled, done once.

use redrive_broker::{Bury, NewOperation, OperationState, Work};
use redrive_core::message::ErrorText;
use redrive_core::queue::QueueConfig;
use redrive_store::{Filter, Limit};

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
