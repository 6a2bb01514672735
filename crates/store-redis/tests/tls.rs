//! TLS to the server, as the address asks for it.

use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use redrive_core::queue::QueueName;
use redrive_store::{Heard, Notice, Signal, Store, StoreError};
use redrive_store_redis::{Options, Patience, RedisStore, inspect};
use redrive_test_servers::{Redis, RedisSettings};

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new([]).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
}

/// A server that shows a certificate of that authority, for that name.
fn server(authority: &CertifiedIssuer<'static, KeyPair>, name: &str) -> Redis {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new([name.to_owned()]).expect("a name");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    let settings = RedisSettings::default().password("hunter2");
    let settings = settings.tls(&certificate.pem(), &key.serialize_pem(), &authority.pem());
    Redis::start(settings).expect("a server")
}

fn options(server: &Redis, authority: Option<&CertifiedIssuer<'static, KeyPair>>) -> Options {
    Options {
        authorities: authority.map(|authority| authority.pem().into_bytes()),
        patience: Patience { busy: Duration::ZERO, ..Patience::default() },
        ..Options::new(server.tls_url().expect("it speaks TLS"))
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
