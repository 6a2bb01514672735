//! What servers promise, asked of real ones: of a cluster the least of its masters, and of a server that does not let us ask.

use std::fmt::Write;
use std::sync::{Arc, Mutex};

use redrive_core::message::State;
use redrive_store::{Settled, Store, StoreError, Survives};
use redrive_store_redis::{Durability, Options, RedisStore};
use redrive_test_servers::{AppendFsync, Redis, RedisCluster, RedisSettings};
use tracing::field::{Field, Visit};
use tracing::span;

use crate::world::{World, options, until_it_works};

async fn open(url: &str, durability: Durability) -> Result<RedisStore, StoreError> {
    RedisStore::open(Options { durability, ..Options::new(url) }, [7; 32]).await
}

/// A server with a user who may do anything but this, and the address by which that user comes.
fn without(commands: &str, sync: AppendFsync) -> (Redis, String) {
    let user = format!("clerk on >word ~* &* +@all {commands}");
    let settings = RedisSettings::default().appendfsync(sync).set("user", &user);
    let server = Redis::start(settings).expect("it starts");
    let url = format!("redis://clerk:word@127.0.0.1:{}", server.port());
    (server, url)
}

/// The commands that the server has refused to a user.
fn refused(server: &Redis) -> String {
    server.command(&["ACL", "LOG"]).expect("it keeps a log")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_cluster_the_least_of_its_masters_counts() {
    let cluster = RedisCluster::start(&RedisSettings::default()).expect("it forms");
    let url = cluster.url();
    let store = open(&url, Durability::Power).await.expect("all of them keep it");
    assert_eq!(store.capabilities().survives, Survives::PowerLoss);

    for (node, (setting, value, before), least, wanted) in [
        (0, ("appendfsync", "everysec", "always"), Survives::ProcessCrash, Durability::Power),
        (1, ("appendonly", "no", "yes"), Survives::Nothing, Durability::Process),
        (2, ("appendonly", "no", "yes"), Survives::Nothing, Durability::Power),
    ] {
        let set = |value| cluster.node(node).command(&["CONFIG", "SET", setting, value]).expect("it is set");
        set(value);
        let short = open(&url, wanted).await.expect_err("one of them does not").to_string();
        let named = format!("127.0.0.1:{} promises: {setting} is {value}", cluster.node(node).port());
        assert!(short.contains(&named), "{short}");
        let store = open(&url, Durability::Any).await.expect("that is the operator's word");
        assert_eq!(store.capabilities().survives, least, "node {node}");
        set(before);
    }
    open(&url, Durability::Power).await.expect("it is as it was");
}

#[tokio::test]
async fn a_server_that_does_not_tell_its_settings_is_taken_at_the_word_of_what_it_tells_of_itself() {
    let (server, url) = without("-config", AppendFsync::Always);
    let short = open(&url, Durability::Power).await.expect_err("it does not tell when it syncs").to_string();
    assert!(short.contains("appendfsync is not told"), "{short}");
    let store = open(&url, Durability::Process).await.expect("that it keeps a file it tells");
    assert_eq!(store.capabilities().survives, Survives::ProcessCrash);
    assert!(refused(&server).contains("config"), "it was asked: {}", refused(&server));

    server.command(&["CONFIG", "SET", "appendonly", "no"]).expect("it is set");
    let short = open(&url, Durability::Process).await.expect_err("it keeps nothing").to_string();
    assert!(short.contains("appendonly is no"), "{short}");
}

/// What is logged as a warning.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<String>>);

struct Text<'a>(&'a mut String);

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, "{field}={value:?} ").expect("a text takes everything");
    }
}

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut Text(&mut self.0.lock().unwrap()));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn who_may_not_let_a_server_write_its_file_anew_is_warned_and_served() {
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let (mut server, url) = without("-bgrewriteaof", AppendFsync::Always);
    let world = World::open(options(&url)).await;
    world.put(3).await;
    let leased = world.lease(2).await;
    assert_eq!(*warnings.0.lock().unwrap(), "", "a server that was not started again is not asked");
    server.kill().expect("it is killed");
    server.restart().expect("it starts again");

    let acked = until_it_works(async || world.ack(&leased).await).await;
    assert!(acked.iter().all(Settled::is_applied), "{acked:?}");
    assert_eq!(world.stats().await.states.of(State::Ready), 1);
    assert!(refused(&server).contains("bgrewriteaof"), "it was asked: {}", refused(&server));
    let warned = warnings.0.lock().unwrap().clone();
    assert!(warned.contains("run BGREWRITEAOF"), "{warned}");
}
