//! What becomes of an event that a handler fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use redrive::testing::TimeTravel;
use redrive::{BreakerState, EventContext, Failure, Json, RetrySettings, Which};
use tokio::sync::{mpsc, oneshot};

use crate::{ONE, Order, exact, handle};

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
