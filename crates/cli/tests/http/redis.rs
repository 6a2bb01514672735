//! The server on Redis, as one of several, and on a cluster.

use redrive_test_servers::{AppendFsync, Redis, RedisCluster, RedisSettings};
use serde_json::json;

use crate::server::Server;
use crate::shared::{Kept, Lock, SharedStore, eventually, fails};

/// A server of a test's own, which keeps what `redrive serve` wants kept where nothing is said.
pub(crate) struct Keys(Redis);

/// How keys begin where nothing is said, and the tag of those that belong to no queue.
const SHARED: &str = "redrive:{redrive}:";

fn every_second() -> RedisSettings {
    RedisSettings::default().appendfsync(AppendFsync::EverySecond).password("hunter2")
}

/// Who sweeps, as the server says that has the lock.
fn sweeper(server: &Redis) -> Option<Lock> {
    let key = sweep_lock();
    let (token, end) =
        (server.command(&["GET", &key]).unwrap(), server.command(&["PEXPIRETIME", &key]).unwrap());
    // It may have ended between the two.
    Some(Lock { token, version: end.parse().unwrap() }).filter(|lock| lock.version > 0)
}

fn sweep_lock() -> String {
    format!("{SHARED}lock:sweep.expire")
}

/// What there is in the queues that the directory names, each at the server that has it.
fn kept<'s>(at: impl Fn(&str) -> &'s Redis) -> Kept {
    let directory = format!("{SHARED}queues");
    let queues = at(&directory).command(&["HVALS", &directory]).unwrap();
    let sum = |command: &str, name: &str| {
        let size = |id: &str| {
            let key = format!("redrive:{{{id}}}:{name}");
            at(&key).command(&[command, &key]).unwrap().parse::<i64>().unwrap()
        };
        queues.lines().map(size).sum::<i64>()
    };
    let leases = [("XLEN", "s"), ("ZCARD", "deadlines"), ("SCARD", "retries")];
    Kept {
        messages: sum("HLEN", "p"),
        bodies: sum("HLEN", "b"),
        leases: leases.map(|(command, name)| sum(command, name)).iter().sum(),
    }
}

impl SharedStore for Keys {
    async fn new() -> Self {
        Self(Redis::start(every_second()).unwrap())
    }

    fn flags(&self) -> Vec<String> {
        vec!["--store".to_owned(), self.0.url()]
    }

    async fn sweeper(&self) -> Option<Lock> {
        sweeper(&self.0)
    }

    async fn kept(&self) -> Kept {
        kept(|_| &self.0)
    }
}

/// A cluster of a test's own: its queues and the lock of its sweepers are at whichever node.
pub(crate) struct Nodes(RedisCluster);

impl Nodes {
    fn at(&self, key: &str) -> &Redis {
        let slot = self.0.slot_of(key).unwrap();
        self.0.node(self.0.node_of_slot(slot).unwrap())
    }
}

impl SharedStore for Nodes {
    async fn new() -> Self {
        Self(RedisCluster::start(&every_second()).unwrap())
    }

    fn flags(&self) -> Vec<String> {
        vec!["--store".to_owned(), self.0.url()]
    }

    async fn sweeper(&self) -> Option<Lock> {
        sweeper(self.at(&sweep_lock()))
    }

    async fn kept(&self) -> Kept {
        kept(|key| self.at(key))
    }
}

#[tokio::test]
async fn a_message_is_served_by_a_cluster() {
    let url = redrive_test_servers::shared_redis_cluster_url();
    let prefix = format!("cli-{}", std::process::id());
    let flags = ["--store", &url, "--store-prefix", &prefix, "--durability", "any"];
    let (one, other) = (Server::with(&flags), Server::with(&flags));
    assert_eq!(one.get("/readyz").await.text, "ok\nstore redis-cluster\nsurvives nothing\n");
    // Several queues, so that they are at several nodes.
    for n in 0..6 {
        let queue = format!("orders-{n}");
        let id = one.enqueue(&queue, json!({"body": "x"})).await;
        let leased = other.lease(&queue, json!({"wait_ms": 30_000})).await.remove(0);
        assert_eq!(leased["id"], json!(id));
        let ack = json!({"receipt": leased["receipt"]});
        assert_eq!(one.post("/v1/leases/ack", ack.clone()).await.status, 204);
        other.post("/v1/leases/ack", ack).await.refused(404, "NOT_FOUND");
    }
}

#[test]
fn a_redis_that_is_not_there_stops_the_start_and_no_password_is_shown() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("redis://somebody:hunter2@{unused}/3");
    for said in [fails(&["--store", &url], &[]), fails(&["--log-level", "trace"], &[("REDRIVE_STORE", &url)])]
    {
        assert!(said.contains(&format!("opening Redis at {unused}/3")), "{said}");
        assert!(said.contains("not available") && said.contains("refused"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[test]
fn a_wrong_value_is_named_and_no_password_is_shown() {
    for url in ["redis://somebody:hunter2@here:port", "redis+clustr://somebody:hunter2@here"] {
        for said in [fails(&["--store", url], &[]), fails(&[], &[("REDRIVE_STORE", url)])] {
            assert!(said.contains("store: ") && !said.contains("hunter2"), "{said}");
        }
    }
    let url = "redis://:hunter2@here";
    for (flag, value, named) in [
        ("--durability", "local", "durability: `local`"),
        ("--store-prefix", "a{b}", "store_prefix: must be"),
    ] {
        let said = fails(&["--store", url, flag, value], &[]);
        assert!(said.contains(named) && !said.contains("hunter2"), "{said}");
    }
}

#[test]
fn a_password_that_is_wrong_is_not_shown() {
    let redis = Redis::start(every_second()).unwrap();
    let said = fails(&["--store", &redis.url().replace("hunter2", "hunter3")], &[]);
    assert!(said.contains("opening Redis at 127.0.0.1:") && !said.contains("hunter"), "{said}");
}

#[tokio::test]
async fn a_redis_that_promises_too_little_is_refused_and_says_which_setting() {
    let redis = Redis::start(RedisSettings::shared()).unwrap();
    let url = redis.url();
    let said = fails(&["--store", &url], &[]);
    assert!(said.contains("durability: `process`") && said.contains("appendonly is no"), "{said}");
    assert_eq!(redis.command(&["DBSIZE"]).unwrap(), "0", "nothing was written to it");
    let any = Server::with(&["--store", &url, "--durability", "any"]);
    assert_eq!(any.get("/readyz").await.text, "ok\nstore redis\nsurvives nothing\n");
    drop(any);

    let redis = Redis::start(every_second()).unwrap();
    let url = redis.url();
    let said = fails(&["--store", &url, "--durability", "power"], &[]);
    assert!(said.contains("appendfsync is everysec") && !said.contains("hunter2"), "{said}");
    let process = Server::with(&["--store", &url]);
    assert_eq!(process.get("/readyz").await.text, "ok\nstore redis\nsurvives process_crash\n");
    drop(process);

    redis.command(&["CONFIG", "SET", "appendfsync", "always"]).unwrap();
    let power = Server::with(&["--store", &url, "--durability", "power"]);
    power.enqueue("orders", json!({"body": "x"})).await;
    assert_eq!(power.get("/readyz").await.text, "ok\nstore redis\nsurvives power_loss\n");
    let info = "redrive_store_info{store=\"redis\",survives=\"power_loss\"} 1\n";
    assert!(power.get("/metrics").await.text.contains(info));
}

#[tokio::test]
async fn a_promise_that_is_broken_while_the_server_runs_is_shown() {
    let mut redis = Redis::start(every_second()).unwrap();
    let server = Server::with(&["--store", &redis.url()]);
    server.create("orders", json!({})).await;
    assert!(server.get("/readyz").await.text.ends_with("survives process_crash\n"));
    redis.command(&["CONFIG", "SET", "maxmemory", "100mb"]).unwrap();
    redis.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]).unwrap();
    // Connections that are made from now on see it.
    redis.command(&["CLIENT", "KILL", "TYPE", "normal"]).unwrap();
    eventually("it is shown", async || {
        server.get("/readyz").await.text.ends_with("survives nothing\n").then_some(())
    })
    .await;
    assert!(server.log().contains("maxmemory-policy is allkeys-lru"), "{}", server.log());
    server.enqueue("orders", json!({"body": "x"})).await;
    redis.stop().unwrap();
}

/// An authority, and a server with a certificate of it.
fn with_tls() -> (Redis, String, String) {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    let authority = || {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    };
    let (ours, another, key) = (authority(), authority(), KeyPair::generate().unwrap());
    let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &ours).unwrap();
    let settings = every_second().tls(&certificate.pem(), &key.serialize_pem(), &ours.pem());
    (Redis::start(settings).unwrap(), ours.pem(), another.pem())
}

#[tokio::test]
async fn a_certificate_of_the_right_authority_is_asked_for() {
    let (redis, ours, another) = with_tls();
    let url = redis.tls_url().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, pem: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, pem).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (ours, another) = (file("ours.pem", &ours), file("another.pem", &another));
    let server = Server::with(&["--store", &url, "--store-ca", &ours]);
    server.enqueue("orders", json!({"body": "x"})).await;
    assert_eq!(server.lease("orders", json!({})).await.len(), 1);
    for flags in [vec!["--store", &url, "--store-ca", &another], vec!["--store", &url]] {
        let said = fails(&flags, &[]);
        assert!(said.contains("certificate") && !said.contains("hunter2"), "{said}");
    }
    let said = fails(&["--store", &redis.url(), "--store-ca", &ours], &[]);
    assert!(said.contains("store_ca: must be"), "{said}");
}
