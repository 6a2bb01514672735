//! Who ends in the middle of something that takes several steps, and what the next one makes of it.

use std::time::Duration;

use redrive_core::queue::QueueConfig;
use redrive_store::{CreateQueue, DeleteQueue, Heard, Limit, Now, QueueError, Signal, Store, SweepRequest};
use redrive_store_redis::{Options, Patience};
use redrive_test_servers::proxy::{Fault, Proxy, Rule, Trigger};
use redrive_test_servers::{Redis, RedisSettings};

use crate::world::{PATIENCE, World, options, patient, queue_name};

fn server() -> Redis {
    Redis::start(RedisSettings::default().appendonly(false)).expect("it starts")
}

fn said(server: &Redis, command: &[&str]) -> String {
    server.command(command).expect("it answers").trim().to_owned()
}

fn id_of(server: &Redis, name: &str) -> String {
    said(server, &["HGET", "redrive:{redrive}:queues", name])
}

/// All keys but those that every store has.
fn keys_of(server: &Redis, id: &str) -> String {
    said(server, &["KEYS", &format!("redrive:{{{id}}}:*")])
}

async fn sweep(world: &World) {
    world.store.retain(Now::Store, SweepRequest { queue: None, limit: Limit::MAX }).await.unwrap();
}

#[tokio::test]
async fn a_queue_whose_deletion_came_to_no_end_is_cleared_away_and_its_name_is_free() {
    for sweeps in [false, true] {
        let server = server();
        let world = World::open(options(&server.url())).await;
        world.put(3).await;
        let id = id_of(&server, "work");
        // As it is when whoever deletes it ends behind the step that decides.
        said(&server, &["SADD", "redrive:{redrive}:gone", &format!("{id} work")]);
        said(&server, &["DEL", &format!("redrive:{{{id}}}:q")]);

        let missing = world.store.stats(Now::Store, &world.queue).await.expect_err("it is gone");
        assert!(matches!(missing, QueueError::NotFound(_)), "{missing}");
        if sweeps {
            sweep(&world).await;
            assert_eq!((id_of(&server, "work").as_str(), keys_of(&server, &id).as_str()), ("", ""));
        }
        world.create(&world.queue, patient()).await;
        assert_eq!(world.stats().await.states.all(), 0);
        sweep(&world).await;
        assert_eq!(keys_of(&server, &id), "");
        world.put(1).await;
        assert_eq!(said(&server, &["SCARD", "redrive:{redrive}:gone"]), "0");
        let request = DeleteQueue { name: world.queue.clone(), force: true };
        world.store.delete_queue(Now::Store, request).await.unwrap();
        assert_eq!(said(&server, &["SCARD", "redrive:{redrive}:gone"]), "0");
    }
}

#[tokio::test]
async fn a_queue_whose_creation_came_to_no_end_is_nobodys_and_goes() {
    let server = server();
    let world = World::open(options(&server.url())).await;
    // As it is when whoever creates it ends before its name is written down.
    said(&server, &["SADD", "redrive:{redrive}:gone", "77 other"]);
    said(&server, &["HSET", "redrive:{77}:q", "name", "other"]);
    let id = id_of(&server, "work");
    said(&server, &["SADD", "redrive:{redrive}:gone", &format!("{id} work")]);
    sweep(&world).await;
    assert_eq!(keys_of(&server, "77"), "");
    assert_eq!(said(&server, &["SCARD", "redrive:{redrive}:gone"]), "0");
    let request = CreateQueue { name: queue_name("other"), config: QueueConfig::default() };
    world.store.create_queue(Now::Store, request).await.unwrap();
    world.put(1).await;
}

#[tokio::test]
async fn a_message_that_cannot_be_read_keeps_no_other_one_back() {
    let server = server();
    let world = World::open(options(&server.url())).await;
    let ids = world.put(3).await;
    let bodies = format!("redrive:{{{}}}:b", id_of(&server, "work"));
    said(&server, &["HSET", &bodies, &ids[1].to_string(), "\u{1}"]);
    let leased = world.lease(3).await;
    let got: Vec<_> = leased.iter().map(redrive_core::message::Message::id).collect();
    assert_eq!(got, [ids[0], ids[2]]);
    assert!(world.ack(&leased).await.unwrap().iter().all(redrive_store::Settled::is_applied));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_listens_notices_that_nobody_is_there_any_more() {
    let mut server = server();
    let teller = World::open(options(&server.url())).await;
    let proxy = Proxy::before(&server.url()).expect("it stands before it");
    let short = Duration::from_millis(100);
    let patience = Patience { silence: short, connection: short, ..Patience::default() };
    let world = World::beside(Options { patience, ..options(proxy.url()) }).await;
    let mut listener = world.store.listen().expect("there may be others");
    assert_eq!(listener.hear().await, Heard::Lost, "it has just begun to listen");

    // Nothing comes any more and no connection ends. It would listen to that for ever.
    let connections = proxy.inject(Rule::new(Trigger::Connect, Fault::CutBefore).after(u64::MAX));
    server.freeze().expect("it stands still");
    let task = tokio::spawn(async move {
        let heard = listener.hear().await;
        (heard, listener)
    });
    let tries_anew = async {
        while connections.seen() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, tries_anew).await.expect("it makes another connection");
    server.thaw().expect("it goes on");
    let (heard, mut listener) = tokio::time::timeout(PATIENCE, task).await.expect("it hears").unwrap();
    assert_eq!(heard, Heard::Lost, "it may have missed something");
    let signal = Signal::Ready(world.queue.clone());
    teller.store.tell(vec![signal.clone()]).await.unwrap();
    let heard = tokio::time::timeout(PATIENCE, listener.hear()).await.expect("it hears");
    assert_eq!(heard, Heard::Signal(signal));
}
