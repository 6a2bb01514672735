//! An endpoint for webhooks: it answers as it is told to, and keeps what it got.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use redrive_bus::webhook::{Signed, SigningSecret, verify};
use redrive_core::time::{Millis, Timestamp};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// What came.
pub(super) struct Got {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Got {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    /// Whether that secret has signed it.
    pub(super) fn is_signed_with(&self, secret: &str) -> bool {
        let timestamp = self.header("webhook-timestamp");
        let at = Timestamp::from_millis(timestamp.parse::<u64>().unwrap() * 1_000);
        let request = Signed {
            id: self.header("webhook-id"),
            timestamp,
            signature: self.header("webhook-signature"),
            body: &self.body,
        };
        verify(&[SigningSecret::parse(secret).unwrap()], &request, at, Millis::from_secs(1)).is_ok()
    }
}

#[derive(Clone)]
struct Script {
    answers: Arc<Mutex<VecDeque<u16>>>,
    got: mpsc::Sender<Got>,
}

/// A running endpoint.
pub(super) struct Receiver {
    pub(super) url: String,
    got: mpsc::Receiver<Got>,
}

impl Receiver {
    /// Answers these, one after the other, and 204 from then on.
    pub(super) async fn answering(answers: &[u16]) -> Self {
        let (sender, got) = mpsc::channel(1_000);
        let answers = Arc::new(Mutex::new(answers.iter().copied().collect()));
        let app = Router::new().fallback(answer).with_state(Script { answers, got: sender });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, got }
    }

    /// The next request, once it comes.
    pub(super) async fn next(&mut self) -> Got {
        let got = tokio::time::timeout(Duration::from_secs(30), self.got.recv()).await;
        got.expect("no webhook came").unwrap()
    }
}

async fn answer(State(script): State<Script>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let status = script.answers.lock().unwrap().pop_front().unwrap_or(204);
    script.got.send(Got { headers, body }).await.unwrap();
    StatusCode::from_u16(status).unwrap()
}
