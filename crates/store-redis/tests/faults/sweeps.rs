//! What sweepers find: in a queue that is damaged, and where a cap was lowered.

use std::num::NonZeroU32;

use redrive_core::message::{ErrorText, Message, MessageId, State};
use redrive_core::policy::{Asked, RetryOverride};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::receipt::Claim;
use redrive_core::time::Millis;
use redrive_store::{
    Batch, ExpireRequest, Filter, Judged, Limit, NackItem, Now, QueueError, Selection, Store, StoreError,
    SweepRequest, UpdateQueue,
};
use redrive_test_servers::{Redis, RedisSettings};

use crate::relay::bury;
use crate::world::{PATIENCE, World, options, patient, queue_name};

fn server() -> Redis {
    Redis::start(RedisSettings::default().appendonly(false)).expect("it starts")
}

/// A key of a queue.
fn key(server: &Redis, queue: &QueueName, name: &str) -> String {
    let id = server.command(&["HGET", "redrive:{redrive}:queues", queue.as_str()]).expect("it answers");
    format!("redrive:{{{}}}:{name}", id.trim())
}

async fn expire(world: &World, queue: Option<QueueName>) -> Result<Vec<Judged>, QueueError> {
    let request = ExpireRequest { queue, limit: Limit::MAX, error: None, seed: 1 };
    world.store.expire(Now::Store, request).await
}

#[tokio::test]
async fn a_queue_in_which_something_is_damaged_keeps_no_other_one_from_being_swept() {
    let server = server();
    let damaged = World::open(options(&server.url())).await;
    let whole = World { queue: queue_name("zz-behind"), ..damaged.clone() };
    whole.create(&whole.queue, patient()).await;
    let mut ids = Vec::new();
    for world in [&damaged, &whole] {
        world.put(1).await;
        ids.extend(world.take(1, Millis::new(1)).await.unwrap().messages.iter().map(Message::id));
    }
    let lines = key(&server, &damaged.queue, "p");
    server.command(&["HSET", &lines, &ids[0].to_string(), "l nonsense"]).expect("it is damaged");

    let swept = async {
        loop {
            let judged = expire(&damaged, None).await.expect("the rest is swept");
            if !judged.is_empty() {
                return judged.into_iter().map(|judged| judged.message).collect::<Vec<MessageId>>();
            }
        }
    };
    let swept = tokio::time::timeout(PATIENCE, swept).await.expect("its time is up");
    assert_eq!(swept, [ids[1]]);
    let asked = expire(&damaged, Some(damaged.queue.clone())).await;
    assert!(matches!(asked, Err(QueueError::Store(StoreError::Damaged { .. }))), "{asked:?}");
    let all = SweepRequest { queue: None, limit: Limit::MAX };
    damaged.store.lapse(Now::Store, all.clone()).await.expect("the rest is swept");
    damaged.store.retain(Now::Store, all).await.expect("the rest is swept");
}

/// Hands messages out and takes them back, so that each has been tried once.
async fn try_once(world: &World, messages: usize) {
    let leased = world.lease(messages).await;
    assert_eq!(leased.len(), messages);
    for message in leased {
        let claim = Claim::on(&message).expect("leased");
        let nack =
            NackItem { claim, asked: Asked::Nothing, error: ErrorText::new("not now"), checkpoint: None };
        let nacked = world.store.nack(Now::Store, Batch::one(nack).unwrap(), 1).await.unwrap();
        assert!(nacked[0].is_applied());
    }
}

#[tokio::test]
async fn what_is_over_a_lowered_cap_is_looked_for_once_and_a_step_at_a_time() {
    let server = server();
    let world = World::open(options(&server.url())).await;
    world.put(25).await;
    try_once(&world, 25).await;
    world.put(5).await;
    let record = key(&server, &world.queue, "q");
    let noted = |name: &str| server.command(&["HGET", &record, name]).expect("it answers");
    assert_eq!(noted("capped"), "", "nothing can be over a cap");
    let one = RetryOverride { max_attempts: Some(NonZeroU32::new(1)), ..patient().retry };
    let config = QueueConfig { retry: one, ..patient() };
    let update = UpdateQueue { name: world.queue.clone(), config, expected: None };
    world.store.update_queue(Now::Store, update).await.unwrap();

    let step = SweepRequest { queue: None, limit: Limit::new(10).unwrap() };
    let mut after = String::new();
    for expected in [10, 10, 5] {
        assert_eq!(world.store.lapse(Now::Store, step.clone()).await.unwrap().len(), expected);
        let from = noted("capped:from");
        assert!(expected < 10 || from > after, "the next look begins where this one has ended");
        after = from;
    }
    assert_eq!((noted("capped").as_str(), noted("capped:from").as_str()), ("", ""), "all were looked at");
    let states = world.stats().await.states;
    assert_eq!((states.of(State::Dead), states.of(State::Ready)), (25, 5));
}

/// What leases find on their way is put aside, and nobody looks at all the others for it.
#[tokio::test]
async fn what_a_lease_has_put_aside_lapses_without_a_look_at_the_rest() {
    let server = server();
    let world = World::open(options(&server.url())).await;
    world.put(2).await;
    try_once(&world, 2).await;
    let one = RetryOverride { max_attempts: Some(NonZeroU32::new(1)), ..patient().retry };
    let update = UpdateQueue {
        name: world.queue.clone(),
        config: QueueConfig { retry: one, ..patient() },
        expected: None,
    };
    world.store.update_queue(Now::Store, update).await.unwrap();
    let record = key(&server, &world.queue, "q");
    server.command(&["HDEL", &record, "capped"]).expect("as if all had been looked at");
    assert!(world.lease(10).await.is_empty());
    let all = SweepRequest { queue: None, limit: Limit::MAX };
    assert_eq!(world.store.lapse(Now::Store, all).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_dead_letter_makes_nobody_look_through_the_queue_that_it_comes_to() {
    let server = server();
    let world = World::open(options(&server.url())).await;
    let source = World { queue: queue_name("source"), ..world.clone() };
    let config = QueueConfig { dead_letter_to: Some(Some(world.queue.clone())), ..patient() };
    world.create(&source.queue, config).await;
    source.put(1).await;
    assert_eq!(bury(&source, &source.lease(1).await[0]).await.moved_to.as_ref(), Some(&world.queue));
    let record = key(&server, &world.queue, "q");
    assert_eq!(server.command(&["HEXISTS", &record, "capped"]).unwrap(), "0");
    // One that was tried and is moved by hand may be over a cap there.
    source.put(1).await;
    try_once(&source, 1).await;
    let selection = Selection::new(source.queue.clone(), Filter::state(State::Ready));
    source.store.move_to(Now::Store, selection, world.queue.clone()).await.unwrap();
    assert_eq!(server.command(&["HEXISTS", &record, "capped"]).unwrap(), "1");
}
