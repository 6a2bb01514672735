//! A program ends, and starts again.

use std::time::Duration;

use redrive::{Error, EventContext, Failure, Json, OpenOptions, Redrive};
use tokio::sync::mpsc;

use crate::{ONE, Order, handle};

#[tokio::test]
async fn what_was_published_before_the_end_is_handled_after_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let redrive = Redrive::open(dir.path()).await.unwrap();
    let bus = redrive.bus();
    let subscription = bus.subscribe("order.*", async |_: String, _: EventContext| ()).await.unwrap();
    assert_eq!(subscription.name(), "order.any");
    subscription.stop().await.unwrap();
    bus.publish("order.created", &ONE).await.unwrap();
    redrive.close().await.unwrap();
    assert_eq!(
        bus.publish("order.created", &ONE).await.unwrap_err().to_string(),
        "the broker is shutting down"
    );

    let redrive = Redrive::open(dir.path()).await.unwrap();
    let (tell, mut told) = mpsc::channel(1);
    let handler = move |Json(order): Json<Order>, _: EventContext| {
        let tell = tell.clone();
        async move { tell.send(order).await }
    };
    let bus = redrive.bus();
    bus.subscribe("order.*", handler).await.unwrap();
    assert_eq!(told.recv().await, Some(ONE));
    redrive.close().await.unwrap();
}

#[tokio::test]
async fn an_event_that_is_under_way_at_the_end_comes_once_more() {
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions { grace: Duration::ZERO, ..OpenOptions::default() };
    let redrive = Redrive::open_with(dir.path(), options).await.unwrap();
    let (tell, mut told) = mpsc::channel(1);
    let handler = move |_: String, event: EventContext| {
        let tell = tell.clone();
        async move {
            tell.send(event.attempt()).await?;
            std::future::pending::<Result<(), Failure>>().await
        }
    };
    let bus = redrive.bus();
    bus.subscribe("order.*", handler).await.unwrap();
    bus.publish("order.created", &ONE).await.unwrap();
    assert_eq!(told.recv().await, Some(1));
    redrive.close().await.unwrap();

    let redrive = Redrive::open(dir.path()).await.unwrap();
    let mut told = handle(&redrive.bus(), "order.any", |_| Ok(())).await;
    assert_eq!(told.recv().await, Some((1, 1)), "it was given back, and not charged");
    redrive.close().await.unwrap();
}

#[tokio::test]
async fn a_webhook_stays_the_same_when_a_program_starts_again() {
    let dir = tempfile::tempdir().unwrap();
    let redrive = Redrive::open(dir.path()).await.unwrap();
    let bus = redrive.bus();
    let private = bus.subscribe_webhook("order.*", "http://127.0.0.1/orders").await.unwrap_err();
    assert!(private.to_string().starts_with("url"), "{private}");
    let first = bus.subscribe_webhook("order.*", "https://shop.example").await.unwrap();
    assert_eq!(first.name(), "order.any-webhook");
    assert!(first.secret().unwrap().starts_with("whsec_"));
    assert!(!format!("{first:?}").contains("whsec_"));
    redrive.close().await.unwrap();

    let redrive = Redrive::open(dir.path()).await.unwrap();
    let bus = redrive.bus();
    let again = bus.subscribe_webhook("order.*", "https://shop.example").await.unwrap();
    assert_eq!((again.name(), again.secret()), ("order.any-webhook", None), "a secret is told once");
    let other = bus.subscribe_webhook("order.*", "https://bank.example").await.unwrap_err();
    assert!(matches!(other, Error::NameTaken { .. }), "{other:?}");
    // Under a name that was given, it is the same one at another place.
    bus.subscribe_webhook("order.*", "https://bank.example").name("order.any-webhook").await.unwrap();
    assert_eq!(bus.subscriptions().await.unwrap().len(), 1);
    redrive.close().await.unwrap();

    let options = OpenOptions { webhooks: None, ..OpenOptions::default() };
    let redrive = Redrive::open_with(dir.path(), options).await.unwrap();
    let refused = redrive.bus().subscribe_webhook("user.*", "https://shop.example").await.unwrap_err();
    assert_eq!(refused.code(), "WRONG_TARGET");
    redrive.close().await.unwrap();
}

#[tokio::test]
async fn a_handler_may_hold_the_bus_and_even_its_broker() {
    let dir = tempfile::tempdir().unwrap();
    let redrive = Redrive::open(dir.path()).await.unwrap();
    let bus = redrive.bus();
    let mut told = handle(&bus, "mail", |_| Ok(())).await;
    let (held, next) = (redrive.clone(), bus.clone());
    bus.subscribe("cart.*", move |Json(order): Json<Order>, _: EventContext| {
        let (_held, next) = (held.clone(), next.clone());
        async move { next.publish("order.created", &order).await.map(drop) }
    })
    .await
    .unwrap();
    bus.publish("cart.paid", &ONE).await.unwrap();
    assert_eq!(told.recv().await, Some((1, 1)));
    redrive.close().await.unwrap();
}
