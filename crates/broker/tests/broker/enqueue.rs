//! Enqueue: idempotency keys, and queues that come into being.

use std::sync::Arc;

use redrive_broker::{Broker, BrokerConfig, ManualClock};
use redrive_core::message::{Body, DedupKey};
use redrive_core::queue::QueueName;
use redrive_store::{EnqueueOutcome, Store};
use redrive_store_memory::MemoryStore;

use crate::world::World;

#[tokio::test]
async fn an_idempotency_key_takes_one_message_once_and_refuses_another() {
    let world = World::new().await;
    let keyed = |body: &'static str| {
        let mut message = world.message();
        message.idempotency_key = Some(DedupKey::new("order-1").unwrap());
        message.draft.spec.body = Body::new(body).unwrap();
        message
    };
    let put = async |body| world.broker.enqueue(vec![keyed(body)], false).await.unwrap().remove(0);
    let EnqueueOutcome::Enqueued { id, .. } = put("a").await.unwrap() else { panic!("it is new") };
    assert_eq!(put("a").await.unwrap(), EnqueueOutcome::Duplicate { id });
    assert_eq!(put("b").await.unwrap_err().code(), "IDEMPOTENCY_KEY_REUSED");
    let held = world.lease(1).await.remove(0);
    world.ack(&held).await;
    assert_eq!(put("a").await.unwrap(), EnqueueOutcome::Duplicate { id }, "also when the first is gone");
    assert_eq!(put("b").await.unwrap_err().code(), "IDEMPOTENCY_KEY_REUSED");
}

#[tokio::test]
async fn a_queue_comes_into_being_by_its_first_message_only_where_that_is_wanted() {
    let world = World::new().await;
    let elsewhere = |name: &str| {
        let mut message = world.message();
        message.queue = QueueName::new(name).unwrap();
        message
    };
    let refused = world.broker.enqueue(vec![elsewhere("new"), world.message()], false).await.unwrap();
    let refused: Vec<EnqueueOutcome> = refused.into_iter().map(Result::unwrap).collect();
    assert!(
        matches!(refused[0], EnqueueOutcome::Refused(_))
            && matches!(refused[1], EnqueueOutcome::Enqueued { .. })
    );
    let settings = BrokerConfig { auto_create: true, ..BrokerConfig::default() };
    let store: Arc<dyn Store> = Arc::<MemoryStore>::clone(&world.store);
    let clock = Arc::<ManualClock>::clone(&world.clock);
    let (broker, _background) = Broker::start(store, clock, settings).await.unwrap();
    let taken =
        broker.enqueue(vec![elsewhere("new"), world.message(), elsewhere("newer")], false).await.unwrap();
    assert!(taken.iter().all(|outcome| matches!(outcome, Ok(EnqueueOutcome::Enqueued { .. }))), "{taken:?}");
    let together = broker.enqueue(vec![elsewhere("one"), elsewhere("two")], true).await.unwrap();
    assert!(
        together.iter().all(|outcome| matches!(outcome, Ok(EnqueueOutcome::Enqueued { .. }))),
        "{together:?}"
    );
}
