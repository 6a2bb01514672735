//! Webhooks over TLS.

use std::convert::Infallible;
use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use redrive_bus::webhook::{Verdict, WebhookConfig, Webhooks};
use redrive_core::time::Millis;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use crate::receiver::Receiver;
use crate::sender::{Names, config, deliver, error, guard};

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Issuer {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// What shows a certificate for that name, and speaks these protocols.
fn acceptor(issuer: &Issuer, name: &str, protocols: &[&str]) -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let mut config = builder
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key.into())
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    Arc::new(config).into()
}

/// A receiver over TLS, and the versions of HTTP in which requests came in.
async fn receiver(acceptor: TlsAcceptor) -> (Receiver, mpsc::Receiver<(Version, Bytes)>) {
    let (tell, seen) = mpsc::channel(100);
    let receiver = Receiver::start("127.0.0.1:0", move |stream| {
        let (acceptor, tell) = (acceptor.clone(), tell.clone());
        async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let answer = service_fn(move |request: Request<Incoming>| {
                let tell = tell.clone();
                async move {
                    let version = request.version();
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    tell.send((version, body)).await.unwrap();
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"ok"))))
                }
            });
            let io = TokioIo::new(stream);
            let (_, alpn) = io.inner().get_ref();
            let is_h2 = alpn.alpn_protocol() == Some(b"h2");
            let served = if is_h2 {
                hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(io, answer)
                    .await
            } else {
                hyper::server::conn::http1::Builder::new().serve_connection(io, answer).await
            };
            drop(served);
        }
    });
    (receiver.await, seen)
}

/// A sender that finds the receiver by a name, and trusts that authority.
fn sender(receiver: &Receiver, trusted: Option<&Issuer>) -> Webhooks {
    let names = Names::default().with("hooks.example", &[&["127.0.0.1"]]);
    let config = WebhookConfig {
        lookup: Arc::new(names),
        authorities: trusted.map(|issuer| issuer.pem().into_bytes()),
        ..config(guard(&[format!("127.0.0.1:{}", receiver.port())]))
    };
    Webhooks::new(config).unwrap()
}

#[tokio::test]
async fn http2_is_spoken_where_the_receiver_has_it() {
    let issuer = authority("ours");
    let cases: [(&[&str], Version); 3] =
        [(&["h2", "http/1.1"], Version::HTTP_2), (&["http/1.1"], Version::HTTP_11), (&[], Version::HTTP_11)];
    for (protocols, version) in cases {
        let (receiver, mut seen) = receiver(acceptor(&issuer, "hooks.example", protocols)).await;
        let webhooks = sender(&receiver, Some(&issuer));
        let url = format!("https://hooks.example:{}/", receiver.port());
        for _ in 0..3 {
            let answer = deliver(&webhooks, &url).await;
            assert_eq!(answer.verdict, Verdict::Delivered, "{protocols:?}");
            assert_eq!(answer.capture.response_body, "ok");
            assert_eq!(seen.recv().await.unwrap(), (version, Bytes::from_static(b"{\"a\":1}")));
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(receiver.connections().await, 1, "{protocols:?}");
    }
}

#[tokio::test]
async fn a_certificate_that_nobody_trusts_is_refused() {
    let issuer = authority("ours");
    let (receiver, mut seen) = receiver(acceptor(&issuer, "hooks.example", &["h2"])).await;
    let url = format!("https://hooks.example:{}/", receiver.port());
    for trusted in [None, Some(&authority("another"))] {
        let answer = deliver(&sender(&receiver, trusted), &url).await;
        assert_eq!(error(&answer), "could not connect: invalid peer certificate: UnknownIssuer");
    }
    assert!(seen.try_recv().is_err());
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let issuer = authority("ours");
    let (receiver, mut seen) = receiver(acceptor(&issuer, "other.example", &["h2"])).await;
    let url = format!("https://hooks.example:{}/", receiver.port());
    let answer = deliver(&sender(&receiver, Some(&issuer)), &url).await;
    let said =
        "could not connect: invalid peer certificate: certificate not valid for name \"hooks.example\"";
    assert!(error(&answer).starts_with(said), "{answer:?}");
    assert!(seen.try_recv().is_err());
}

#[tokio::test]
async fn a_handshake_that_never_ends_has_its_time() {
    let silent = Receiver::start("127.0.0.1:0", |stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
    });
    let silent = silent.await;
    let rules = guard(&[silent.addr.to_string()]);
    let config = WebhookConfig { connect_timeout: Millis::new(150), ..config(rules) };
    let webhooks = Webhooks::new(config).unwrap();
    let answer = deliver(&webhooks, &format!("https://{}/", silent.addr)).await;
    assert_eq!(error(&answer), "could not connect within 150 ms");
}
