//! The event bus inside a program.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures::FutureExt;
use redrive::testing::TimeTravel;
use redrive::{
    BreakerState, Context, Error, EventBus, EventContext, Failure, Jitter, Json, OpenOptions, Redrive,
    RetrySettings, Which, Worker,
};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
struct Order {
    number: u64,
}

const ONE: Order = Order { number: 1 };

/// Delays to the millisecond.
fn exact() -> RetrySettings {
    RetrySettings { jitter: Some(Jitter::None), ..RetrySettings::default() }
}

/// What a handler saw.
type Seen = (u64, u32);

/// A handler that tells of every call, and then says what `say` does.
async fn handle(
    bus: &EventBus,
    name: &str,
    say: impl Fn(&EventContext) -> Result<(), Failure> + Send + Sync + 'static,
) -> mpsc::Receiver<Seen> {
    let (tell, told) = mpsc::channel(64);
    let say = Arc::new(say);
    bus.subscribe("order.*", move |Json(order): Json<Order>, event: EventContext| {
        let (tell, say) = (tell.clone(), Arc::clone(&say));
        async move {
            tell.send((order.number, event.attempt())).await?;
            say(&event)
        }
    })
    .name(name)
    .retry(exact())
    .await
    .unwrap();
    told
}

/// Waits until something is so: what a handler leads to follows a moment after it.
async fn until(is_so: impl AsyncFn() -> bool) {
    while !is_so().await {
        tokio::task::yield_now().await;
    }
}

/// Waits until an event of a sequential topic waits for its next attempt, or is dead.
async fn until_settled(redrive: &Redrive, queue: &str) {
    until(async || {
        let stats = redrive.stats(queue).await.unwrap();
        stats.ready + stats.leased == 0
    })
    .await;
}

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
async fn what_is_overridden_in_part_follows_the_defaults_in_the_rest() {
    let redrive = TimeTravel::start().await.unwrap();
    let bus = redrive.bus();
    let (tell, mut told) = mpsc::channel(8);
    let retry =
        RetrySettings { max_attempts: Some(5), base_delay: Some(Duration::from_millis(500)), ..exact() };
    let handler = move |_: Json<Order>, event: EventContext| {
        let tell = tell.clone();
        async move {
            tell.send(event.attempt()).await?;
            Err::<(), _>(Failure::retry("no"))
        }
    };
    bus.subscribe("order.*", handler).retry(retry).no_breaker().await.unwrap();
    bus.publish("order.created", &ONE).await.unwrap();
    assert_eq!(told.recv().await, Some(1));
    for (attempt, delay) in [(2, 500), (3, 1_000), (4, 2_000), (5, 4_000)] {
        redrive.drain_subscription("order.any").await.unwrap();
        redrive.advance(Duration::from_millis(delay - 1));
        let stats = bus.stats("order.any").await.unwrap();
        assert_eq!((stats.delayed, stats.ready), (1, 0), "attempt {attempt}");
        redrive.advance(Duration::from_millis(1));
        assert_eq!(told.recv().await, Some(attempt));
    }
    redrive.drain_subscription("order.any").await.unwrap();
    let dead = bus.dead("order.any").await.unwrap();
    assert_eq!((dead[0].attempts, dead[0].reason, dead[0].error.as_str()), (5, "max_attempts", "no"));
    assert_eq!(
        (dead[0].topic.as_str(), dead[0].body.as_ref()),
        ("order.created", br#"{"number":1}"#.as_ref())
    );
}

/// Tells when it is dropped.
struct Guard(Option<oneshot::Sender<()>>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.take().map(|tell| tell.send(()));
    }
}

#[tokio::test]
async fn a_handler_that_takes_too_long_is_dropped_and_not_heard_any_more() {
    let redrive = TimeTravel::start().await.unwrap();
    let bus = redrive.bus();
    let (start, mut started) = mpsc::channel(2);
    let handler = move |_: Json<Order>, event: EventContext| {
        let start = start.clone();
        async move {
            let (dropped, is_dropped) = oneshot::channel();
            let (go_on, may_go_on) = oneshot::channel::<()>();
            let _guard = Guard(Some(dropped));
            start.send((event.attempt(), is_dropped, go_on)).await.map_err(|_| "gone")?;
            if event.attempt() == 1 {
                may_go_on.await.map_err(|_| "gone")?;
            }
            Ok::<(), Failure>(())
        }
    };
    bus.subscribe("order.*", handler).timeout(Duration::from_secs(2)).retry(exact()).await.unwrap();
    bus.publish("order.created", &ONE).await.unwrap();
    let (_, is_dropped, go_on) = started.recv().await.unwrap();
    redrive.advance(Duration::from_secs(2));
    is_dropped.await.unwrap();
    redrive.drain_subscription("order.any").await.unwrap();
    assert!(go_on.send(()).is_err(), "nobody is there to go on");
    assert_eq!(bus.stats("order.any").await.unwrap().delayed, 1, "the attempt has failed");
    redrive.advance(Duration::from_secs(1));
    assert_eq!(started.recv().await.unwrap().0, 2);
    redrive.drain_subscription("order.any").await.unwrap();
    let stats = bus.stats("order.any").await.unwrap();
    assert_eq!((stats.delayed, stats.dead), (0, 0), "the second one did it");
}

#[tokio::test]
async fn an_event_that_is_buried_is_dead_at_once_and_comes_back_when_asked_for() {
    let redrive = TimeTravel::start().await.unwrap();
    let bus = redrive.bus();
    let broken = Arc::new(AtomicBool::new(true));
    let is_broken = Arc::clone(&broken);
    let mut told = handle(&bus, "mail", move |_| {
        if is_broken.load(Ordering::SeqCst) { Err(Failure::bury("never")) } else { Ok(()) }
    })
    .await;
    let mut other = handle(&bus, "other", |_| Ok(())).await;
    bus.publish("order.created", &ONE).await.unwrap();
    assert_eq!((told.recv().await, other.recv().await), (Some((1, 1)), Some((1, 1))));
    redrive.drain_subscription("mail").await.unwrap();
    let dead = bus.dead("mail").await.unwrap();
    assert_eq!((dead.len(), dead[0].reason, dead[0].error.as_str()), (1, "buried", "never"));
    assert_eq!(bus.dead("other").await.unwrap(), []);
    broken.store(false, Ordering::SeqCst);
    let none = bus.redrive_some("mail", Which::Error("other".to_owned()), "ada", "tested").await.unwrap();
    assert_eq!(none, 0);
    assert_eq!(bus.redrive("mail", "ada", "it was mended").await.unwrap(), 1);
    assert_eq!(told.recv().await, Some((1, 1)));
    redrive.drain_subscription("mail").await.unwrap();
    assert_eq!(bus.dead("mail").await.unwrap(), []);
    assert!(other.try_recv().is_err(), "it went to the one that asked");
}

#[tokio::test]
async fn a_panic_is_a_failure() {
    let redrive = TimeTravel::start().await.unwrap();
    let bus = redrive.bus();
    let retry = RetrySettings { max_attempts: Some(1), ..exact() };
    let handler = async |body: String, _: EventContext| assert!(body.is_empty(), "boom");
    bus.subscribe("order.*", handler).retry(retry).await.unwrap();
    bus.publish("order.created", &ONE).await.unwrap();
    redrive.drain_subscription("order.any").await.unwrap();
    assert_eq!(bus.dead("order.any").await.unwrap()[0].error, "the handler panicked: boom");
}

#[tokio::test]
async fn what_is_given_back_is_not_charged() {
    let redrive = TimeTravel::start().await.unwrap();
    let bus = redrive.bus();
    let calls = AtomicU32::new(0);
    let mut told = handle(&bus, "mail", move |_| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => Err(Failure::Release(Some(Duration::from_secs(9)))),
        _ => Ok(()),
    })
    .await;
    bus.publish("order.created", &ONE).await.unwrap();
    assert_eq!(told.recv().await, Some((1, 1)));
    redrive.drain_subscription("mail").await.unwrap();
    redrive.advance(Duration::from_secs(9));
    assert_eq!(told.recv().await, Some((1, 1)), "the first attempt once more");
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_buried() {
    let redrive = TimeTravel::start().await.unwrap();
    let bus = redrive.bus();
    let mut told = handle(&bus, "mail", |_| Ok(())).await;
    bus.publish("order.created", "no order").await.unwrap();
    redrive.drain_subscription("mail").await.unwrap();
    let dead = bus.dead("mail").await.unwrap();
    assert_eq!((dead[0].reason, dead[0].attempts), ("buried", 1));
    assert!(dead[0].error.starts_with("the body cannot be read: invalid type"), "{}", dead[0].error);
    assert!(told.try_recv().is_err());
}

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
async fn handlers_of_a_sequential_topic_run_in_their_order_and_none_twice() {
    let redrive = TimeTravel::start().await.unwrap();
    let bus = redrive.bus();
    let topic = bus.topic("order.**").sequential().set().await.unwrap();
    let queue = topic.queue.unwrap();
    let (tell, mut told) = mpsc::channel(64);
    for name in ["first", "second", "third"] {
        let tell = tell.clone();
        let handler = move |_: String, event: EventContext| {
            let tell = tell.clone();
            async move {
                tell.send((name, event.attempt())).await?;
                if name == "second" && event.attempt() == 1 { Err(Failure::retry("no")) } else { Ok(()) }
            }
        };
        bus.subscribe("order.*", handler).name(name).retry(exact()).await.unwrap();
    }
    bus.publish("order.created", &ONE).await.unwrap();
    assert_eq!((told.recv().await, told.recv().await), (Some(("first", 1)), Some(("second", 1))));
    until_settled(&redrive, &queue).await;
    assert!(told.try_recv().is_err(), "the third waits for the second");
    redrive.advance(Duration::from_secs(1));
    assert_eq!((told.recv().await, told.recv().await), (Some(("second", 2)), Some(("third", 2))));
    until_settled(&redrive, &queue).await;
    let stats = redrive.stats(&queue).await.unwrap();
    assert_eq!((stats.delayed, stats.dead), (0, 0));
    assert!(told.try_recv().is_err());
}

#[tokio::test]
async fn several_overrides_of_a_sequential_topic_are_one_policy_and_a_redrive_goes_on_where_it_died() {
    let redrive = TimeTravel::start().await.unwrap();
    let bus = redrive.bus();
    let queue = bus.topic("order.**").sequential().set().await.unwrap().queue.unwrap();
    let mended = Arc::new(AtomicBool::new(false));
    let (tell, mut told) = mpsc::channel(64);
    for (name, max_attempts, base_ms) in
        [("first", Some(2), None), ("second", Some(3), Some(200)), ("third", None, Some(100))]
    {
        let (tell, mended) = (tell.clone(), Arc::clone(&mended));
        let handler = move |_: String, _: EventContext| {
            let (tell, mended) = (tell.clone(), Arc::clone(&mended));
            async move {
                tell.send(name).await?;
                let fails = name == "second" && !mended.load(Ordering::SeqCst);
                if fails { Err(Failure::retry("no")) } else { Ok(()) }
            }
        };
        let retry = RetrySettings { max_attempts, base_delay: base_ms.map(Duration::from_millis), ..exact() };
        bus.subscribe("order.*", handler).name(name).retry(retry).await.unwrap();
    }
    bus.publish("order.created", &ONE).await.unwrap();
    assert_eq!((told.recv().await, told.recv().await), (Some("first"), Some("second")));
    // The shortest base, 100 ms, and the most attempts, 3.
    for delay in [100, 200] {
        until_settled(&redrive, &queue).await;
        redrive.advance(Duration::from_millis(delay));
        assert_eq!(told.recv().await, Some("second"));
    }
    until_settled(&redrive, &queue).await;
    assert_eq!(bus.dead("first").await.unwrap(), []);
    let dead = bus.dead("second").await.unwrap();
    assert_eq!((dead[0].reason, dead[0].attempts), ("max_attempts", 3));
    assert_eq!(bus.dead("third").await.unwrap()[0].reason, "not_reached");
    mended.store(true, Ordering::SeqCst);
    assert_eq!(bus.redrive("second", "ada", "mended").await.unwrap(), 1);
    assert_eq!((told.recv().await, told.recv().await), (Some("second"), Some("third")));
    until_settled(&redrive, &queue).await;
    assert_eq!(redrive.stats(&queue).await.unwrap().dead, 0);
}

#[tokio::test]
async fn what_succeeded_in_a_sequence_is_not_run_again_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let firsts = Arc::new(AtomicU32::new(0));
    for life in 1..=2 {
        let redrive = Redrive::open(dir.path()).await.unwrap();
        let bus = redrive.bus();
        bus.topic("order.**").sequential().set().await.unwrap();
        let count = Arc::clone(&firsts);
        let first = move |_: String, _: EventContext| {
            count.fetch_add(1, Ordering::SeqCst);
            async {}
        };
        let (tell, mut told) = mpsc::channel(1);
        let second = move |_: String, _: EventContext| {
            let tell = tell.clone();
            async move {
                tell.send(()).await?;
                if life == 1 { Err(Failure::retry("not in this life")) } else { Ok(()) }
            }
        };
        let retry = RetrySettings { max_attempts: Some(0), ..exact() };
        bus.subscribe("order.*", first).name("first").retry(retry.clone()).await.unwrap();
        bus.subscribe("order.*", second).name("second").retry(retry).no_breaker().await.unwrap();
        if life == 1 {
            bus.publish("order.created", &ONE).await.unwrap();
        }
        assert_eq!(told.recv().await, Some(()));
        drop(told);
        redrive.close().await.unwrap();
    }
    assert_eq!(firsts.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_breaker_opens_in_an_outage_and_not_for_one_poison_message() {
    let redrive = TimeTravel::start().await.unwrap();
    let bus = redrive.bus();
    let down = Arc::new(AtomicBool::new(false));
    let is_down = Arc::clone(&down);
    let (tell, mut told) = mpsc::channel(64);
    let handler = move |Json(order): Json<Order>, _: EventContext| {
        let (tell, is_down) = (tell.clone(), Arc::clone(&is_down));
        async move {
            tell.send(order.number).await?;
            let fails = order.number == 0 || is_down.load(Ordering::SeqCst);
            if fails { Err(Failure::retry("no")) } else { Ok(()) }
        }
    };
    let retry = RetrySettings { max_attempts: Some(0), max_delay: Some(Duration::from_secs(1)), ..exact() };
    bus.subscribe("order.*", handler).name("mail").retry(retry).await.unwrap();
    bus.publish("order.created", &Order { number: 0 }).await.unwrap();
    for _ in 0..10 {
        assert_eq!(told.recv().await, Some(0));
        redrive.drain_subscription("mail").await.unwrap();
        redrive.advance(Duration::from_secs(1));
    }
    assert_eq!(told.recv().await, Some(0));
    redrive.drain_subscription("mail").await.unwrap();
    let breaker = bus.breaker("mail").await.unwrap().unwrap();
    assert_eq!((breaker.state, breaker.messages, breaker.failed), (BreakerState::Closed, 1, 1));

    down.store(true, Ordering::SeqCst);
    for number in 1..=3 {
        bus.publish("order.created", &Order { number }).await.unwrap();
        assert_eq!(told.recv().await, Some(number));
        redrive.drain_subscription("mail").await.unwrap();
    }
    let breaker = bus.breaker("mail").await.unwrap().unwrap();
    assert_eq!(breaker.state, BreakerState::Open);
    assert!(breaker.open_until.is_some());
    redrive.advance(Duration::from_secs(29));
    assert!(told.try_recv().is_err(), "nothing is tried while it is open");
    down.store(false, Ordering::SeqCst);
    bus.reset_breaker("mail").await.unwrap();
    let mut seen = Vec::new();
    while !(1..=3).all(|number| seen.contains(&number)) {
        seen.extend(told.recv().await);
    }
}

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
