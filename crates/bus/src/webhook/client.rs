//! One request, from the call to the answer.

use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use redrive_core::limits::CAPTURE_BYTES_MAX;
use redrive_core::time::{Millis, Timestamp};
use reqwest::header::HeaderMap;
use reqwest::{Client, Method, Request, Response, redirect};
use rustls::ClientConfig;
use thiserror::Error;
use tokio::time::{Instant, timeout};

use super::answer::{Answer, Capture, Verdict, judge, start_of};
use super::guard::Guard;
use super::resolve::{Checked, Lookup, SystemLookup};
use super::secret::SigningSecret;
use super::url::WebhookUrl;
use super::{failure, headers, tls};

/// How much of an answer's body is read beyond what is kept, in bytes: once all of it is read, the connection can be used
/// again. An answer that is longer costs its receiver the connection.
const DRAIN_BYTES_MAX: usize = 64 * 1024;
/// How long the body of an answer may take, once its status is known: that is all that counts.
const BODY_TIME_MAX: Duration = Duration::from_secs(5);
/// Most headers of an answer.
const RESPONSE_HEADERS_MAX: usize = 100;
/// All headers of an answer over HTTP/2 together, in bytes. Over HTTP/1 hyper's own limit holds, some 400 KiB.
const RESPONSE_HEADERS_BYTES_MAX: u32 = 64 * 1024;
/// How many headers are kept for people to see, of the request and of the answer each.
const CAPTURE_HEADERS_MAX: usize = 32;
/// How many bytes of them.
const CAPTURE_HEADERS_BYTES_MAX: usize = 4 * 1024;
/// Most ports for which connections are kept. Without rules there are two.
const PORTS_MAX: usize = 64;

/// How webhooks are sent.
#[derive(Debug, Clone)]
pub struct WebhookConfig {
    /// Who may be called.
    pub guard: Guard,
    /// Who finds the addresses of a name.
    pub lookup: Arc<dyn Lookup>,
    /// What we call ourselves.
    pub user_agent: String,
    /// How long a connection may take, with the lookup and TLS.
    pub connect_timeout: Millis,
    /// How long a connection that is not used is kept.
    pub idle_timeout: Millis,
    /// How many of them are kept for each receiver.
    pub idle_per_host: usize,
    /// Authorities that are trusted beside the machine's own, as PEM: an intranet's own, for instance.
    pub authorities: Option<Vec<u8>>,
}

impl Default for WebhookConfig {
    fn default() -> Self {
        Self {
            guard: Guard::default(),
            lookup: Arc::new(SystemLookup::default()),
            user_agent: concat!("Redrive/", env!("CARGO_PKG_VERSION")).to_owned(),
            connect_timeout: Millis::from_secs(10),
            idle_timeout: Millis::from_secs(60),
            idle_per_host: 8,
            authorities: None,
        }
    }
}

/// Webhooks cannot be sent with this configuration.
#[derive(Debug, Error)]
pub enum Unusable {
    /// The authorities are not certificates.
    #[error("the authorities that webhooks trust: {0}")]
    Authorities(String),
    /// There is no TLS.
    #[error("TLS for webhooks: {0}")]
    Tls(rustls::Error),
    /// There is no client.
    #[error("the client for webhooks: {0}")]
    Client(reqwest::Error),
}

/// One request.
#[derive(Clone)]
pub struct Call<'a> {
    /// Where it goes.
    pub url: &'a WebhookUrl,
    /// Who signs it: every secret that is live.
    pub secrets: &'a [SigningSecret],
    /// What it is called; the same at every attempt.
    pub id: &'a str,
    /// The time of this attempt.
    pub at: Timestamp,
    /// What the body is.
    pub content_type: &'a str,
    /// More headers, of its owner's choice; see [`check_header`](super::check_header).
    pub headers: &'a [(String, String)],
    /// What is sent.
    pub body: Bytes,
    /// How long all of it may take.
    pub timeout: Millis,
}

/// Headers and body may be anybody's secrets.
impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("url", self.url).field("id", &self.id).finish_non_exhaustive()
    }
}

/// Sends webhooks. Connections are kept and used again.
#[derive(Debug)]
pub struct Webhooks {
    guard: Arc<Guard>,
    config: WebhookConfig,
    tls: ClientConfig,
    /// One for each port, the one used last at the end: what may be dialled depends on the port, and a resolver is not
    /// told which one it is asked for.
    clients: Mutex<Vec<(u16, Client)>>,
}

impl Webhooks {
    /// Reads the authorities, and makes sure that there can be clients.
    pub fn new(mut config: WebhookConfig) -> Result<Self, Unusable> {
        let guard = Arc::new(mem::take(&mut config.guard));
        let tls = tls::config(config.authorities.as_deref())?;
        let webhooks = Self { guard, config, tls, clients: Mutex::default() };
        webhooks.client(443).map_err(Unusable::Client)?;
        Ok(webhooks)
    }

    /// Who may be called: what a URL is to be parsed with.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Sends one request, and waits for what comes of it.
    pub async fn deliver(&self, call: Call<'_>) -> Answer {
        let began = Instant::now();
        let mut capture = Capture {
            request_body: start_of(&call.body),
            request_bytes: call.body.len(),
            ..Capture::default()
        };
        let verdict = match self.request(&call) {
            Ok(request) => {
                capture.request_headers = shown(request.headers());
                self.send(request, &call, began, &mut capture).await
            }
            Err(error) => Verdict::failed(error),
        };
        capture.elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Answer { verdict, capture }
    }

    /// The request, if it may be sent as far as that is known before a lookup. An address that stands in the URL is never
    /// looked up, so it is judged here and nowhere else.
    fn request(&self, call: &Call<'_>) -> Result<Request, String> {
        call.url.check(&self.guard).map_err(|refused| refused.to_string())?;
        let headers =
            headers::of_call(call, &self.config.user_agent).map_err(|invalid| invalid.to_string())?;
        let mut request = Request::new(Method::POST, call.url.url().clone());
        *request.headers_mut() = headers;
        *request.body_mut() = Some(call.body.clone().into());
        Ok(request)
    }

    async fn send(
        &self,
        request: Request,
        call: &Call<'_>,
        began: Instant,
        capture: &mut Capture,
    ) -> Verdict {
        let limit = Duration::from_millis(call.timeout.get());
        let client = match self.client(call.url.port()) {
            Ok(client) => client,
            Err(error) => return Verdict::failed(failure::said(&error, self.config.connect_timeout)),
        };
        let mut response = match timeout(limit, client.execute(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Verdict::failed(failure::said(&error, self.config.connect_timeout)),
            Err(_) => return Verdict::failed(failure::timed_out(call.timeout)),
        };
        let (status, headers) = (response.status(), mem::take(response.headers_mut()));
        let mut body = Vec::new();
        // The status has been heard, so a body that ends badly, late or never changes nothing.
        let left = limit.saturating_sub(began.elapsed()).min(BODY_TIME_MAX);
        drop(timeout(left, read(response, &mut body)).await);
        capture.status = Some(status.as_u16());
        capture.response_headers = shown(&headers);
        capture.response_body = start_of(&body);
        judge(status, &headers, &capture.response_body, call.at)
    }

    /// The client for that port, which is made where there is none.
    fn client(&self, port: u16) -> Result<Client, reqwest::Error> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let known = clients.iter().position(|(known, _)| *known == port);
        let client = match known {
            Some(at) => clients.remove(at).1,
            None => self.build(port)?,
        };
        if clients.len() >= PORTS_MAX {
            clients.remove(0);
        }
        clients.push((port, client.clone()));
        Ok(client)
    }

    /// No proxy, no cookies, no redirects, no decompression: the request goes where it was checked to go, and what comes
    /// back is as long as it says.
    fn build(&self, port: u16) -> Result<Client, reqwest::Error> {
        let (guard, lookup) = (Arc::clone(&self.guard), Arc::clone(&self.config.lookup));
        Client::builder()
            .dns_resolver(Checked { guard, lookup, port })
            .tls_backend_preconfigured(self.tls.clone())
            .redirect(redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .connect_timeout(Duration::from_millis(self.config.connect_timeout.get()))
            .pool_idle_timeout(Duration::from_millis(self.config.idle_timeout.get()))
            .pool_max_idle_per_host(self.config.idle_per_host)
            .http1_max_headers(RESPONSE_HEADERS_MAX)
            .http2_max_header_list_size(RESPONSE_HEADERS_BYTES_MAX)
            .http2_initial_stream_window_size(u32::try_from(DRAIN_BYTES_MAX).ok())
            .build()
    }
}

fn shown(headers: &HeaderMap) -> Vec<(String, String)> {
    headers::shown(headers, CAPTURE_HEADERS_MAX, CAPTURE_HEADERS_BYTES_MAX)
}

/// Reads to the end of the body, if it is near, and keeps the start of it.
async fn read(mut response: Response, kept: &mut Vec<u8>) {
    let mut drained = 0;
    while let Ok(Some(chunk)) = response.chunk().await {
        let wanted = chunk.len().min(CAPTURE_BYTES_MAX - kept.len());
        kept.extend_from_slice(&chunk[..wanted]);
        drained += chunk.len() - wanted;
        if drained > DRAIN_BYTES_MAX {
            return;
        }
    }
}
