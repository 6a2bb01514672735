//! TLS to the database, as the address asks for it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use redrive_core::queue::QueueName;
use redrive_store::{Store, StoreError};
use redrive_store_postgres::{Durability, Options, PostgresStore};
use redrive_test_servers::{Postgres, Settings};

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new([]).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
}

/// The server shows a certificate of that authority from now on.
fn show(server: &Postgres, authority: &CertifiedIssuer<'static, KeyPair>, name: &str) {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new([name.to_owned()]).expect("a name");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    let owner = fs::metadata(server.folder()).expect("its folder");
    for (setting, file, text) in [
        ("ssl_cert_file", "shown.crt", certificate.pem()),
        ("ssl_key_file", "shown.key", key.serialize_pem()),
    ] {
        let file = server.folder().join(file);
        fs::write(&file, text).expect("it is written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("it is ours");
        chown(&file, Some(owner.uid()), Some(owner.gid())).expect("it is the server's");
        server.set(setting, &file.display().to_string()).expect("it is set");
    }
    server.set("ssl", "on").expect("it is set");
}

async fn opened(
    server: &Postgres,
    mode: &str,
    authorities: Option<String>,
) -> Result<PostgresStore, StoreError> {
    let url = format!("{}?sslmode={mode}", server.url());
    let store = PostgresStore::open(
        Options {
            durability: Durability::Any,
            authorities: authorities.map(String::into_bytes),
            connections: 2,
            ..Options::new(url)
        },
        [1; 32],
    )
    .await?;
    // A connection of the pool, after the one that opened the store.
    store.get_queue(&QueueName::new("any").expect("a name")).await?;
    Ok(store)
}

/// Whether all our connections are private, or none of them.
fn is_private(server: &Postgres) -> bool {
    let asked = "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE application_name = 'redrive' AND backend_type = 'client backend'";
    match server.sql(asked).expect("it answers").as_str() {
        "t" => true,
        "f" => false,
        other => panic!("all are alike, or there are none: `{other}`"),
    }
}

fn refused(outcome: Result<PostgresStore, StoreError>) -> String {
    let Err(StoreError::Unavailable(error)) = outcome else { panic!("{outcome:?}") };
    error.to_string()
}

#[test]
fn a_connection_is_as_private_as_the_address_asks() {
    let server = Postgres::start(Settings::default().fsync(false)).expect("a server");
    let (ours, another) = (authority(), authority());
    // We wait for the server by blocking, and connections must end meanwhile.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        // Where the server has no certificate, who requires TLS is not served without.
        refused(opened(&server, "require", Some(ours.pem())).await);
        for mode in ["prefer", "disable"] {
            let store = opened(&server, mode, None).await.expect("it opens");
            assert!(!is_private(&server), "{mode}");
            store.close();
        }

        show(&server, &ours, "127.0.0.1");
        let ways = [("require", Some(ours.pem()), true), ("prefer", None, true), ("disable", None, false)];
        for (mode, authorities, expected) in ways {
            wait_until_alone(&server);
            let store = opened(&server, mode, authorities).await.expect("it opens");
            assert_eq!(is_private(&server), expected, "{mode}");
            store.close();
        }

        // Whoever else it comes from: another authority, none that the machine knows, none at all.
        for authorities in [Some(another.pem()), None, Some("nothing".to_owned())] {
            let error = refused(opened(&server, "require", authorities.clone()).await);
            assert!(error.contains("certificate") || error.contains("authorit"), "{error}");
        }
        // And whoever else it is for.
        show(&server, &ours, "elsewhere.example");
        let error = refused(opened(&server, "require", Some(ours.pem())).await);
        assert!(error.contains("certificate"), "{error}");
    });
}

/// Waits until the connections of a store that was closed are gone.
fn wait_until_alone(server: &Postgres) {
    let gone = "DO $$ BEGIN
        WHILE EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'redrive' AND backend_type = 'client backend')
        LOOP PERFORM pg_sleep(0.01); PERFORM pg_stat_clear_snapshot(); END LOOP; END $$";
    server.sql(gone).expect("they go");
}
