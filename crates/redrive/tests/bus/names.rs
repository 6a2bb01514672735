//! The name of a subscription, and who handles it.

use futures::FutureExt;
use redrive::testing::TimeTravel;
use redrive::{Error, EventContext, Json};
use tokio::sync::{mpsc, oneshot};

use crate::{ONE, Order, handle};

#[tokio::test]
async fn a_handler_that_is_stopped_leaves_events_waiting_for_the_next() {
    let redrive = TimeTravel::start().await.unwrap();
    let bus = redrive.bus();
    let subscription = bus.subscribe("order.*", async |_: String, _: EventContext| ()).await.unwrap();
    subscription.stop().await.unwrap();
    for (number, region) in [(1, "eu"), (2, "us")] {
        let event = bus.event("order.created").json(&Order { number }).unwrap().header("region", region);
        event.publish().await.unwrap();
    }
    assert_eq!(bus.stats("order.any").await.unwrap().ready, 2);
    let (tell, mut told) = mpsc::channel(8);
    let handler = move |Json(order): Json<Order>, _: EventContext| {
        let tell = tell.clone();
        async move { tell.send(order.number).await }
    };
    // What is said now counts: one at a time, and from now on only what is of the region.
    bus.subscribe("order.*", handler).filter("region", ["eu"]).max_in_flight(1).await.unwrap();
    assert_eq!((told.recv().await, told.recv().await), (Some(1), Some(2)));
    let far = bus.event("order.created").json(&ONE).unwrap().header("region", "us").publish().await.unwrap();
    assert_eq!(far.subscriptions, 0);
}

#[tokio::test]
async fn whoever_stops_a_handler_waits_for_what_is_under_way() {
    let redrive = TimeTravel::start().await.unwrap();
    let bus = redrive.bus();
    let (start, mut started) = mpsc::channel(1);
    let handler = move |_: String, _: EventContext| {
        let start = start.clone();
        async move {
            let (go_on, may_go_on) = oneshot::channel::<()>();
            start.send(go_on).await.map_err(|_| "gone")?;
            may_go_on.await.map_err(|_| "gone")
        }
    };
    let subscription = bus.subscribe("order.*", handler).await.unwrap();
    bus.publish("order.created", &ONE).await.unwrap();
    let go_on = started.recv().await.unwrap();
    let mut stop = Box::pin(subscription.stop());
    assert!((&mut stop).now_or_never().is_none(), "it waits");
    go_on.send(()).unwrap();
    stop.await.unwrap();
    let stats = bus.stats("order.any").await.unwrap();
    assert_eq!((stats.ready, stats.leased, stats.delayed), (0, 0, 0), "it is done, and that is known");
}

#[tokio::test]
async fn two_handlers_of_one_name_are_refused_with_a_hint() {
    let redrive = TimeTravel::start().await.unwrap();
    let bus = redrive.bus();
    let handler = async |_: String, _: EventContext| ();
    bus.subscribe("order.*", handler).await.unwrap();
    let taken = bus.subscribe("order.*", handler).await.unwrap_err();
    assert!(matches!(taken, Error::NameTaken { .. }), "{taken:?}");
    assert_eq!(
        taken.to_string(),
        "a subscription to order.* would be called order.any, and another one is already: \
         give it a name of its own with `.name(…)`"
    );
    assert_eq!((taken.code(), taken.is_retryable()), ("SUBSCRIPTION_EXISTS", false));
    let second = bus.subscribe("order.*", handler).name("second").await.unwrap();
    let twice = bus.subscribe("order.*", handler).name("second").await.unwrap_err();
    assert!(matches!(twice, Error::AlreadyHandled(_)), "{twice:?}");
    second.stop().await.unwrap();
    // The name of a subscription that is there and of another pattern is not taken over by chance, either.
    bus.subscribe("user.any", handler).await.unwrap().stop().await.unwrap();
    let taken = bus.subscribe("user.*", handler).await.unwrap_err();
    assert!(matches!(taken, Error::NameTaken { .. }), "{taken:?}");
    let elsewhere = bus.subscribe_queue("order.*", "work").name("second").await.unwrap_err();
    assert!(matches!(elsewhere, Error::OtherTarget { target: "handler", .. }), "{elsewhere:?}");
}

#[tokio::test]
async fn an_old_handle_does_not_stop_the_next_of_its_name() {
    let redrive = TimeTravel::start().await.unwrap();
    let bus = redrive.bus();
    let old = bus.subscribe("order.*", async |_: String, _: EventContext| ()).name("mail").await.unwrap();
    bus.unsubscribe("mail").await.unwrap();
    assert_eq!(bus.publish("order.created", &ONE).await.unwrap().subscriptions, 0);
    let mut told = handle(&bus, "mail", |_| Ok(())).await;
    old.stop().await.unwrap();
    bus.publish("order.created", &ONE).await.unwrap();
    assert_eq!(told.recv().await, Some((1, 1)));
}

#[tokio::test]
async fn a_subscription_that_is_paused_gets_its_events_when_it_is_resumed() {
    let redrive = TimeTravel::start().await.unwrap();
    let bus = redrive.bus();
    let mut told = handle(&bus, "mail", |_| Ok(())).await;
    bus.pause("mail").await.unwrap();
    bus.publish("order.created", &ONE).await.unwrap();
    assert!(bus.subscriptions().await.unwrap()[0].paused);
    assert_eq!(bus.stats("mail").await.unwrap().ready, 1);
    bus.resume("mail").await.unwrap();
    assert_eq!(told.recv().await, Some((1, 1)));
}
