//! The client's own calls.

use std::time::Duration;

use redrive_broker::Access;
use redrive_client::{
    CallError, Client, EnqueueError, LeaseOptions, NewMessage, QueueError, QueueSettings, SettleError,
};
use redrive_core::access::{KeyId, Secret, Token};

use crate::world::{QUEUE, World};

#[tokio::test]
async fn a_message_is_enqueued_leased_and_settled() {
    let world = World::with_queue().await;
    let client = &world.client;
    let enqueued = client.enqueue(QUEUE, NewMessage::json(&[1, 2]).unwrap().dedup_key("k")).await.unwrap();
    let again = client.enqueue(QUEUE, NewMessage::new("other").dedup_key("k")).await.unwrap();
    assert_eq!((&again.id, again.duplicate), (&enqueued.id, true));
    let leased = client.lease(QUEUE, LeaseOptions::default()).await.unwrap().pop().unwrap();
    assert_eq!((leased.id.as_str(), &*leased.body), (enqueued.id.as_str(), &b"[1,2]"[..]));
    let deadline = client.extend(&leased.receipt, Duration::from_mins(1)).await.unwrap();
    assert!(deadline > leased.deadline_ms);
    let verdict = client.nack(&leased.receipt, "no", Some(Duration::from_hours(1))).await.unwrap();
    assert_eq!(verdict.state, "delayed");
    assert!(matches!(client.ack(&leased.receipt).await, Err(SettleError::LeaseLost(_))));
    assert!(matches!(client.ack("no receipt").await, Err(SettleError::InvalidReceipt)));
    world.advance(Duration::from_hours(2));
    let leased = client.lease(QUEUE, LeaseOptions::default()).await.unwrap().pop().unwrap();
    assert_eq!(leased.last_error, "no");
    client.release(&leased.receipt, None).await.unwrap();
    let leased = client.lease(QUEUE, LeaseOptions::default()).await.unwrap().pop().unwrap();
    assert_eq!(client.bury(&leased.receipt, "never").await.unwrap().dead_reason, "buried");
    assert_eq!(client.stats(QUEUE).await.unwrap().dead, 1);
}

#[tokio::test]
async fn queues_are_made_changed_and_deleted() {
    let world = World::with_queue().await;
    let client = &world.client;
    let again = client.create_queue(QUEUE, QueueSettings::default()).await.unwrap_err();
    assert!(matches!(&again, QueueError::AlreadyExists(_)) && !again.is_retryable(), "{again:?}");
    assert!(client.pause_queue(QUEUE).await.unwrap().paused);
    assert!(!client.resume_queue(QUEUE).await.unwrap().paused);
    let settings = QueueSettings::default().max_attempts(9).weight("gold", 3);
    assert!(client.update_queue(QUEUE, settings).await.unwrap().version > 1);
    let names: Vec<String> =
        client.queues("", 10).await.unwrap().into_iter().map(|queue| queue.name).collect();
    assert_eq!(names, [QUEUE]);
    world.enqueue("x").await;
    assert!(matches!(client.delete_queue(QUEUE, false).await, Err(QueueError::NotEmpty(_))));
    client.delete_queue(QUEUE, true).await.unwrap();
    assert!(matches!(client.queue(QUEUE).await, Err(QueueError::NotFound(_))));
    let refused = client.enqueue(QUEUE, NewMessage::new("x")).await.unwrap_err();
    assert!(matches!(&refused, EnqueueError::QueueNotFound(_) | EnqueueError::Rejected(_)), "{refused:?}");
}

#[tokio::test]
async fn wrong_input_is_refused_by_its_field() {
    let world = World::with_queue().await;
    let refused = world.client.enqueue(QUEUE, NewMessage::new("x").priority(10)).await.unwrap_err();
    let EnqueueError::Call(CallError::Invalid(invalid)) = &refused else { panic!("{refused:?}") };
    assert_eq!(invalid.field, "priority");
    assert!(!refused.is_retryable());
}

#[tokio::test]
async fn calls_are_tried_again_until_the_server_is_there() {
    let world = World::with_queue().await;
    world.proxy.cut();
    let client = world.client.clone();
    let enqueue = tokio::spawn(async move { client.enqueue(QUEUE, NewMessage::new("x")).await });
    tokio::task::yield_now().await;
    world.proxy.mend();
    let enqueued = enqueue.await.unwrap().unwrap();
    assert!(!enqueued.duplicate);
    assert!(world.kept(&enqueued.id).await.is_some());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_as_that() {
    let client = Client::builder("http://127.0.0.1:1").patience(Duration::ZERO).build().unwrap();
    let error = client.stats(QUEUE).await.unwrap_err();
    assert!(
        matches!(&error, QueueError::Call(CallError::Unreachable(_))) && error.is_retryable(),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_api_key_is_shown_on_every_call() {
    let key = Token { id: KeyId::new([1; 8]), secret: Secret::new([7; 32]) };
    let token = key.expose();
    let world = World::with(Access::Keys { bootstrap: Some(key) }, Some(&token)).await;
    world.client.create_queue(QUEUE, QueueSettings::default()).await.unwrap();
    let stranger = Client::builder(format!("http://{}", world.proxy.address)).build().unwrap();
    let refused = stranger.stats(QUEUE).await.unwrap_err();
    assert!(matches!(&refused, QueueError::Call(CallError::Unauthenticated(_))), "{refused:?}");
}

#[tokio::test]
async fn events_go_on_over_a_lost_connection() {
    let world = World::with_queue().await;
    let mut events = world.client.events(Some(QUEUE));
    events.connect().await.unwrap();
    world.enqueue("x").await;
    let mut next = async || loop {
        let event = events.next().await.unwrap();
        if event.kind == "enqueue" {
            return event;
        }
    };
    let first = next().await;
    world.proxy.cut();
    world.proxy.mend();
    world.enqueue("y").await;
    let second = next().await;
    assert!(second.offset > first.offset);
}
