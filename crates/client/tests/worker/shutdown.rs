//! The end of a worker with work in hand.

use std::time::Duration;

use redrive_core::message::State;

use crate::world::{Led, QUEUE, World};

#[tokio::test]
async fn a_worker_that_ends_waits_for_its_handlers_and_takes_nothing_more() {
    let world = World::with_queue().await;
    let (led, mut begun) = Led::new();
    let first = world.enqueue("first").await;
    let running = led.run(&world, |builder| builder);
    let held = begun.recv().await.unwrap();
    running.begin_shutdown();
    held.context.cancelled().await;
    assert!(!held.context.is_lease_lost(), "it may go on");
    let second = world.enqueue("second").await;
    held.end.send(Ok(())).unwrap();
    running.shutdown().await.unwrap();
    assert!(world.kept(&first).await.is_none(), "it was acked");
    let left = world.kept(&second).await.unwrap();
    assert_eq!((left.state(world.broker.now()), left.progress.attempts), (State::Ready, 0));
}

#[tokio::test]
async fn what_is_not_done_after_the_grace_time_is_given_back_unharmed() {
    let world = World::with_queue().await;
    let (led, mut begun) = Led::new();
    let id = world.enqueue("x").await;
    let running = led.run(&world, |builder| builder.grace(Duration::from_millis(20)));
    let held = begun.recv().await.unwrap();
    running.shutdown().await.unwrap();
    assert!(held.gone.await.is_err(), "its future was dropped");
    let kept = world.kept(&id).await.unwrap();
    assert_eq!(kept.state(world.broker.now()), State::Ready);
    assert_eq!((kept.progress.attempts, kept.progress.deliveries), (0, 1));
}

#[tokio::test]
async fn a_worker_that_is_dropped_ends_as_well() {
    let world = World::with_queue().await;
    let (led, mut begun) = Led::new();
    let id = world.enqueue("x").await;
    drop(led.run(&world, |builder| builder.grace(Duration::ZERO)));
    drop(led);
    // Whether it began or not: nothing stays with it.
    if let Some(held) = begun.recv().await {
        assert!(held.gone.await.is_err(), "its future was dropped");
    }
    world.until_state(&id, State::Ready).await;
}

#[tokio::test]
async fn nothing_that_was_handed_out_is_left_behind() {
    let world = World::with_queue().await;
    // Messages come in while workers come and go: what is on its way when one ends goes back, too.
    for round in 0..20 {
        let (led, mut begun) = Led::new();
        let running = led.run(&world, |builder| builder.concurrency(4).grace(Duration::ZERO));
        world.enqueue(&round.to_string()).await;
        if round % 2 == 0 {
            drop(begun.recv().await);
        }
        running.shutdown().await.unwrap();
        let stats = world.broker.stats(&QUEUE.parse().unwrap()).await.unwrap();
        assert_eq!((stats.states.of(State::Leased), stats.states.of(State::Ready)), (0, round + 1));
    }
}
