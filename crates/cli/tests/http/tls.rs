//! TLS: both protocols inside it, certificates that are renewed while clients are there, and what is not TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use redrive_wire::v1;
use redrive_wire::v1::redrive_client::RedriveClient;
use reqwest::{Certificate, Client, ClientBuilder, Version};
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Endpoint, Uri};

use crate::server::Server;

/// A certificate and its key, as PEM.
struct Pair {
    cert: String,
    key: String,
}

impl Pair {
    fn new() -> Self {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        Self { cert: made.cert.pem(), key: made.signing_key.serialize_pem() }
    }

    /// A client that trusts this certificate and no other.
    fn trusted(&self) -> ClientBuilder {
        Client::builder().tls_certs_only([Certificate::from_pem(self.cert.as_bytes()).unwrap()])
    }

    /// A connection for this protocol.
    async fn connect(&self, server: &Server, protocol: &[u8]) -> TlsStream<tokio::net::TcpStream> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.cert.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
        let mut config = config.with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let stream = tokio::net::TcpStream::connect(server.address()).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }
}

/// The two files of a server.
struct Files {
    dir: tempfile::TempDir,
}

impl Files {
    fn of(pair: &Pair) -> Self {
        let files = Self { dir: tempfile::tempdir().unwrap() };
        files.write(&pair.cert, &pair.key);
        files
    }

    fn write(&self, cert: &str, key: &str) {
        std::fs::write(self.cert(), cert).unwrap();
        std::fs::write(self.key(), key).unwrap();
    }

    fn cert(&self) -> PathBuf {
        self.dir.path().join("cert.pem")
    }

    fn key(&self) -> PathBuf {
        self.dir.path().join("key.pem")
    }

    fn serve(&self) -> Server {
        let server = Server::with(&[
            "--tls-cert",
            self.cert().to_str().unwrap(),
            "--tls-key",
            self.key().to_str().unwrap(),
        ]);
        assert!(server.url("").starts_with("https://"), "the ready line says so");
        server
    }
}

#[tokio::test]
async fn both_protocols_are_spoken_inside_tls() {
    let pair = Pair::new();
    let server = Files::of(&pair).serve();
    for (client, version) in [
        (pair.trusted(), Version::HTTP_2),
        (pair.trusted().http1_only(), Version::HTTP_11),
        (pair.trusted().tls_version_max(reqwest::tls::Version::TLS_1_2), Version::HTTP_2),
    ] {
        let request = client.build().unwrap().post(server.url("/v1/queues/orders/messages"));
        let answer = request.json(&json!({"body": "x".repeat(200_000)})).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.version()), (201, version));
    }
    let stranger = Pair::new().trusted().build().unwrap();
    assert!(stranger.get(server.url("/healthz")).send().await.is_err(), "that is another certificate");
}

#[tokio::test]
async fn grpc_is_spoken_inside_tls() {
    let pair = Pair::new();
    let server = Files::of(&pair).serve();
    let stream = pair.connect(&server, b"h2").await;
    let mut stream = Some(TokioIo::new(stream));
    let connector = tower::service_fn(move |_: Uri| {
        let stream = stream.take().ok_or_else(|| std::io::Error::other("it connects once"));
        async move { stream }
    });
    let endpoint = Endpoint::from_static("http://localhost");
    let mut client = RedriveClient::new(endpoint.connect_with_connector(connector).await.unwrap());
    let messages = vec![v1::NewMessage { body: "x".into(), ..v1::NewMessage::default() }];
    let request = v1::EnqueueRequest { queue: "orders".to_owned(), messages, all_or_nothing: false };
    let answer = client.enqueue(request).await.unwrap().into_inner();
    assert!(answer.results[0].code.is_empty(), "{answer:?}");
    let request = v1::LeaseRequest { queue: "orders".to_owned(), limit: 1, ..v1::LeaseRequest::default() };
    assert_eq!(client.lease(request).await.unwrap().into_inner().messages.len(), 1);
}

/// Asks on a connection that stays open, and is answered.
async fn ask(stream: &mut TlsStream<tokio::net::TcpStream>) {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"ok\n") {
        assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "the connection ended");
    }
}

#[tokio::test]
async fn a_certificate_is_renewed_without_ending_a_connection() {
    let (old, new) = (Pair::new(), Pair::new());
    let files = Files::of(&old);
    let server = files.serve();
    let mut kept = old.connect(&server, b"http/1.1").await;
    ask(&mut kept).await;
    let get =
        async |pair: &Pair| pair.trusted().build().unwrap().get(server.url("/healthz")).send().await.is_ok();
    files.write(&new.cert, &old.key);
    server.signal("HUP");
    server.logged("the certificate stays the old one", 1).await;
    assert!(get(&old).await && !get(&new).await, "half a pair is none");
    files.write(&new.cert, &new.key);
    server.signal("HUP");
    server.logged("the certificate was read again", 1).await;
    assert!(get(&new).await && !get(&old).await);
    ask(&mut kept).await;
    let log = server.log();
    assert!(!log.contains("PRIVATE KEY") && log.contains("key.pem is not the key of"), "{log}");
}

#[test]
fn a_pair_that_cannot_be_used_stops_the_start_and_is_named() {
    let (pair, other) = (Pair::new(), Pair::new());
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (cert, key) = (write("cert.pem", &pair.cert), write("key.pem", &pair.key));
    let (empty, foreign) = (write("empty.pem", ""), write("foreign.pem", &other.key));
    let nowhere = dir.path().join("nowhere.pem");
    let start = |cert: Option<&Path>, key: Option<&Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(dir.path());
        for (flag, path) in [("--tls-cert", cert), ("--tls-key", key)] {
            if let Some(path) = path {
                command.arg(flag).arg(path);
            }
        }
        let output = command.output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    };
    for (cert, key, said) in [
        (Some(&*cert), None, "tls_cert: needs tls_key"),
        (None, Some(&*key), "tls_key: needs tls_cert"),
        (Some(&nowhere), Some(&key), "nowhere.pem cannot be read"),
        (Some(&cert), Some(&nowhere), "nowhere.pem cannot be read"),
        (Some(&empty), Some(&key), "empty.pem holds no certificate"),
        (Some(&cert), Some(&empty), "empty.pem holds no private key"),
        (Some(&cert), Some(&foreign), "foreign.pem is not the key of"),
        (Some(&key), Some(&cert), "key.pem holds no certificate"),
    ] {
        let error = start(cert, key);
        assert!(error.contains(said) && !error.contains("PRIVATE"), "{error}, but not: {said}");
    }
}

#[tokio::test]
async fn what_is_not_tls_is_told_so_or_closed_and_others_go_on() {
    let pair = Pair::new();
    let server = Files::of(&pair).serve();
    let say = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        // A connection that is cut is an answer, too.
        drop(stream.read_to_end(&mut answer));
        String::from_utf8_lossy(&answer).into_owned()
    };
    let plain = say(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert!(plain.starts_with("HTTP/1.1 400 ") && plain.contains("this port speaks TLS"), "{plain}");
    assert!(!say(b"\x16\x03\x01\x00\x05nonsense").contains("HTTP"));
    let silent: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    let client = pair.trusted().build().unwrap();
    assert_eq!(client.get(server.url("/healthz")).send().await.unwrap().status(), 200);
    drop(silent);
}
