//! Events of one instance at the watchers of another.

use redrive_broker::{Event, Told, Watch};
use redrive_core::queue::{Pause, QueueConfig, QueueName};
use redrive_store::{PauseQueue, Signal, Store};
use std::sync::Arc;

use super::Town;
use crate::world::{World, done, event};

async fn pause(world: &World) {
    let request = PauseQueue { name: world.queue.clone(), key: None, pause: Some(Pause::UntilResumed) };
    world.broker.pause_queue(request).await.unwrap();
}

/// All events up to the next one about the queue itself.
async fn until_queue(watch: &mut Watch) -> Vec<Arc<Event>> {
    let mut seen = Vec::new();
    loop {
        let told = tokio::time::timeout(std::time::Duration::from_secs(30), watch.next()).await.unwrap();
        let Told::Event(event) = told else { panic!("events were missed") };
        if event.what.name() == "queue" {
            return seen;
        }
        seen.push(event);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_sees_the_events_of_all_instances_each_once() {
    let (_town, a, b) = Town::two(QueueConfig::default()).await;
    let (mut at_a, mut at_b) = (a.broker.watch(None), b.broker.watch(None));
    a.put(3).await;
    let seen = event(&mut at_b, "enqueue").await;
    assert_eq!((seen.count, &seen.queue, seen.trigger.name()), (3, &a.queue, "producer"));
    let held = b.lease(1).await.remove(0);
    b.ack(&held).await;
    assert_eq!(event(&mut at_a, "ack").await.count, 1);
    // Nothing comes back to where it came from.
    let mut later = a.broker.watch(None);
    a.put(1).await;
    event(&mut at_b, "enqueue").await;
    pause(&b).await;
    let seen = until_queue(&mut later).await;
    let counts: Vec<(&str, u64)> = seen.iter().map(|event| (event.what.name(), event.count)).collect();
    assert_eq!(counts, [("enqueue", 1)]);
}

#[tokio::test(start_paused = true)]
async fn offsets_are_each_instances_own_and_grow() {
    let (_town, a, b) = Town::two(QueueConfig::default()).await;
    let mut at_b = b.broker.watch(None);
    a.put(1).await;
    let first = event(&mut at_b, "enqueue").await.offset;
    b.put(1).await;
    let second = event(&mut at_b, "enqueue").await.offset;
    assert!(second > first);
    let mut back = b.broker.watch(Some(first));
    assert_eq!(event(&mut back, "enqueue").await.offset, second, "a reader comes back to where it was");
}

#[tokio::test(start_paused = true)]
async fn who_missed_signals_assumes_that_anything_happened() {
    let (town, a, b) = Town::two(QueueConfig::default()).await;
    let mut watch = b.broker.watch(None);
    let poll = b.poll(b.call(1)).await;
    // More than the store keeps for who does not listen, and among them is what this one needed to hear.
    let noise = |n: usize| Signal::Ready(QueueName::new(format!("q{n}")).unwrap());
    let silent = town.store.door().unwrap();
    a.put(1).await;
    silent.tell((0..3_000).map(noise).collect()).await.unwrap();
    assert_eq!(done(poll).await.len(), 1);
    let mut lagged = false;
    while !lagged {
        let told = tokio::time::timeout(std::time::Duration::from_secs(30), watch.next()).await.unwrap();
        lagged = matches!(told, Told::Lagged(_));
    }
}
