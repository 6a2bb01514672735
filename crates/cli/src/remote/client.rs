//! The HTTP client: one request, one answer, no surprises on the way.

use std::error::Error;
use std::time::Duration;

use redrive_wire::Problem;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Certificate, Client, Method, RequestBuilder, Response, Url, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::answer::Answer;
use super::connection::Connection;
use super::failure::{Failure, Refused};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a server may be silent. A call that waits longer says so itself.
const ANSWER: Duration = Duration::from_mins(1);

/// What stands behind the question mark.
pub(crate) type Query = Vec<(&'static str, String)>;

/// A server that can be asked.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    http: Client,
    base: Url,
}

impl Remote {
    /// Makes ready to ask; nothing is sent yet. Redirects are not followed and proxies not asked: a token goes to the address
    /// that was named, and nowhere else.
    pub(crate) fn new(connection: &Connection) -> Result<Self, Failure> {
        let mut headers = HeaderMap::new();
        if let Some(token) = &connection.token {
            let wrong = |_| Failure::Usage("token: must be printable ASCII".to_owned());
            let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(wrong)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let mut builder = Client::builder()
            .user_agent(concat!("redrive/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .redirect(redirect::Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT);
        if let Some(path) = &connection.ca {
            let named = || format!("ca: {}", path.display());
            let pem = std::fs::read(path).map_err(|error| Failure::Io(named(), error))?;
            let none = || Failure::Usage(format!("{}: has no certificate in PEM", named()));
            let certificates = Certificate::from_pem_bundle(&pem).map_err(|_| none())?;
            if certificates.is_empty() {
                return Err(none());
            }
            builder = builder.tls_certs_only(certificates);
        }
        let http = builder.build().map_err(|error| Failure::Failed(format!("TLS: {}", cause(&error))))?;
        Ok(Self { http, base: connection.url.clone() })
    }

    /// The address of the server.
    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    /// A request for what is at these segments of a path, whatever characters they have.
    pub(crate) fn request(&self, method: Method, path: &[&str], query: &Query) -> RequestBuilder {
        self.endless(method, path, query).timeout(ANSWER)
    }

    /// The same for an answer that may go on for ever.
    pub(crate) fn endless(&self, method: Method, path: &[&str], query: &Query) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.http.request(method, url)
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &Query,
    ) -> Result<Answer<T>, Failure> {
        self.answer(self.request(Method::GET, path, query)).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<Answer<T>, Failure> {
        self.answer(self.request(Method::POST, path, &Query::new()).json(body)).await
    }

    /// Sends a request whose answer has no body, or none that matters.
    pub(crate) async fn done(&self, request: RequestBuilder) -> Result<(), Failure> {
        self.response(request).await.map(drop)
    }

    /// Sends a request and reads the answer.
    pub(crate) async fn answer<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<Answer<T>, Failure> {
        let response = self.response(request).await?;
        let bytes = response.bytes().await.map_err(|error| self.broken(&error))?;
        let wrong = |error| self.stranger(format!("answered what is not understood ({error})"));
        serde_json::from_slice(&bytes).map_err(wrong)
    }

    /// Sends a request; the answer is one that worked, and its body is not read yet.
    pub(crate) async fn response(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let response = request.send().await.map_err(|error| self.broken(&error))?;
        if response.status().is_success() { Ok(response) } else { Err(self.refusal(response).await) }
    }

    /// What an answer means that did not work.
    async fn refusal(&self, response: Response) -> Failure {
        let (status, headers) = (response.status(), response.headers().clone());
        let is_problem = headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "application/problem+json");
        let bytes = match response.bytes().await {
            Ok(bytes) => bytes,
            Err(error) => return self.broken(&error),
        };
        if is_problem
            && let Ok(problem) = serde_json::from_slice::<Problem>(&bytes)
            && let Ok(json) = serde_json::from_slice::<Box<RawValue>>(&bytes)
        {
            return Failure::Refused(Box::new(Refused { problem, json }));
        }
        if let Some(Ok(to)) = headers.get(LOCATION).map(HeaderValue::to_str) {
            return Failure::Stranger {
                url: self.base.to_string(),
                what: format!("points to {to}, which is not followed"),
            };
        }
        if matches!(status.as_u16(), 502..=504) {
            return self.away(format!("something before it answers {status}"));
        }
        self.stranger(format!("answered {status}"))
    }

    fn broken(&self, error: &reqwest::Error) -> Failure {
        let why = cause(error);
        if error.is_connect() {
            return self.away(why);
        }
        let why = if error.is_timeout() { "it took too long".to_owned() } else { why };
        Failure::Unanswered { url: self.base.to_string(), why }
    }

    fn away(&self, why: String) -> Failure {
        Failure::Unreachable { url: self.base.to_string(), why }
    }

    pub(super) fn stranger(&self, what: String) -> Failure {
        Failure::Stranger { url: self.base.to_string(), what }
    }
}

/// What is deepest says what happened; what is around it repeats the address.
fn cause(error: &dyn Error) -> String {
    let mut deepest = error;
    while let Some(next) = deepest.source() {
        deepest = next;
    }
    deepest.to_string()
}
