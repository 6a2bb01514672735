//! What a lost connection does to work that is under way: nothing.

use std::time::Duration;

use redrive_client::{Failure, WorkerError};
use redrive_core::message::State;

use crate::world::{Led, World};

#[tokio::test]
async fn a_handler_goes_on_and_its_outcome_is_told_on_the_next_connection() {
    let world = World::with_queue().await;
    let (led, mut begun) = Led::new();
    let (done, failed) = (world.enqueue("done").await, world.enqueue("failed").await);
    let running = led.run(&world, |builder| builder.concurrency(2));
    let first = begun.recv().await.unwrap();
    let second = begun.recv().await.unwrap();
    world.proxy.cut();
    first.end.send(Ok(())).unwrap();
    second.end.send(Err(Failure::retry("no luck"))).unwrap();
    // Both have ended, and nobody could tell.
    assert!(first.gone.await.is_err() && second.gone.await.is_err());
    let leased = world.broker.stats(&"orders".parse().unwrap()).await.unwrap();
    assert_eq!(leased.states.of(State::Leased), 2);
    world.proxy.mend();
    world.until_gone(&done).await;
    let kept = world.until_state(&failed, State::Delayed).await;
    assert_eq!(kept.history.last_error.unwrap().as_str(), "no luck");
    assert!(begun.try_recv().is_err(), "neither ran again");
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_is_held_counts_on_the_next_connection() {
    let world = World::with_queue().await;
    let (led, mut begun) = Led::new();
    for number in 0..4 {
        world.enqueue(&number.to_string()).await;
    }
    let running = led.run(&world, |builder| builder.concurrency(2));
    let first = begun.recv().await.unwrap();
    let _second = begun.recv().await.unwrap();
    world.proxy.cut();
    world.proxy.mend();
    // One ends, one more is taken, and no more than that.
    first.end.send(Ok(())).unwrap();
    let _third = begun.recv().await.unwrap();
    let stats = world.broker.stats(&"orders".parse().unwrap()).await.unwrap();
    assert_eq!((stats.states.of(State::Leased), stats.states.of(State::Ready)), (2, 1));
    running.cut_short();
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_worker_waits_for_a_server_that_is_not_there_yet() {
    let world = World::with_queue().await;
    let (led, mut begun) = Led::new();
    world.proxy.cut();
    let running = led.run(&world, |builder| builder);
    world.proxy.mend();
    let id = world.enqueue("x").await;
    begun.recv().await.unwrap().end.send(Ok(())).unwrap();
    world.until_gone(&id).await;
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_worker_that_is_refused_for_good_says_why() {
    let world = World::start().await;
    let (led, _begun) = Led::new();
    let mut running = led.run(&world, |builder| builder);
    let refused = running.ended().await.unwrap_err();
    assert!(
        matches!(&refused, WorkerError::Refused(redrive_client::LeaseError::QueueNotFound(_))),
        "{refused:?}"
    );
    assert_eq!(refused.to_string(), "there is no queue orders");
}

#[tokio::test]
async fn a_worker_ends_in_time_though_nobody_is_there() {
    let world = World::with_queue().await;
    let (led, mut begun) = Led::new();
    world.enqueue("x").await;
    let running = led.run(&world, |builder| builder.grace(Duration::ZERO));
    let held = begun.recv().await.unwrap();
    world.proxy.cut();
    running.shutdown().await.unwrap();
    assert!(held.gone.await.is_err(), "its future was dropped");
}
