//! TLS to the server, as the address asks for it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use redrive_core::queue::QueueName;
use redrive_store::{Heard, Notice, Settled, Signal, Store, StoreError};
use redrive_store_redis::{Options, Patience, RedisStore, inspect};
use redrive_test_servers::{Redis, RedisCluster, RedisSettings};

#[path = "world/mod.rs"]
mod world;

use world::{World, patient, queue_name};

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new([]).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
}

/// Servers that show a certificate of that authority, for that name.
fn settings(authority: &CertifiedIssuer<'static, KeyPair>, name: &str) -> RedisSettings {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new([name.to_owned()]).expect("a name");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    let settings = RedisSettings::default().password("hunter2");
    settings.tls(&certificate.pem(), &key.serialize_pem(), &authority.pem())
}

fn server(authority: &CertifiedIssuer<'static, KeyPair>, name: &str) -> Redis {
    Redis::start(settings(authority, name)).expect("a server")
}

fn options(server: &Redis, authority: Option<&CertifiedIssuer<'static, KeyPair>>) -> Options {
    options_at(server.tls_url().expect("it speaks TLS"), authority)
}

fn options_at(url: String, authority: Option<&CertifiedIssuer<'static, KeyPair>>) -> Options {
    Options {
        authorities: authority.map(|authority| authority.pem().into_bytes()),
        patience: Patience { busy: Duration::ZERO, ..Patience::default() },
        ..Options::new(url)
    }
}

async fn refused(options: Options) -> String {
    let inspected = inspect(&options).await.expect_err("nobody looks at it, either").to_string();
    let Err(StoreError::Unavailable(error)) = RedisStore::open(options, [1; 32]).await else {
        panic!("it was opened")
    };
    assert!(!inspected.contains("hunter2") && !error.to_string().contains("hunter2"));
    error.to_string()
}

#[tokio::test]
async fn a_server_is_trusted_by_its_certificate() {
    let (ours, another) = (authority(), authority());
    let redis = server(&ours, "127.0.0.1");
    let store = RedisStore::open(options(&redis, Some(&ours)), [1; 32]).await.expect("it opens");
    assert_eq!(store.get_queue(&QueueName::new("any").expect("a name")).await.expect("it answers"), None);
    // Whoever listens does so in private, too.
    let mut listener = store.listen().expect("it is shared");
    assert!(matches!(listener.hear().await, Heard::Lost));
    let other = RedisStore::open(options(&redis, Some(&ours)), [1; 32]).await.expect("it opens");
    other.tell(vec![Signal::Notice(Notice::new("x").expect("short"))]).await.expect("it is told");
    assert!(matches!(listener.hear().await, Heard::Signal(_)));
    assert_eq!(inspect(&options(&redis, Some(&ours))).await.expect("it is looked at").servers.len(), 1);

    // Whoever else it comes from: another authority, or none that the machine knows.
    for trusted in [Some(&another), None] {
        let error = refused(options(&redis, trusted)).await;
        assert!(error.contains("certificate"), "{error}");
    }
    // And whoever else it is for.
    let elsewhere = server(&ours, "elsewhere.example");
    let error = refused(options(&elsewhere, Some(&ours))).await;
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_nodes_of_a_cluster_are_trusted_by_their_certificates() {
    let (ours, another) = (authority(), authority());
    let cluster = RedisCluster::start(&settings(&ours, "127.0.0.1")).expect("it forms");
    let private = |node: &Redis| node.tls_url().expect("it speaks TLS");
    // Nodes tell of each other by the ports at which they speak it.
    for (number, node) in cluster.nodes().iter().enumerate() {
        let url = private(node);
        let port = url.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("it ends in its port");
        cluster.announce(number, port).expect("all hear of it");
    }
    let url = private(cluster.node(0)).replace("rediss://", "rediss+cluster://");
    let usual = Options { patience: Patience::default(), ..options_at(url.clone(), Some(&ours)) };
    let world = World::beside(usual).await;
    // Several queues, so that they are at several nodes.
    for n in 0..24 {
        let queue = World { queue: queue_name(&format!("q-{n}")), ..world.clone() };
        queue.create(&queue.queue, patient()).await;
        queue.put(1).await;
        let leased = queue.lease(1).await;
        assert!(queue.ack(&leased).await.expect("it answers").iter().all(Settled::is_applied));
    }
    let used = |node: &Redis| {
        let said = node.command(&["INFO", "commandstats"]).expect("it answers");
        assert!(said.contains("cmdstat_evalsha"), "it was spoken to");
    };
    cluster.nodes().iter().for_each(used);
    let mut listener = world.store.listen().expect("it is shared");
    assert!(matches!(listener.hear().await, Heard::Lost));
    for trusted in [Some(&another), None] {
        let error = refused(options_at(url.clone(), trusted)).await;
        assert!(error.contains("certificate"), "{error}");
    }
}
