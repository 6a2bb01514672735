//! A server that lets others wait: it does not answer, stands still, follows another one, or reads its files.

use std::time::Duration;

use redis::AsyncConnectionConfig;
use redrive_core::lifecycle::Verb;
use redrive_core::message::{Message, State};
use redrive_store::{EnqueueOutcome, Now, QueueError, Settled, Store, StoreError};
use redrive_store_redis::{Options, Patience};
use redrive_test_servers::proxy::{Fault, Injected, Proxy, Rule, Trigger};
use redrive_test_servers::{Redis, RedisSettings};

use crate::world::{PATIENCE, World, hasty, options, until_it_works};

/// How long those wait for an answer who would rather know soon. A machine that does a lot else must not take that long.
const SHORT: Duration = Duration::from_secs(2);

fn forgetful() -> Redis {
    Redis::start(RedisSettings::default().appendonly(false)).expect("it starts")
}

/// Options of somebody who does not wait long for an answer.
fn short(url: &str) -> Options {
    let patience = Patience { answer: SHORT, connection: SHORT, ..hasty(url).patience };
    Options { patience, ..options(url) }
}

/// Sees what comes to the server, and lets all of it go.
fn watch(proxy: &Proxy, trigger: Trigger) -> Injected {
    proxy.inject(Rule::new(trigger, Fault::CutBefore).after(u64::MAX))
}

fn scripts() -> Trigger {
    Trigger::Statement("evalsha".to_owned())
}

/// Waits until something has come to the server by the proxy.
async fn until_it_comes(seen: &Injected) {
    let comes = async {
        while seen.seen() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, comes).await.expect("it comes");
}

/// A store that reaches its server by a proxy, with a message that is leased; scripts are known by their hashes, and what is cached of the
/// queue is read.
async fn behind(proxy: &Proxy, options: Options) -> (World, Vec<Message>) {
    let world = World::open(Options { url: proxy.url().to_owned(), ..options }).await;
    world.put(1).await;
    let leased = world.lease(1).await;
    assert!(world.ack(&leased).await.unwrap()[0].is_applied());
    world.put(1).await;
    let leased = world.lease(1).await;
    (world, leased)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_is_not_answered_in_time_is_an_outcome_that_nobody_knows_and_a_read_is_asked_again() {
    let server = forgetful();
    let proxy = Proxy::before(&server.url()).expect("it stands before it");
    let impatient = short(&server.url());
    let patience = Patience { busy: PATIENCE, ..impatient.patience };
    let (world, leased) = behind(&proxy, Options { patience, ..impatient }).await;

    let connections = watch(&proxy, Trigger::Connect);
    let stalled = proxy.inject(Rule::new(scripts(), Fault::StallReply));
    let unknown = world.ack(&leased).await;
    assert!(matches!(unknown, Err(StoreError::OutcomeUnknown(_))), "{unknown:?}");
    assert_eq!(stalled.fired(), 1, "it was done, and the answer was kept back");
    assert_eq!(world.ack(&leased).await.unwrap(), [Settled::NotFound], "it was done, and is done once");
    assert_eq!(connections.seen(), 1, "nobody asks on a connection on which an answer is still to come");
    stalled.lift();
    assert_eq!(world.stats().await.totals.of(Verb::Ack), 2, "what comes too late is nobody's answer");

    let stalled = proxy.inject(Rule::new(scripts(), Fault::StallReply));
    let states = world.stats().await.states;
    assert_eq!((stalled.fired(), states.all(), connections.seen()), (1, 0, 2), "it is asked once more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_sent_to_a_server_that_stands_still_is_done_when_it_goes_on() {
    let mut server = forgetful();
    let proxy = Proxy::before(&server.url()).expect("it stands before it");
    let (world, leased) = behind(&proxy, options(&server.url())).await;
    server.freeze().expect("it stands still");
    let sent = watch(&proxy, scripts());
    let acking = tokio::spawn({
        let world = world.clone();
        async move { world.ack(&leased).await }
    });
    until_it_comes(&sent).await;
    assert!(!acking.is_finished(), "nobody answers for it");
    server.thaw().expect("it goes on");
    let acked =
        tokio::time::timeout(PATIENCE, acking).await.expect("it is answered").expect("no panic").unwrap();
    assert!(acked[0].is_applied(), "{acked:?}");
    assert_eq!(sent.seen(), 1, "it was asked once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_wait_for_a_server_that_stands_still_is_never_told_that_nothing_happened() {
    let mut server = forgetful();
    let (world, leased) = {
        let world = World::open(short(&server.url())).await;
        world.put(1).await;
        let leased = world.lease(1).await;
        (world, leased)
    };
    server.freeze().expect("it stands still");
    let unknown = world.ack(&leased).await;
    assert!(matches!(unknown, Err(StoreError::OutcomeUnknown(_))), "{unknown:?}");
    // This one does not even get a connection.
    let refused = world.send(vec![World::draft()]).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    server.thaw().expect("it goes on");

    // It hears the first one now, before or after the one that is sent anew.
    let acked = until_it_works(async || world.ack(&leased).await).await;
    assert!(acked[0].is_applied() || acked == [Settled::NotFound], "{acked:?}");
    let stats = world.stats().await;
    assert_eq!((stats.totals.of(Verb::Ack), stats.totals.of(Verb::Enqueue), stats.states.all()), (1, 1, 0));
}

#[tokio::test]
async fn a_master_that_is_made_a_replica_takes_nothing_and_as_master_again_refuses_the_leases_of_before() {
    let server = forgetful();
    let world = World::open(hasty(&server.url())).await;
    world.put(3).await;
    let leased = world.lease(1).await;
    let before = world.stats().await;
    let follow = |whom: [&str; 2]| server.command(&["REPLICAOF", whom[0], whom[1]]).expect("it does");
    // Nobody is there: it keeps what it has, and its connections.
    follow(["127.0.0.1", "1"]);
    for _ in 0..2 {
        // On the connection of before, and on none.
        let refused = world.send(vec![World::draft()]).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        let refused = world.ack(&leased).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    }

    follow(["NO", "ONE"]);
    // It may have followed somebody who knew less, and cannot say so.
    let acked = until_it_works(async || world.ack(&leased).await).await;
    assert_eq!(acked, [Settled::LeaseLost]);
    let after = world.stats().await;
    assert_eq!((after.states, after.totals), (before.states, before.totals), "nothing was done meanwhile");
    let newer = world.lease(3).await;
    let epoch = |message: &Message| message.lease().expect("leased").id.epoch();
    assert!(newer.len() == 2 && epoch(&newer[0]) > epoch(&leased[0]), "{newer:?}");
    assert!(world.ack(&newer).await.unwrap().iter().all(Settled::is_applied));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_reads_its_files_is_waited_for_and_then_has_everything() {
    // So slow that it would be at it for half a minute, if nobody told it to hurry.
    let mut server = Redis::start(RedisSettings::default().set("key-load-delay", "500")).expect("it starts");
    let url = server.url();
    let world = World::open(hasty(&url)).await;
    world.put(30).await;
    let leased = world.lease(10).await;
    let filler = "for _ = 1, 60000 do redis.call('INCR', 'filler') end";
    server.command(&["EVAL", filler, "0"]).expect("there is a lot to read");
    server.kill().expect("it is killed");
    let reading = tokio::task::spawn_blocking(move || {
        server.restart().expect("it starts again");
        server
    });

    let refused = async {
        loop {
            let refused = world.send(vec![World::draft()]).await.expect_err("it reads its files");
            // The first one may have been on its way when the server was killed.
            assert!(
                matches!(refused, StoreError::Unavailable(_) | StoreError::OutcomeUnknown(_)),
                "{refused:?}"
            );
            if refused.to_string().contains("BusyLoading") {
                return refused;
            }
        }
    };
    let refused = tokio::time::timeout(PATIENCE, refused).await.expect("it says what it is doing");
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
    let waiting = tokio::spawn({
        let patience = Patience { busy: PATIENCE, ..Patience::default() };
        let patient = Options { patience, ..options(&url) };
        async move { World::beside(patient).await.send(vec![World::draft()]).await }
    });
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE));
    let operator = redis::Client::open(url).unwrap();
    let mut operator = operator.get_multiplexed_async_connection_with_config(&config).await.unwrap();
    let hurry = redis::cmd("CONFIG").arg("SET").arg("key-load-delay").arg(0).clone();
    operator.send_packed_command(&hurry).await.expect("it hurries");

    let server = tokio::time::timeout(PATIENCE, reading).await.expect("it is done").expect("no panic");
    let sent =
        tokio::time::timeout(PATIENCE, waiting).await.expect("it is answered").expect("no panic").unwrap();
    assert!(matches!(sent[..], [EnqueueOutcome::Enqueued { .. }]), "{sent:?}");
    let states = until_it_works(async || match world.store.stats(Now::Store, &world.queue).await {
        Ok(stats) => Ok(stats.states),
        Err(QueueError::Store(error)) => Err(error),
        Err(other) => panic!("{other}"),
    })
    .await;
    assert_eq!((states.of(State::Ready), states.of(State::Leased)), (21, 10));
    assert!(world.ack(&leased).await.unwrap().iter().all(Settled::is_applied));
    drop(server);
}
