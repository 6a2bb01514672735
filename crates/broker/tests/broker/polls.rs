//! The long poll: what wakes whom.

use std::collections::VecDeque;
use std::sync::Arc;

use redrive_broker::{
    Broker, BrokerConfig, Clock, LeaseCall, ManualClock, NewOperation, Release, Target, Work,
};
use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::When;
use redrive_core::message::{Lane, MessageType};
use redrive_core::queue::Pause;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{ClassFilter, DeleteQueue, Filter, LaneChoice, Limit, PauseQueue, Store};
use redrive_store_memory::MemoryStore;

use crate::world::{PATIENCE, World, done, retry};

#[tokio::test]
async fn an_enqueue_wakes_a_poll() {
    let world = World::new().await;
    let poll = world.poll(world.call(10)).await;
    let id = world.put_one(|_| ()).await;
    assert_eq!(done(poll).await[0].message.id(), id);
}

#[tokio::test]
async fn each_message_wakes_one_of_many_polls() {
    let world = World::new().await;
    let mut polls = VecDeque::new();
    for _ in 0..5 {
        polls.push_back(world.poll(world.call(1)).await);
    }
    world.put(3).await;
    for _ in 0..3 {
        assert_eq!(done(polls.pop_front().unwrap()).await.len(), 1);
    }
    assert!(polls.iter().all(|poll| !poll.is_finished()), "nothing was there for them");
    world.put(2).await;
    for poll in polls {
        assert_eq!(done(poll).await.len(), 1);
    }
}

#[tokio::test]
async fn a_poll_with_a_filter_is_not_in_the_way_of_others() {
    let world = World::new().await;
    let kinds = vec![MessageType::new("refund").unwrap()];
    let filtered = LeaseCall { filter: ClassFilter { kinds, sources: Vec::new() }, ..world.call(1) };
    let retries = LeaseCall { lane: LaneChoice::Only(Lane::Retry), ..world.call(1) };
    let (filtered, retries) = (world.poll(filtered).await, world.poll(retries).await);
    let any = world.poll(world.call(1)).await;
    world.put(1).await;
    let delivery = done(any).await.remove(0);
    assert!(!filtered.is_finished() && !retries.is_finished());
    world.put_one(|message| message.draft.spec.kind = MessageType::new("refund").unwrap()).await;
    assert_eq!(done(filtered).await.len(), 1);
    world
        .broker
        .release(vec![Release { target: Target::Receipt(delivery.receipt), delay: None }])
        .await
        .unwrap();
    let fresh = world.lease(1).await.remove(0);
    world.nack(&fresh).await;
    world.clock.advance(Millis::from_secs(5));
    assert_eq!(done(retries).await.len(), 1);
}

#[tokio::test]
async fn what_becomes_due_wakes_a_poll_when_its_time_comes() {
    let world = World::with(retry(Millis::from_secs(10), 5)).await;
    world.put_one(|message| message.draft.visible = When::After(Millis::from_secs(3))).await;
    let poll = world.poll(world.call(1)).await;
    world.clock.advance(Millis::new(2_999));
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert!(!poll.is_finished(), "not before its time");
    world.clock.advance(Millis::new(1));
    let first = done(poll).await.remove(0);
    let poll = world.poll(world.call(1)).await;
    world.nack(&first).await;
    world.clock.advance(Millis::from_secs(10));
    assert_eq!(done(poll).await[0].message.progress.attempts, 2, "a retry, after its backoff");
}

#[tokio::test]
async fn whatever_makes_a_message_ready_wakes_a_poll() {
    let world = World::with(retry(Millis::ZERO, 2)).await;
    world.put(1).await;
    let first = world.lease(1).await.remove(0);
    let poll = world.poll(world.call(1)).await;
    world
        .broker
        .release(vec![Release { target: Target::Receipt(first.receipt), delay: None }])
        .await
        .unwrap();
    let second = done(poll).await.remove(0);
    let poll = world.poll(world.call(1)).await;
    world.nack(&second).await;
    let third = done(poll).await.remove(0);
    let poll = world.poll(world.call(1)).await;
    world.nack(&third).await;
    assert_eq!(world.states().await.3, 1, "dead at the cap");
    let work = Work::Redrive { by: "ann".parse().unwrap(), reason: "fixed".parse().unwrap() };
    let redrive = NewOperation { queue: world.queue.clone(), filter: Filter::default(), work, rate: None };
    world.broker.start_operation(redrive).await.unwrap();
    let fourth = done(poll).await.remove(0);
    assert_eq!(fourth.message.progress.redrives, 1);
    let poll = world.poll(world.call(1)).await;
    world.clock.advance(Millis::from_secs(30));
    assert_eq!(done(poll).await[0].message.progress.attempts, 2, "the lease ran out");
}

#[tokio::test]
async fn a_resume_wakes_a_poll_and_so_does_the_end_of_a_pause() {
    let world = World::new().await;
    let pause = |pause| PauseQueue { name: world.queue.clone(), key: None, pause };
    world.broker.pause_queue(pause(Some(Pause::UntilResumed))).await.unwrap();
    world.put(2).await;
    let poll = world.poll(world.call(1)).await;
    world.broker.pause_queue(pause(None)).await.unwrap();
    assert_eq!(done(poll).await.len(), 1);
    let end = world.broker.now().plus(Millis::from_secs(60));
    world.broker.pause_queue(pause(Some(Pause::Until(end)))).await.unwrap();
    let poll = world.poll(world.call(1)).await;
    world.clock.advance(Millis::from_secs(60));
    assert_eq!(done(poll).await.len(), 1);
}

#[tokio::test]
async fn a_poll_of_a_queue_that_is_deleted_is_told() {
    let world = World::new().await;
    let poll = world.poll(world.call(1)).await;
    world.broker.delete_queue(DeleteQueue { name: world.queue.clone(), force: false }).await.unwrap();
    let error = poll.await.unwrap().unwrap_err();
    assert_eq!(error.code(), "QUEUE_NOT_FOUND");
}

#[tokio::test]
async fn a_poll_that_goes_away_takes_nothing_with_it() {
    let world = World::new().await;
    let poll = world.poll(world.call(1)).await;
    poll.abort();
    assert!(poll.await.unwrap_err().is_cancelled());
    world.put(1).await;
    assert_eq!(world.lease(1).await.len(), 1);
    assert!(world.parked().await.ends_with(" 0"));
}

#[tokio::test]
async fn what_becomes_due_while_the_broker_asks_wakes_a_poll_as_well() {
    for delay in 1..60 {
        let world = World::new().await;
        let clock = Arc::new(Hasty(Arc::clone(&world.clock)));
        let store: Arc<dyn Store> = Arc::<MemoryStore>::clone(&world.store);
        let settings = BrokerConfig { poll_wait_max: PATIENCE, ..BrokerConfig::default() };
        let (broker, _background) = Broker::start(store, clock, settings).await.unwrap();
        let world = World { broker, ..world };
        world.put_one(|message| message.draft.visible = When::After(Millis::new(delay))).await;
        let call = LeaseCall { wait: PATIENCE, ..world.call(1) };
        let broker = world.broker.clone();
        let poll = tokio::spawn(async move { broker.lease(call).await });
        while world.broker.now() < Timestamp::from_millis(1_000_200) {
            tokio::task::yield_now().await;
        }
        assert_eq!(done(poll).await.len(), 1, "due after {delay} ms");
    }
}

/// A clock on which a millisecond passes whenever somebody looks at it.
#[derive(Debug)]
struct Hasty(Arc<ManualClock>);

#[async_trait::async_trait]
impl Clock for Hasty {
    fn now(&self) -> Timestamp {
        self.0.advance(Millis::new(1));
        self.0.now()
    }

    async fn until(&self, at: Timestamp) {
        self.0.until(at).await;
    }
}

#[tokio::test]
async fn a_broker_that_ends_answers_its_polls_and_hands_nothing_out() {
    let world = World::new().await;
    let poll = world.poll(world.call(1)).await;
    let World { broker, _background: background, queue, .. } = world;
    background.stop().await;
    assert!(done(poll).await.is_empty());
    let call = LeaseCall::new(queue, Limit::ONE, ConsumerName::default());
    assert!(broker.lease(call).await.unwrap().is_empty());
}
