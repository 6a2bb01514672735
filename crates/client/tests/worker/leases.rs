//! Leases: extended while a handler runs, and what happens where one is lost.

use std::sync::atomic::Ordering;
use std::time::Duration;

use redrive_broker::{Release, Target};
use redrive_core::message::State;

use crate::world::{Led, QUEUE, World};

/// A third of it is a tenth of a second of the machine's time; the broker's time passes when the test says so.
const LEASE: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_handler_may_outlive_its_lease() {
    let world = World::with_queue().await;
    let (led, mut begun) = Led::new();
    let id = world.enqueue("x").await;
    let running = led.run(&world, |builder| builder.lease_time(LEASE));
    let long = begun.recv().await.unwrap();
    let first = long.message.deadline_ms;
    for extended in 1..=3 {
        world.advance(Duration::from_millis(200));
        let longer = first + extended * 200;
        world.until(&id, |kept| kept.unwrap().lease().unwrap().deadline.as_millis() >= longer).await;
    }
    assert!(world.broker.now().as_millis() > first, "the first lease is long over");
    assert!(!long.context.is_cancelled());
    long.end.send(Ok(())).unwrap();
    world.until_gone(&id).await;
    running.shutdown().await.unwrap();
    assert!(begun.try_recv().is_err(), "it ran once");
}

#[tokio::test]
async fn a_handler_whose_lease_is_lost_is_dropped_before_the_next_starts() {
    let world = World::with_queue().await;
    let (led, mut begun) = Led::new();
    let id = world.enqueue("x").await;
    let running = led.run(&world, |builder| builder.lease_time(LEASE).concurrency(8));
    let first = begun.recv().await.unwrap();
    // An operator takes it away; the message is handed out again, to this worker.
    let target = Target::Message(QUEUE.parse().unwrap(), id.parse().unwrap());
    world.broker.release(vec![Release { target, delay: None }]).await.unwrap();
    let second = begun.recv().await.unwrap();
    assert!(first.context.is_lease_lost() && first.context.is_cancelled());
    assert!(first.gone.await.is_err(), "its future was dropped");
    assert_eq!(led.at_once_max.load(Ordering::SeqCst), 1, "never two at once");
    assert!(second.context.fencing_token() > first.context.fencing_token());
    second.end.send(Ok(())).unwrap();
    world.until_gone(&id).await;
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_extension_that_is_refused_cancels_the_handler() {
    let world = World::with_queue().await;
    let (led, mut begun) = Led::new();
    let id = world.enqueue("x").await;
    let running = led.run(&world, |builder| builder.lease_time(LEASE));
    let held = begun.recv().await.unwrap();
    // It is gone: nobody gets it again, and only the next extension can tell.
    let filter = redrive_store::Filter::ids([id.parse().unwrap()]);
    let selection = redrive_store::Selection::new(QUEUE.parse().unwrap(), filter);
    world.broker.discard(selection, true).await.unwrap();
    held.context.cancelled().await;
    assert!(held.context.is_lease_lost());
    assert!(held.gone.await.is_err(), "its future was dropped");
    let late = held.context.extend(Duration::from_secs(1)).await;
    assert!(late.is_err(), "{late:?}");
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_lease_that_runs_out_while_nobody_is_reached_cancels_the_handler() {
    let world = World::with_queue().await;
    let (led, mut begun) = Led::new();
    let id = world.enqueue("x").await;
    let running = led.run(&world, |builder| builder.lease_time(LEASE));
    let first = begun.recv().await.unwrap();
    world.proxy.cut();
    first.context.cancelled().await;
    assert!(first.context.is_lease_lost());
    assert!(first.gone.await.is_err(), "its future was dropped");
    // The broker thinks the same when its time comes, and hands it out again.
    world.advance(LEASE);
    world.until_state(&id, State::Ready).await;
    world.proxy.mend();
    let second = begun.recv().await.unwrap();
    assert_eq!(second.context.attempt(), 2);
    second.end.send(Ok(())).unwrap();
    world.until_gone(&id).await;
    assert_eq!(led.at_once_max.load(Ordering::SeqCst), 1);
    running.shutdown().await.unwrap();
}
