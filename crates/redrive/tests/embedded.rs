//! The broker inside a program: what the examples do not show.

use std::time::Duration;

use redrive::testing::TimeTravel;
use redrive::{
    Context, Error, NewMessage, OpenOptions, QueueSettings, Redrive, State, Which, Worker, WorkerError,
};
use tokio::sync::mpsc;

#[tokio::test]
async fn a_directory_that_is_closed_can_be_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let redrive = Redrive::open(dir.path()).await.unwrap();
    let id = redrive.enqueue("jobs", &1).await.unwrap().id;
    let second = Redrive::open(dir.path()).await.unwrap_err();
    assert!(matches!(second, Error::Broker(_)), "one owns it at a time: {second:?}");
    redrive.close().await.unwrap();
    let redrive = Redrive::open(dir.path()).await.unwrap();
    assert_eq!(redrive.state("jobs", &id).await.unwrap(), Some(State::Ready));
    redrive.close().await.unwrap();
}

#[tokio::test]
async fn a_worker_ends_where_its_broker_does() {
    let redrive = Redrive::in_memory().await.unwrap();
    let worker = Worker::builder("jobs").handler(async |_: String, _: Context| ()).unwrap();
    let mut running = redrive.run(worker);
    redrive.enqueue("jobs", &1).await.unwrap();
    redrive.close().await.unwrap();
    let ended = running.ended().await.unwrap_err();
    assert!(matches!(&ended, WorkerError::Refused(_)), "{ended:?}");
    assert_eq!(ended.to_string(), "the broker is shutting down");
}

#[tokio::test]
async fn without_auto_create_a_queue_must_be_there() {
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions { auto_create: false, ..OpenOptions::default() };
    let redrive = Redrive::open_with(dir.path(), options).await.unwrap();
    let refused = redrive.enqueue("jobs", &1).await.unwrap_err();
    assert_eq!((refused.code(), refused.is_retryable()), ("QUEUE_NOT_FOUND", false));
    let worker = Worker::builder("jobs").handler(async |_: String, _: Context| ()).unwrap();
    assert!(redrive.run(worker).ended().await.is_err());
    redrive.create_queue("jobs", QueueSettings::default()).await.unwrap();
    redrive.enqueue("jobs", &1).await.unwrap();
    redrive.close().await.unwrap();
}

#[tokio::test]
async fn wrong_input_is_refused_by_its_field() {
    let redrive = Redrive::in_memory().await.unwrap();
    let refused = redrive.enqueue_message("jobs", NewMessage::new("x").priority(10)).await.unwrap_err();
    assert_eq!(refused.to_string(), "priority: must lie between 0 and 9");
    let refused = redrive.enqueue("no queue", &1).await.unwrap_err();
    assert!(refused.to_string().starts_with("queue"), "{refused}");
}

#[tokio::test]
async fn time_passes_when_a_test_says_so() {
    let redrive = TimeTravel::start().await.unwrap();
    let (tried, mut is_tried) = mpsc::channel(8);
    let worker = Worker::builder("jobs").handler(move |_: String, context: Context| {
        let tried = tried.clone();
        async move {
            tried.send(context.attempt()).await.unwrap();
            Err::<(), _>("no")
        }
    });
    let running = redrive.run(worker.unwrap());
    let id = redrive.enqueue("jobs", &1).await.unwrap().id;
    for attempt in 1..=3 {
        assert_eq!(is_tried.recv().await, Some(attempt));
        redrive.drain("jobs").await.unwrap();
        redrive.advance(Duration::from_mins(1));
    }
    assert_eq!(redrive.state("jobs", &id).await.unwrap(), Some(State::Dead));
    assert_eq!(redrive.redrive("jobs", Which::Ids(vec![id])).await.unwrap(), 1);
    assert_eq!(is_tried.recv().await, Some(1));
    running.shutdown().await.unwrap();
}
