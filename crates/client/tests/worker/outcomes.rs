//! What becomes of a message, by what its handler does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use redrive_client::{BadBody, Context, Failure, Job, Json, NewMessage, Worker};
use redrive_core::message::{DeadReason, Message, State};
use tower::util::{MapRequestLayer, MapResponseLayer};

use crate::world::{QUEUE, World};

fn error(kept: &Message) -> &str {
    kept.history.last_error.as_ref().map_or("", |error| error.as_str())
}

#[derive(serde::Deserialize)]
struct Order {
    amount: u32,
}

#[tokio::test]
async fn a_handler_that_returns_acks() {
    let world = World::with_queue().await;
    let worker = Worker::builder(QUEUE).handler(async |Json(order): Json<Order>, context: Context| {
        assert_eq!((order.amount, context.attempt()), (7, 1));
        assert!(context.fencing_token() > 0);
    });
    assert!(world.one(r#"{"amount": 7}"#, worker.unwrap()).await.is_none(), "it is gone");
}

#[tokio::test]
async fn an_error_is_a_retry_with_its_text() {
    let world = World::with_queue().await;
    let worker = Worker::builder(QUEUE).handler(async |body: String, _| {
        body.parse::<u32>()?;
        Ok::<(), Failure>(())
    });
    let kept = world.one("x", worker.unwrap()).await.unwrap();
    assert_eq!((kept.state(world.broker.now()), kept.progress.attempts), (State::Delayed, 1));
    assert_eq!(error(&kept), "invalid digit found in string");
}

#[tokio::test]
async fn a_panic_is_a_retry_with_its_text() {
    let world = World::with_queue().await;
    let worker = Worker::builder(QUEUE).handler(async |_: Bytes, context: Context| {
        assert!(context.attempt() == 0, "out of cheese {}", 7);
    });
    let kept = world.one("x", worker.unwrap()).await.unwrap();
    assert_eq!(error(&kept), "the handler panicked: out of cheese 7");
    // Also where it panics before there is a future.
    let worker =
        Worker::builder(QUEUE).handler(|_: Bytes, _| -> std::future::Ready<()> { panic!("at once") });
    let kept = world.one("y", worker.unwrap()).await.unwrap();
    assert_eq!(error(&kept), "the handler panicked: at once");
}

#[tokio::test]
async fn retry_after_waits_at_least_that_long() {
    let world = World::with_queue().await;
    let worker = Worker::builder(QUEUE)
        .handler(async |_: Bytes, _| Err::<(), _>(Failure::retry_after(Duration::from_hours(2), "closed")));
    let kept = world.one("x", worker.unwrap()).await.unwrap();
    let wait = kept.progress.visible_at.since(world.broker.now()).get();
    assert_eq!((wait, error(&kept)), (7_200_000, "closed"));
}

#[tokio::test]
async fn release_gives_back_unharmed() {
    let world = World::with_queue().await;
    let later = Some(Duration::from_secs(9));
    let worker = Worker::builder(QUEUE)
        .handler(move |_: Bytes, _| async move { Err::<(), _>(Failure::Release(later)) });
    let kept = world.one("x", worker.unwrap()).await.unwrap();
    assert_eq!((kept.progress.attempts, kept.progress.deliveries), (0, 1));
    assert_eq!(kept.progress.visible_at.since(world.broker.now()).get(), 9_000);
}

#[tokio::test]
async fn bury_is_final() {
    let world = World::with_queue().await;
    let worker =
        Worker::builder(QUEUE).handler(async |_: Bytes, _| Err::<(), _>(Failure::bury("no such order")));
    let kept = world.one("x", worker.unwrap()).await.unwrap();
    assert_eq!(kept.progress.death().map(|death| death.reason), Some(DeadReason::Buried));
    assert_eq!(error(&kept), "no such order");
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_buried_or_tried_again() {
    let world = World::with_queue().await;
    let builder = || Worker::builder(QUEUE);
    let handler =
        async |_: Json<Order>, context: Context| assert!(context.attempt() == 0, "nobody can have read it");
    let kept = world.one("{", builder().handler(handler).unwrap()).await.unwrap();
    assert_eq!(kept.state(world.broker.now()), State::Dead);
    assert!(error(&kept).starts_with("the body cannot be read: EOF"), "{}", error(&kept));
    let worker = builder().bad_body(BadBody::Retry).handler(handler);
    let kept = world.one("{", worker.unwrap()).await.unwrap();
    assert_eq!(kept.state(world.broker.now()), State::Delayed);
}

#[tokio::test]
async fn a_handler_that_hangs_is_dropped_when_its_time_is_up() {
    let world = World::with_queue().await;
    let (led, mut begun) = crate::world::Led::new();
    let id = world.enqueue("x").await;
    let running = led.run(&world, |builder| builder.timeout(Duration::from_millis(50)));
    let hanging = begun.recv().await.unwrap();
    let kept = world.until_state(&id, State::Delayed).await;
    assert_eq!(error(&kept), "the handler took longer than 50ms");
    assert!(hanging.gone.await.is_err(), "its future was dropped");
    assert!(hanging.context.is_cancelled() && !hanging.context.is_lease_lost());
    assert!(hanging.end.send(Ok(())).is_err(), "nobody listens to what it says late");
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn layers_are_around_the_handler() {
    let world = World::with_queue().await;
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let worker = Worker::builder(QUEUE)
        .layer(MapRequestLayer::new(move |job: Job| {
            counted.fetch_add(job.context.message().body.len(), Ordering::SeqCst);
            job
        }))
        .layer(MapResponseLayer::new(|outcome: redrive_client::Outcome| {
            outcome.map_err(|_| Failure::bury("a layer said so"))
        }))
        .handler(async |_: Bytes, _| Err::<(), _>("try again"));
    let kept = world.one("four", worker.unwrap()).await.unwrap();
    assert_eq!((seen.load(Ordering::SeqCst), error(&kept)), (4, "a layer said so"));
}

#[tokio::test]
async fn a_checkpoint_is_kept_for_the_next_attempt() {
    let world = World::with_queue().await;
    let id = world.enqueue("x").await;
    let worker = Worker::builder(QUEUE).handler(async |_: Bytes, context: Context| {
        if context.message().checkpoint.is_empty() {
            let large = vec![0; redrive_client::CHECKPOINT_BYTES_MAX + 1];
            assert_eq!(
                context.checkpoint(large).await.unwrap_err().to_string(),
                "checkpoint: at most 4096 bytes, not 4097"
            );
            context.checkpoint("half").await?;
            return Err(Failure::retry("half done"));
        }
        assert_eq!(context.message().checkpoint, "half");
        Ok(())
    });
    let running = world.client.run(worker.unwrap());
    world.until_state(&id, State::Delayed).await;
    world.advance(Duration::from_mins(2));
    world.until_gone(&id).await;
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn many_messages_run_at_once_and_each_is_done_once() {
    let world = World::with_queue().await;
    let messages = (0..500).map(|number| NewMessage::new(number.to_string())).collect();
    let enqueued = world.client.enqueue_all(QUEUE, messages).await.unwrap();
    assert_eq!(enqueued.iter().filter(|one| one.is_ok()).count(), 500);
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let worker = Worker::builder(QUEUE).concurrency(64).handler(move |_: Bytes, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now()
    });
    let running = world.client.run(worker.unwrap());
    for one in enqueued {
        world.until_gone(&one.unwrap().id).await;
    }
    running.shutdown().await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 500);
}
