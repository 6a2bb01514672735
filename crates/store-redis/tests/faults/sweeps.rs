//! What sweepers find: in a queue that is damaged, and where a cap was lowered.

use std::num::NonZeroU32;

use redrive_core::lifecycle::{Draft, When};
use redrive_core::message::{ErrorText, Message, MessageId, Priority, State};
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

async fn expire(world: &World, queue: Option<QueueName>, limit: Limit) -> Result<Vec<Judged>, QueueError> {
    let request = ExpireRequest { queue, limit, error: None, seed: 1 };
    world.store.expire(Now::Store, request).await
}

async fn lapse(world: &World, queue: Option<QueueName>, limit: Limit) -> Result<Vec<Judged>, QueueError> {
    world.store.lapse(Now::Store, SweepRequest { queue, limit }).await
}

/// Sweeps all queues until something is found, which is answered.
async fn found(mut sweep: impl AsyncFnMut() -> Result<Vec<Judged>, QueueError>) -> Vec<MessageId> {
    let found = async {
        loop {
            let judged = sweep().await.expect("the rest is swept");
            if !judged.is_empty() {
                return judged.into_iter().map(|judged| judged.message).collect();
            }
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("its time is up")
}

fn is_damaged<T: std::fmt::Debug>(answer: &Result<T, QueueError>) {
    assert!(matches!(answer, Err(QueueError::Store(StoreError::Damaged { .. }))), "{answer:?}");
}

/// Two queues, of which the first comes before the second wherever all are swept.
async fn two(server: &Redis) -> (World, World) {
    let first = World::open(options(&server.url())).await;
    let second = World { queue: queue_name("zz-behind"), ..first.clone() };
    second.create(&second.queue, patient()).await;
    (first, second)
}

#[tokio::test]
async fn a_queue_in_which_something_is_damaged_keeps_no_other_one_from_being_swept() {
    let server = server();
    let (damaged, whole) = two(&server).await;
    let (mut leased, mut waiting) = (Vec::new(), Vec::new());
    for world in [&damaged, &whole] {
        world.put(1).await;
        leased.extend(world.take(1, Millis::new(1)).await.unwrap().messages.iter().map(Message::id));
        let mut short = World::draft();
        short.expires = Some(When::After(Millis::new(1)));
        waiting.push(short.spec.id);
        world.send(vec![short]).await.unwrap();
    }
    let lines = key(&server, &damaged.queue, "p");
    for (id, line) in [(leased[0], "l nonsense"), (waiting[0], "r nonsense")] {
        server.command(&["HSET", &lines, &id.to_string(), line]).expect("it is damaged");
    }
    assert_eq!(found(async || expire(&damaged, None, Limit::MAX).await).await, [leased[1]]);
    assert_eq!(found(async || lapse(&damaged, None, Limit::MAX).await).await, [waiting[1]]);
    is_damaged(&expire(&damaged, Some(damaged.queue.clone()), Limit::MAX).await);
    is_damaged(&lapse(&damaged, Some(damaged.queue.clone()), Limit::MAX).await);
}

/// Those that cannot be judged are more than one step has.
#[tokio::test]
async fn what_cannot_be_judged_takes_no_room_in_a_sweep() {
    let server = server();
    let (stuck, whole) = two(&server).await;
    let graveyard = queue_name("graveyard");
    whole.create(&graveyard, patient()).await;
    let config = QueueConfig { dead_letter_to: Some(Some(graveyard.clone())), ..patient() };
    let update = UpdateQueue { name: stuck.queue.clone(), config, expected: None };
    stuck.store.update_queue(Now::Store, update).await.unwrap();
    stuck.put(3).await;
    assert_eq!(stuck.take(3, Millis::new(1)).await.unwrap().messages.len(), 3);
    whole.put(1).await;
    let last = whole.take(1, Millis::new(1)).await.unwrap().messages[0].id();
    server.command(&["HSET", &key(&server, &graveyard, "q"), "config", "nonsense"]).expect("it is damaged");

    // Nobody remembers how it was.
    let beside = World::beside(options(&server.url())).await;
    let two_at_a_time = Limit::new(2).unwrap();
    assert_eq!(found(async || expire(&beside, None, two_at_a_time).await).await, [last]);
    is_damaged(&expire(&beside, Some(stuck.queue.clone()), two_at_a_time).await);
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

/// Lowers the cap of a queue.
async fn cap(world: &World, most: u32) {
    let retry = RetryOverride { max_attempts: Some(NonZeroU32::new(most)), ..patient().retry };
    let config = QueueConfig { retry, ..patient() };
    let update = UpdateQueue { name: world.queue.clone(), config, expected: None };
    world.store.update_queue(Now::Store, update).await.unwrap();
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
    cap(&world, 1).await;

    let step = Limit::new(10).unwrap();
    let mut after = String::new();
    for expected in [10, 10, 5] {
        assert_eq!(lapse(&world, None, step).await.unwrap().len(), expected);
        let from = noted("capped:from");
        assert!(expected < 10 || from > after, "the next look begins where this one has ended");
        after = from;
    }
    assert!(noted("capped:from").ends_with('~'), "all were looked at");
    let states = world.stats().await.states;
    assert_eq!((states.of(State::Dead), states.of(State::Ready)), (25, 5));
}

#[tokio::test]
async fn what_was_tried_and_is_not_over_the_cap_takes_no_room_in_a_sweep() {
    let server = server();
    let world = World::open(options(&server.url())).await;
    world.put(30).await;
    let urgent = |_| Draft { priority: Priority::new(9).unwrap(), ..World::draft() };
    let last: Vec<Draft> = (0..3).map(urgent).collect();
    let ids: Vec<MessageId> = last.iter().map(|draft| draft.spec.id).collect();
    world.send(last).await.unwrap();
    try_once(&world, 33).await;
    try_once(&world, 3).await;
    cap(&world, 2).await;
    let judged = lapse(&world, None, Limit::new(3).unwrap()).await.unwrap();
    assert_eq!(judged.into_iter().map(|judged| judged.message).collect::<Vec<_>>(), ids);
}

/// What leases find on their way is put aside, and nobody looks at all the others for it.
#[tokio::test]
async fn what_a_lease_has_put_aside_lapses_without_a_look_at_the_rest() {
    let server = server();
    let world = World::open(options(&server.url())).await;
    world.put(2).await;
    try_once(&world, 2).await;
    cap(&world, 1).await;
    let record = key(&server, &world.queue, "q");
    server.command(&["HDEL", &record, "capped"]).expect("as if all had been looked at");
    assert!(world.lease(10).await.is_empty());
    assert_eq!(lapse(&world, None, Limit::MAX).await.unwrap().len(), 2);
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
