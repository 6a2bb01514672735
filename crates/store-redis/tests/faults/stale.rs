//! What an instance remembers of a queue that another one has changed, and what is told of a change of a queue whose last steps did not work.

use std::num::NonZeroU64;

use redrive_core::message::State;
use redrive_core::queue::{QueueConfig, Retention};
use redrive_core::time::Millis;
use redrive_store::{
    CreateQueue, DeleteQueue, Limit, Now, QueueError, Store, StoreError, SweepRequest, UpdateQueue,
};
use redrive_test_servers::proxy::{Fault, Proxy, Rule, Trigger};
use redrive_test_servers::{Redis, RedisSettings};

use crate::world::{PATIENCE, World, hasty, options, patient, queue_name, until_it_works};

fn server() -> Redis {
    Redis::start(RedisSettings::default().appendonly(false)).expect("it starts")
}

fn statement(words: &str) -> Trigger {
    Trigger::Statement(words.to_owned())
}

fn update(world: &World, config: QueueConfig) -> UpdateQueue {
    UpdateQueue { name: world.queue.clone(), config, expected: None }
}

#[tokio::test]
async fn nothing_is_discarded_that_another_instance_was_told_to_keep() {
    let server = server();
    let one = World::open(options(&server.url())).await;
    let other = World::beside(options(&server.url())).await;
    // The other one knows the queue as it was.
    other.put(3).await;
    let week = Retention { age: Some(Millis::from_secs(7 * 24 * 3_600)), count: None };
    let keeps = QueueConfig { retain_done: Some(Some(week)), ..patient() };
    one.store.update_queue(Now::Store, update(&one, keeps)).await.unwrap();
    one.ack(&one.lease(3).await).await.unwrap();
    let all = SweepRequest { queue: None, limit: Limit::MAX };
    assert_eq!(other.store.retain(Now::Store, all).await.unwrap(), 0);
    assert_eq!(one.stats().await.states.of(State::Done), 3);
}

#[tokio::test]
async fn a_change_that_was_made_is_not_told_as_refused_where_it_cannot_be_read() {
    let server = server();
    let proxy = Proxy::before(&server.url()).expect("it stands before it");
    let world = World::open(hasty(proxy.url())).await;
    let change = async |most: u64| {
        let before = until_it_works(async || world.store.get_queue(&world.queue).await).await;
        let config = QueueConfig { max_waiting: Some(NonZeroU64::new(most)), ..patient() };
        let expected = Some(before.expect("it is there").version);
        let request = UpdateQueue { expected, ..update(&world, config) };
        (expected, world.store.update_queue(Now::Store, request).await)
    };
    // The look before the change goes through, and of those behind it one is lost, or all of them.
    let one = Rule::new(statement("hgetall"), Fault::CutReply).after(2);
    let rule = proxy.inject(one.clone());
    let (before, changed) = change(7).await;
    assert_eq!(rule.fired(), 1);
    assert!(Some(changed.expect("it was changed").version) > before);

    let rule = proxy.inject(one.always());
    let (_, changed) = change(8).await;
    assert!(matches!(changed, Err(QueueError::Store(StoreError::OutcomeUnknown(_)))), "{changed:?}");
    assert!(rule.fired() > 0);
    drop(rule);
    let after = until_it_works(async || {
        World::beside(options(&server.url())).await.store.get_queue(&world.queue).await
    });
    assert_eq!(after.await.expect("it is there").config.max_waiting, Some(NonZeroU64::new(8)));
}

#[tokio::test]
async fn a_queue_that_has_come_or_gone_has_though_its_traces_are_still_there() {
    let server = server();
    let proxy = Proxy::before(&server.url()).expect("it stands before it");
    let world = World::open(options(proxy.url())).await;
    let traces = || server.command(&["SCARD", "redrive:{redrive}:gone"]).expect("it answers");
    // A sweeper leaves them alone as long as somebody holds the lock, who lets go of it a little later.
    let sweep = async || {
        let all = SweepRequest { queue: None, limit: Limit::MAX };
        let swept = async {
            while traces() != "0" {
                match world.store.retain(Now::Store, all.clone()).await {
                    Ok(_) | Err(QueueError::Store(_)) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        };
        tokio::time::timeout(PATIENCE, swept).await.expect("nothing is left");
    };

    let rule = proxy.inject(Rule::new(statement("srem"), Fault::CutBefore));
    let name = queue_name("other");
    let created = CreateQueue { name: name.clone(), config: patient() };
    assert_eq!(world.store.create_queue(Now::Store, created).await.unwrap().name, name);
    assert_eq!((rule.fired(), traces().as_str()), (1, "1"));
    sweep().await;
    assert!(world.store.get_queue(&name).await.unwrap().is_some(), "what is whole is left alone");

    let rule = proxy.inject(Rule::new(statement("redrive:{redrive}:names"), Fault::CutBefore));
    world.store.delete_queue(Now::Store, DeleteQueue { name: name.clone(), force: false }).await.unwrap();
    assert_eq!((rule.fired(), traces().as_str()), (1, "1"));
    assert_eq!(until_it_works(async || world.store.get_queue(&name).await).await, None);
    sweep().await;
    assert_eq!(server.command(&["HEXISTS", "redrive:{redrive}:queues", "other"]).unwrap(), "0");
}
