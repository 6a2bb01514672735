//! How a client finds its server: address, API key, TLS.

use std::time::Duration;

use redrive_wire::v1::redrive_client::RedriveClient;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Status};

use crate::client::Client;
use crate::error::ConnectError;

/// How long a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How often a connection that says nothing is asked whether it is there, and how long it has for its answer.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// What may be under way to this client, on a stream and in all.
const WINDOW_BYTES: u32 = 4 << 20;
/// The largest piece in which an answer may come.
const FRAME_BYTES_MAX: u32 = 1 << 20;
/// Larger than the largest answer of a server.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The generated client, with the API key on every call.
pub(crate) type Api = RedriveClient<InterceptedService<Channel, Bearer>>;

/// Puts the API key on every call.
#[derive(Clone)]
pub(crate) struct Bearer(Option<MetadataValue<Ascii>>);

impl std::fmt::Debug for Bearer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Bearer(…)" } else { "Bearer(none)" })
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

/// Makes a [`Client`].
#[derive(Clone)]
pub struct ClientBuilder {
    url: String,
    token: Option<String>,
    ca: Option<String>,
    patience: Duration,
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The API key is nobody's business.
        f.debug_struct("ClientBuilder").field("url", &self.url).finish_non_exhaustive()
    }
}

impl ClientBuilder {
    pub(crate) fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), token: None, ca: None, patience: Duration::from_secs(10) }
    }

    /// The API key that every call shows.
    #[must_use]
    pub fn token(self, token: impl Into<String>) -> Self {
        Self { token: Some(token.into()), ..self }
    }

    /// The certificate of the authority that signed the server's, as PEM. Without one the machine's authorities count.
    #[must_use]
    pub fn ca_pem(self, pem: impl Into<String>) -> Self {
        Self { ca: Some(pem.into()), ..self }
    }

    /// How long a call is tried again before its error is told, ten seconds where nothing is said. Only what is safe to
    /// repeat is repeated.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Makes the client. It connects when it is first used, and again whenever the connection is lost.
    pub fn build(self) -> Result<Client, ConnectError> {
        let bearer = match &self.token {
            None => None,
            Some(token) => {
                let value = format!("Bearer {token}").parse::<MetadataValue<Ascii>>();
                let mut value = value.map_err(|_| ConnectError::Token)?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let endpoint = self.endpoint()?;
        let api = RedriveClient::with_interceptor(endpoint.connect_lazy(), Bearer(bearer))
            .max_decoding_message_size(ANSWER_BYTES_MAX);
        Ok(Client::new(api, self.patience))
    }

    fn endpoint(&self) -> Result<Endpoint, ConnectError> {
        let wrong = |error: tonic::transport::Error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            ConnectError::Url(format!("`{}`: {}", self.url, cause.unwrap_or_else(|| error.to_string())))
        };
        let endpoint = Endpoint::from_shared(self.url.clone()).map_err(wrong)?;
        let scheme = endpoint.uri().scheme_str().unwrap_or_default().to_owned();
        if !matches!(scheme.as_str(), "http" | "https") {
            return Err(ConnectError::Url(format!("`{}`: must begin with http:// or https://", self.url)));
        }
        let endpoint = endpoint
            .connect_timeout(CONNECT_TIME)
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES_MAX)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE);
        match (&self.ca, scheme.as_str()) {
            (None, "https") => endpoint.tls_config(ClientTlsConfig::new().with_native_roots()).map_err(wrong),
            (Some(pem), "https") => {
                let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem));
                endpoint.tls_config(tls).map_err(|error| ConnectError::Ca(error.to_string()))
            }
            (Some(_), _) => Err(ConnectError::Ca("only an address with https:// has one".to_owned())),
            (None, _) => Ok(endpoint),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_cannot_be_used_is_refused_by_name() {
        let build = |url: &str| ClientBuilder::new(url).build().map(drop).unwrap_err();
        assert!(build("not a url").to_string().starts_with("url: `not a url`"), "{}", build("not a url"));
        assert!(build("ftp://here").to_string().contains("must begin with http:// or https://"));
        let ca = ClientBuilder::new("http://here").ca_pem("x").build().map(drop).unwrap_err();
        assert_eq!(ca.to_string(), "ca: only an address with https:// has one");
        let token = ClientBuilder::new("http://here").token("a\nb").build().map(drop).unwrap_err();
        assert_eq!(token, ConnectError::Token);
    }

    #[test]
    fn an_api_key_is_not_printed() {
        let builder = ClientBuilder::new("http://here").token("rk_secret");
        assert!(!format!("{builder:?}").contains("secret"));
        assert!(!format!("{:?}", Bearer(Some("rk_secret".parse().unwrap()))).contains("secret"));
    }
}
