//! What the broker tells who looks: why, and the history of a queue.

use redrive_broker::Obstacle;
use redrive_core::lifecycle::When;
use redrive_core::message::State;
use redrive_core::queue::Pause;
use redrive_core::time::Millis;
use redrive_store::PauseQueue;

use crate::world::World;

#[tokio::test]
async fn why_names_everything_that_is_in_the_way() {
    let world = World::new().await;
    let first = world.put_one(|_| ()).await;
    let second = world.put_one(|_| ()).await;
    let why = world.broker.why(&world.queue, first).await.unwrap();
    assert_eq!((why.obstacles, why.earliest), (Vec::new(), Some(world.broker.now())));
    let why = world.broker.why(&world.queue, second).await.unwrap();
    assert_eq!(why.obstacles, [Obstacle::Behind { messages: 1, at_least: false }]);
    let later = world.put_one(|message| message.draft.visible = When::After(Millis::from_secs(9))).await;
    let end = world.broker.now().plus(Millis::from_secs(60));
    let pause = PauseQueue { name: world.queue.clone(), key: None, pause: Some(Pause::Until(end)) };
    world.broker.pause_queue(pause).await.unwrap();
    let why = world.broker.why(&world.queue, later).await.unwrap();
    let due = world.broker.now().plus(Millis::from_secs(9));
    assert!(why.obstacles.contains(&Obstacle::NotDue { until: due }), "{why:?}");
    assert!(why.obstacles.contains(&Obstacle::QueuePaused { until: Some(end) }), "{why:?}");
}

#[tokio::test]
async fn the_history_of_a_queue_is_sampled() {
    let world = World::new().await;
    while world.broker.history(&world.queue).await.unwrap().is_empty() {
        world.clock.advance(Millis::from_secs(10));
        tokio::task::yield_now().await;
    }
    world.put(3).await;
    let seen = world.broker.history(&world.queue).await.unwrap().len();
    world.clock.advance(Millis::from_secs(10));
    while world.broker.history(&world.queue).await.unwrap().len() == seen {
        tokio::task::yield_now().await;
    }
    let last = *world.broker.history(&world.queue).await.unwrap().last().unwrap();
    assert_eq!((last.enqueued, last.states.of(State::Ready)), (3, 3));
}
