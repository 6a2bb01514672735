//! Events over HTTP: a receiver that checks who sent them.
//!
//!     cargo run -p redrive --example webhook

use std::time::SystemTime;

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use redrive::webhook::{Signed, SigningSecret, verify};
use redrive::{OpenOptions, Redrive, WebhookOptions};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// What the receiver knows: the secret that it shares with the sender.
#[derive(Clone)]
struct Receiver {
    secret: SigningSecret,
    tell: mpsc::Sender<String>,
}

impl Receiver {
    /// Any answer of 200 to 299 means that the event has arrived. With every other one it comes again.
    #[expect(clippy::disallowed_methods, reason = "the clock of a receiver is the machine's")]
    async fn receive(self, request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, hyper::Error> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let signed = Signed {
            id: header("webhook-id"),
            timestamp: header("webhook-timestamp"),
            signature: header("webhook-signature"),
            body: &body,
        };
        let mut response = Response::new(Empty::new());
        if verify(&[self.secret], &signed, SystemTime::now()).is_err() {
            *response.status_mut() = StatusCode::UNAUTHORIZED;
        } else if self.tell.send(String::from_utf8_lossy(&body).into_owned()).await.is_err() {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        Ok(response)
    }

    async fn listen(self, listener: TcpListener) -> std::io::Result<()> {
        loop {
            let (stream, _) = listener.accept().await?;
            let receiver = self.clone();
            let service = service_fn(move |request| receiver.clone().receive(request));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/orders", listener.local_addr()?);

    // Webhooks go to public addresses, unless a rule says more.
    let dir = tempfile::tempdir()?;
    let webhooks = WebhookOptions::default().allow("127.0.0.1:*");
    let options = OpenOptions { webhooks: Some(webhooks), ..OpenOptions::default() };
    let redrive = Redrive::open_with(dir.path(), options).await?;
    let bus = redrive.bus();

    // The body of a request is what was published; without `binary`, it is the whole event as CloudEvents has it.
    let subscription = bus.subscribe_webhook("order.*", &url).name("shop").binary().await?;
    // The secret is told once, to be handed to the receiver.
    let secret = SigningSecret::parse(subscription.secret().unwrap_or_default())?;

    let (tell, mut told) = mpsc::channel(8);
    let server = tokio::spawn(Receiver { secret, tell }.listen(listener));

    bus.publish("order.created", &7).await?;
    println!("received {}", told.recv().await.unwrap_or_default());

    // Somebody else's request is not believed.
    let signed = Signed { id: "1", timestamp: "0", signature: "v1,AAAA", body: b"7" };
    let forged = verify(&[SigningSecret::generate()?], &signed, SystemTime::UNIX_EPOCH);
    println!("forged: {}", forged.err().map(|error| error.to_string()).unwrap_or_default());

    redrive.close().await?;
    server.abort();
    Ok(())
}
