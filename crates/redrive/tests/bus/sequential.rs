//! Handlers that run one after another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use redrive::testing::TimeTravel;
use redrive::{EventContext, Failure, Redrive, RetrySettings};
use tokio::sync::mpsc;

use crate::{ONE, exact, until_settled};

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
