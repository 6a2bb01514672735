//! A long poll at one instance, and what happens at another.

use redrive_broker::{Bury, NewOperation, Release, Target, Work};
use redrive_core::lifecycle::{Reschedule, When};
use redrive_core::message::ErrorText;
use redrive_core::queue::{Pause, QueueConfig, QueueName};
use redrive_core::time::Millis;
use redrive_store::{
    Batch, CreateQueue, DeleteQueue, EnqueueItem, Filter, Now, PauseQueue, Selection, Store,
};

use super::{Town, eventually};
use crate::world::{World, done, retry};

fn all(world: &World) -> Selection {
    Selection::new(world.queue.clone(), Filter::default())
}

#[tokio::test(start_paused = true)]
async fn a_poll_wakes_for_an_enqueue_at_another_instance() {
    let (_town, a, b) = Town::two(QueueConfig::default()).await;
    let poll = b.poll(b.call(10)).await;
    a.put(1).await;
    assert_eq!(done(poll).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn many_messages_wake_many_polls() {
    let (_town, a, b) = Town::two(QueueConfig::default()).await;
    let mut polls = Vec::new();
    for _ in 0..5 {
        polls.push(b.poll(b.call(1)).await);
    }
    a.put(5).await;
    for poll in polls {
        assert_eq!(done(poll).await.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_poll_wakes_for_whatever_makes_a_message_ready_at_another_instance() {
    let (town, a, b) = Town::two(retry(Millis::ZERO, 9)).await;
    a.put(1).await;
    // nack
    let held = a.lease(1).await.remove(0);
    let poll = b.poll(b.call(1)).await;
    a.nack(&held).await;
    let held = done(poll).await.remove(0);
    // release
    let poll = b.poll(b.call(1)).await;
    let release = Release { target: Target::Receipt(held.receipt), delay: None };
    assert_eq!(a.broker.release(vec![release]).await.unwrap()[0].code(), None);
    done(poll).await;
    // expire
    let poll = b.poll(b.call(1)).await;
    town.clock.advance(Millis::from_secs(30));
    let held = done(poll).await.remove(0);
    // redrive
    a.broker.bury(vec![Bury { receipt: held.receipt, error: ErrorText::new("x") }]).await.unwrap();
    let poll = b.poll(b.call(1)).await;
    let work = Work::Redrive { by: "ann".parse().unwrap(), reason: "fixed".parse().unwrap() };
    let new = NewOperation { queue: a.queue.clone(), filter: Filter::default(), work, rate: None };
    a.broker.start_operation(new).await.unwrap();
    let held = done(poll).await.remove(0);
    // a release with a delay, and a reschedule
    let release = Release { target: Target::Receipt(held.receipt), delay: Some(Millis::from_secs(600)) };
    b.broker.release(vec![release]).await.unwrap();
    let poll = b.poll(b.call(1)).await;
    let change = Reschedule { visible: Some(When::Now), ..Reschedule::default() };
    assert_eq!(a.broker.reschedule(all(&a), change).await.unwrap().applied.len(), 1);
    done(poll).await;
}

#[tokio::test(start_paused = true)]
async fn a_poll_wakes_for_a_move_and_a_resume_at_another_instance() {
    let (_town, a, b) = Town::two(QueueConfig::default()).await;
    let other = QueueName::new("other").unwrap();
    let create = CreateQueue { name: other.clone(), config: QueueConfig::default() };
    a.broker.create_queue(create).await.unwrap();
    a.put(2).await;
    let mut call = b.call(2);
    call.queue = other.clone();
    let poll = b.poll(call).await;
    a.broker.move_to(all(&a), other).await.unwrap();
    assert_eq!(done(poll).await.len(), 2);
    let pause = |pause| PauseQueue { name: a.queue.clone(), key: None, pause };
    a.broker.pause_queue(pause(Some(Pause::UntilResumed))).await.unwrap();
    a.put(1).await;
    let poll = b.poll(b.call(1)).await;
    a.broker.pause_queue(pause(None)).await.unwrap();
    done(poll).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_delayed_at_one_instance_is_due_at_another_when_its_time_comes() {
    let (town, a, b) = Town::two(QueueConfig::default()).await;
    let poll = b.poll(b.call(1)).await;
    a.put_one(|message| message.draft.visible = When::After(Millis::new(1_500))).await;
    town.advance(Millis::new(1_499)).await;
    assert!(!poll.is_finished());
    town.clock.advance(Millis::new(1));
    assert_eq!(done(poll).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_signal_was_lost_is_found_all_the_same() {
    let (town, a, b) = Town::two(QueueConfig::default()).await;
    let poll = b.poll(b.call(1)).await;
    let mut message = a.message();
    message.draft.spec.id = redrive_core::message::MessageId::new(b.broker.now(), 9);
    let item = EnqueueItem { queue: a.queue.clone(), draft: message.draft };
    // An instance that is killed between the write and its word of it.
    town.store.enqueue(Now::At(b.broker.now()), Batch::one(item).unwrap()).await.unwrap();
    town.advance(Millis::new(4_999)).await;
    assert!(!poll.is_finished(), "nobody said anything");
    town.clock.advance(Millis::new(1));
    assert_eq!(done(poll).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_deleted_at_one_instance_ends_the_polls_at_another() {
    let (_town, a, b) = Town::two(QueueConfig::default()).await;
    let poll = b.poll(b.call(1)).await;
    a.broker.delete_queue(DeleteQueue { name: a.queue.clone(), force: true }).await.unwrap();
    let gone = tokio::time::timeout(std::time::Duration::from_secs(30), poll).await.unwrap().unwrap();
    assert_eq!(gone.unwrap_err().code(), "QUEUE_NOT_FOUND");
    // Another of its name is another queue.
    let create = CreateQueue { name: a.queue.clone(), config: QueueConfig::default() };
    a.broker.create_queue(create).await.unwrap();
    eventually(async || b.broker.lease(b.call(1)).await.is_ok()).await;
    let poll = b.poll(b.call(1)).await;
    a.put(1).await;
    done(poll).await;
}
