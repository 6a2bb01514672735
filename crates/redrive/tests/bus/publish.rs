//! An event on its way to who wants it.

use std::time::Duration;

use redrive::testing::TimeTravel;
use redrive::{Context, EventContext, Json, Redrive, Worker};
use tokio::sync::mpsc;

use crate::{ONE, Order, handle};

#[tokio::test]
async fn an_event_reaches_everybody_who_wants_it() {
    let redrive = TimeTravel::start().await.unwrap();
    let bus = redrive.bus();
    let (tell, mut told) = mpsc::channel(8);
    for (name, pattern, region) in
        [("mail", "order.*", "eu"), ("all", "**", "eu"), ("far", "order.*", "us"), ("users", "user.*", "eu")]
    {
        let tell = tell.clone();
        bus.subscribe(pattern, move |Json(order): Json<Order>, event: EventContext| {
            let tell = tell.clone();
            async move { tell.send((event.subscription().to_owned(), event.topic().to_owned(), order)).await }
        })
        .name(name)
        .filter("region", [region])
        .await
        .unwrap();
    }
    let event = bus.event("order.created").json(&ONE).unwrap().header("region", "eu");
    assert_eq!(event.publish().await.unwrap().subscriptions, 2);
    let mut names = Vec::new();
    for _ in 0..2 {
        let (name, topic, order) = told.recv().await.unwrap();
        assert_eq!((topic.as_str(), order), ("order.created", ONE));
        names.push(name);
    }
    names.sort();
    assert_eq!(names, ["all", "mail"]);
    assert!(told.try_recv().is_err());
}

#[tokio::test]
async fn a_handler_knows_its_event() {
    let redrive = TimeTravel::start().await.unwrap();
    let bus = redrive.bus();
    let (tell, mut told) = mpsc::channel(1);
    bus.subscribe("order.*", move |body: String, event: EventContext| {
        let tell = tell.clone();
        async move { tell.send((body, event)).await.map_err(|_| "gone") }
    })
    .timeout(Duration::from_secs(3))
    .await
    .unwrap();
    let event = bus.event("order.created").body("hello").content_type("text/plain").kind("created");
    let event = event.header("region", "eu").attribute("source", "/shop");
    let published = event.publish().await.unwrap();
    let (body, event) = told.recv().await.unwrap();
    assert_eq!((body.as_str(), event.id()), ("hello", published.id));
    assert_eq!(
        (event.kind(), event.content_type(), event.subscription()),
        ("created", "text/plain", "order.any")
    );
    assert_eq!((event.header("region"), event.header("ce-source")), (Some("eu"), None));
    assert_eq!(event.attributes().collect::<Vec<_>>(), [("source", "/shop")]);
    assert_eq!(event.headers().count(), 1);
    assert!(event.fencing_token() > 0);
    assert_eq!(event.deadline().duration_since(event.published_at()).unwrap(), Duration::from_secs(3));
}

#[tokio::test]
async fn several_events_have_an_answer_each_and_a_key_is_published_once() {
    let redrive = TimeTravel::start().await.unwrap();
    let bus = redrive.bus();
    let mut told = handle(&bus, "mail", |_| Ok(())).await;
    let event =
        |topic: &str, number, key: &str| bus.event(topic).json(&Order { number }).unwrap().dedup_key(key);
    let events =
        [event("order.a", 1, "a"), event("order.a", 2, "a"), event("order.b", 3, "b"), event("user", 4, "c")];
    let published = bus.publish_all(events).await.unwrap();
    let published: Vec<_> = published.into_iter().map(Result::unwrap).collect();
    let said: Vec<(bool, usize)> = published.iter().map(|one| (one.duplicate, one.subscriptions)).collect();
    assert_eq!(said, [(false, 1), (true, 1), (false, 1), (false, 0)]);
    assert_eq!(published[0].id, published[1].id);
    let mut seen = [told.recv().await.unwrap().0, told.recv().await.unwrap().0];
    seen.sort_unstable();
    assert_eq!(seen, [1, 3]);
    let refused = bus.publish("no topic", &1).await.unwrap_err();
    assert!(refused.to_string().starts_with("topic"), "{refused}");
}

#[tokio::test]
async fn events_can_go_into_a_queue() {
    let redrive = TimeTravel::start().await.unwrap();
    let bus = redrive.bus();
    assert_eq!(bus.subscribe_queue("order.*", "work").await.unwrap(), "order.any-work");
    bus.publish("order.created", &ONE).await.unwrap();
    let (tell, mut told) = mpsc::channel(1);
    let worker = Worker::builder("work").handler(move |Json(order): Json<Order>, _: Context| {
        let tell = tell.clone();
        async move { tell.send(order).await }
    });
    let running = redrive.run(worker.unwrap());
    assert_eq!(told.recv().await, Some(ONE));
    running.shutdown().await.unwrap();
    // As a program does that starts again.
    bus.subscribe_queue("order.*", "work").await.unwrap();
    let all = bus.subscriptions().await.unwrap();
    assert_eq!((all.len(), all[0].target, all[0].pattern.as_str()), (1, "queue", "order.*"));
}

#[tokio::test]
async fn the_past_is_replayed_to_who_asks_for_it() {
    let redrive = TimeTravel::start().await.unwrap();
    let bus = redrive.bus();
    bus.topic("order.**").retain(Duration::from_hours(1)).set().await.unwrap();
    bus.publish("order.created", &Order { number: 1 }).await.unwrap();
    redrive.advance(Duration::from_mins(1));
    bus.publish("order.created", &Order { number: 2 }).await.unwrap();
    redrive.advance(Duration::from_secs(10));
    let (tell, mut told) = mpsc::channel(8);
    let handler = move |Json(order): Json<Order>, _: EventContext| {
        let tell = tell.clone();
        async move { tell.send(order.number).await }
    };
    bus.subscribe("order.*", handler).replay_from(Duration::from_secs(30)).await.unwrap();
    assert_eq!(told.recv().await, Some(2));
    redrive.drain_subscription("order.any").await.unwrap();
    bus.replay("order.any", Duration::from_hours(1)).await.unwrap();
    let mut again = [told.recv().await, told.recv().await];
    again.sort();
    assert_eq!(again, [Some(1), Some(2)]);
}

#[tokio::test]
async fn who_does_not_use_the_bus_sees_nothing_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let redrive = Redrive::open(dir.path()).await.unwrap();
    let bus = redrive.bus();
    assert_eq!(bus.publish("order.created", &ONE).await.unwrap().subscriptions, 0);
    assert_eq!(redrive.stats("bus.relay").await.unwrap_err().code(), "QUEUE_NOT_FOUND");
    assert_eq!((bus.topics().await.unwrap(), bus.subscriptions().await.unwrap()), (vec![], vec![]));
    redrive.close().await.unwrap();
}
