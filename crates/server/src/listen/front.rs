//! What every request passes on its way in, and every answer on its way out.
//!
//! It is passed for each enqueue, so that it allocates nothing: one future around the router's, one body around the
//! request's, one around the answer's.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use axum::response::IntoResponse as _;
use axum::routing::future::RouteFuture;
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;
use tower::Service as _;

use super::activity::{Activity, UnderWay};
use super::origin::{self, Names};
use super::pace::Paced;
use crate::Peer;
use crate::http::Refusal;

const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
/// What a browser may do with an answer that is not a page of ours: nothing.
const NOTHING: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const DENY: HeaderValue = HeaderValue::from_static("DENY");
const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");
const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// What the port was told about the requests it may take.
#[derive(Debug)]
pub(super) struct Rules {
    names: Names,
}

impl Rules {
    pub(super) fn new(open: bool, allowed_hosts: Vec<String>) -> Self {
        Self { names: if open { Names::Known(allowed_hosts) } else { Names::Any } }
    }
}

/// The app behind the port, as one connection has it.
#[derive(Debug, Clone)]
pub(super) struct Front {
    app: Router,
    rules: Arc<Rules>,
    peer: Peer,
    activity: Arc<Activity>,
}

impl Front {
    /// Of no connection yet.
    pub(super) fn new(app: Router, rules: Rules) -> Self {
        let nobody = Peer(([0, 0, 0, 0], 0).into());
        Self { app, rules: Arc::new(rules), peer: nobody, activity: Arc::default() }
    }

    pub(super) fn for_peer(&self, peer: SocketAddr) -> Self {
        Self {
            app: self.app.clone(),
            rules: Arc::clone(&self.rules),
            peer: Peer(peer),
            activity: Arc::default(),
        }
    }

    pub(super) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    fn check<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        origin::check(request.method(), request.uri(), request.headers(), &self.rules.names)?;
        check_encoding(request.headers())
    }
}

/// A body is taken as it comes: what is small here and large once it is unpacked has nowhere to be unpacked.
fn check_encoding(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
    if encodings.all(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Ok(());
    }
    let detail = "the body must not be compressed";
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_ENCODING", detail))
}

/// Where clients say one thing after another, whenever there is something to say. A type alone is said easily.
const STREAMS: [&str; 3] = [
    "/redrive.v1.Redrive/Consume",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

fn is_stream<B>(request: &Request<B>) -> bool {
    is_grpc(request.headers()) && STREAMS.contains(&request.uri().path())
}

fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

impl<B> hyper::service::Service<Request<B>> for Front
where
    B: http_body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static,
{
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, mut request: Request<B>) -> Answering {
        let under_way = Some(self.activity.begin());
        if let Err(refusal) = self.check(&request) {
            tracing::debug!(peer = %self.peer.0, code = refusal.code(), "a request was turned away at the port");
            return Answering { route: Route::Refused { refusal: Some(Box::new(refusal)) }, under_way };
        }
        request.extensions_mut().insert(self.peer);
        let held = !is_stream(&request);
        let route = self.app.clone().call(request.map(|body| Paced::new(body, held)));
        Answering { route: Route::Taken { route }, under_way }
    }
}

pin_project! {
    /// A request on its way to its answer.
    pub(super) struct Answering {
        #[pin]
        route: Route,
        under_way: Option<UnderWay>,
    }
}

pin_project! {
    #[project = Way]
    enum Route {
        Taken { #[pin] route: RouteFuture<Infallible> },
        Refused { refusal: Option<Box<Refusal>> },
    }
}

impl Future for Answering {
    type Output = Result<Response<Answer>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = match this.route.project() {
            Way::Taken { route } => match ready!(route.poll(context)) {
                Ok(response) => response,
            },
            Way::Refused { refusal } => refusal.take().expect("polled once, as it is ready").into_response(),
        };
        if !is_grpc(response.headers()) {
            secure(response.headers_mut());
        }
        // Who is too slow may go on sending: what it sends then is no request. HTTP/2 has no such header, and drops it.
        if response.status() == StatusCode::REQUEST_TIMEOUT {
            response.headers_mut().insert(CONNECTION, CLOSE);
        }
        let under_way = this.under_way.take();
        Poll::Ready(Ok(response.map(|body| Answer { body, _under_way: under_way })))
    }
}

/// Tells a browser that this is nothing to show, to guess the type of, to put into a page or to tell others about.
fn secure(headers: &mut HeaderMap) {
    headers.reserve(5);
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    headers.insert(X_FRAME_OPTIONS, DENY);
    headers.insert(REFERRER_POLICY, NO_REFERRER);
    headers.insert(CROSS_ORIGIN_RESOURCE_POLICY, SAME_ORIGIN);
    // A page of ours says itself what it needs.
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(NOTHING);
}

/// The body of an answer. Its request is under way until this is gone.
pub(super) struct Answer {
    body: Body,
    _under_way: Option<UnderWay>,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::{get, post};
    use http_body_util::BodyExt as _;
    use hyper::service::Service as _;

    use super::*;

    fn front() -> Front {
        let from = async |request: Request<Body>| request.extensions().get::<Peer>().unwrap().0.to_string();
        let page = async || ([(CONTENT_SECURITY_POLICY, "default-src 'self'")], "page");
        let call = async || ([(CONTENT_TYPE, "application/grpc")], "");
        let app = Router::new()
            .route("/from", post(from).get(from))
            .route("/page", get(page))
            .route("/call", get(call));
        Front::new(app, Rules::new(true, Vec::new())).for_peer(([192, 0, 2, 7], 9).into())
    }

    async fn ask(front: &Front, path: &str, headers: &[(&'static str, &'static str)]) -> Response<Answer> {
        let mut request = Request::post(path).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if path != "/from" {
            request = request.method("GET");
        }
        front.call(request.body(Body::empty()).unwrap()).await.unwrap()
    }

    #[tokio::test]
    async fn a_handler_can_say_from_where_a_request_came() {
        let answer = ask(&front(), "/from", &[]).await;
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "192.0.2.7:9");
    }

    #[tokio::test]
    async fn a_page_keeps_its_own_policy_and_grpc_has_none() {
        let policy = async |path: &str| {
            let answer = ask(&front(), path, &[]).await;
            answer.headers().get(CONTENT_SECURITY_POLICY).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(policy("/page").await.as_deref(), Some("default-src 'self'"));
        assert_eq!(policy("/call").await, None);
        assert_eq!(policy("/none").await.as_deref(), Some("default-src 'none'; frame-ancestors 'none'"));
    }

    #[tokio::test]
    async fn what_is_compressed_is_refused_whatever_it_is() {
        for (encoding, status) in [
            ("identity", 200),
            ("Identity", 200),
            ("gzip", 415),
            ("", 415),
            ("identity, gzip", 415),
            ("br", 415),
            ("x", 415),
        ] {
            let answer = ask(&front(), "/from", &[("content-encoding", encoding)]).await;
            assert_eq!(answer.status(), status, "{encoding}");
        }
    }

    #[tokio::test]
    async fn a_request_is_under_way_until_its_answer_is_gone() {
        let front = front();
        assert!(!front.activity().is_busy());
        let answer = ask(&front, "/from", &[]).await;
        assert!(front.activity().is_busy());
        drop(answer);
        assert!(!front.activity().is_busy());
        let refused = ask(&front, "/from", &[("origin", "null")]).await;
        assert!(refused.status() == StatusCode::FORBIDDEN && front.activity().is_busy());
        drop(refused);
        assert_eq!((front.activity().is_busy(), front.activity().begun()), (false, 2));
    }

    #[test]
    fn a_type_alone_does_not_make_a_stream() {
        let of = |path: &str, kind: &str| {
            is_stream(&Request::post(path).header(CONTENT_TYPE, kind).body(()).unwrap())
        };
        assert!(of("/redrive.v1.Redrive/Consume", "application/grpc"));
        assert!(of("/redrive.v1.Redrive/Consume", "application/grpc+proto"));
        assert!(!of("/redrive.v1.Redrive/Consume", "application/json"));
        assert!(!of("/redrive.v1.Redrive/Enqueue", "application/grpc"), "it has one message to send");
        assert!(!of("/v1/queues/orders/messages/import", "application/grpc"));
    }
}
