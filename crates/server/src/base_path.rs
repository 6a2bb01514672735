//! The path below which the API and the page are found, where something else has the rest of the host.

use std::fmt;
use std::str::FromStr;

use axum::Router;
use axum::extract::Request;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use tower::ServiceExt as _;

use crate::http::no_such_route;

/// Longest path, in bytes.
const BYTES_MAX: usize = 200;
/// What is found at the root as well: whoever watches the server asks it, and nothing that stands before it.
const PROBES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];
/// By what a proxy says which path it took away.
const FORWARDED: &str = "x-forwarded-prefix";

/// A path such as `/redrive`, or the root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BasePath {
    /// What stands before every path: nothing at the root, and never a slash at its end.
    prefix: String,
}

/// Why a text is no path of that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidBasePath {
    /// It is not made of such segments.
    Unclean,
    /// It is too long.
    TooLong,
    /// It is one of those that are always found at the root.
    Taken,
}

impl fmt::Display for InvalidBasePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unclean => f.write_str(
                "must be a path such as /redrive: slashes, and letters, digits and -._~ after each of them",
            ),
            Self::TooLong => write!(f, "must have at most {BYTES_MAX} bytes"),
            Self::Taken => write!(f, "must not begin with {}", PROBES.join(", nor with ")),
        }
    }
}

impl std::error::Error for InvalidBasePath {}

impl FromStr for BasePath {
    type Err = InvalidBasePath;

    /// A slash at the end is a habit, and means nothing.
    fn from_str(text: &str) -> Result<Self, InvalidBasePath> {
        let prefix = text.strip_suffix('/').unwrap_or(text);
        if prefix.len() > BYTES_MAX {
            return Err(InvalidBasePath::TooLong);
        }
        if text.is_empty() || !(prefix.is_empty() || is_clean(prefix)) {
            return Err(InvalidBasePath::Unclean);
        }
        let base = Self { prefix: prefix.to_owned() };
        let first = prefix.split('/').nth(1).unwrap_or_default();
        if PROBES.iter().any(|probe| probe.trim_start_matches('/') == first) {
            return Err(InvalidBasePath::Taken);
        }
        Ok(base)
    }
}

impl fmt::Display for BasePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.prefix.is_empty() { "/" } else { &self.prefix })
    }
}

/// Whether it is made of nothing but slashes and harmless segments. What is so can stand in a page and in a header as it is.
fn is_clean(prefix: &str) -> bool {
    let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let is_segment = |segment: &str| !matches!(segment, "" | "." | "..") && segment.bytes().all(is_harmless);
    prefix.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_segment))
}

impl BasePath {
    /// What stands before every path: nothing at the root, and never a slash at its end.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// A path without what stands before it, where that does.
    fn within<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.strip_prefix(&self.prefix).filter(|rest| rest.starts_with('/'))
    }

    /// Where it is from the folder of the page that asks, so that nobody has to know what a proxy took away: from `/`, or from
    /// the same without the slash at its end.
    fn relative(&self, path: &str) -> Option<String> {
        match path {
            "/" => Some(format!("{}/", self.prefix.trim_start_matches('/'))),
            path if path == self.prefix => Some(format!("{}/", path.rsplit('/').next()?)),
            _ => None,
        }
    }

    /// This router below the path, and nothing else but what is always found at the root.
    pub(crate) fn over(self, app: Router) -> Router {
        if self.prefix.is_empty() {
            return app;
        }
        Router::new().fallback(move |request: Request| {
            let (base, app) = (self.clone(), app.clone());
            async move { base.answer(app, request).await }
        })
    }

    async fn answer(&self, app: Router, mut request: Request) -> Response {
        let path = request.uri().path();
        if !PROBES.contains(&path) {
            let Some(uri) = self.within(path).and_then(|rest| with_path(request.uri(), rest)) else {
                return self.elsewhere(request.method(), path);
            };
            *request.uri_mut() = uri;
        }
        app.oneshot(request).await.into_response()
    }

    fn elsewhere(&self, method: &Method, path: &str) -> Response {
        match self.relative(path) {
            // For the time being: a browser would remember anything else for ever.
            Some(to) if matches!(*method, Method::GET | Method::HEAD) => {
                (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to)]).into_response()
            }
            _ => no_such_route(path).into_response(),
        }
    }
}

/// The same address with another path.
fn with_path(uri: &Uri, path: &str) -> Option<Uri> {
    let target = match uri.query() {
        Some(query) => PathAndQuery::try_from(format!("{path}?{query}")),
        None => PathAndQuery::try_from(path),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target.ok()?);
    Uri::from_parts(parts).ok()
}

/// What a proxy says that it took away from the path, where it says it once and it is clean. Anybody can say it, so that it
/// is good for nothing but the links of the page that is answered.
#[cfg_attr(
    not(any(feature = "ui", test)),
    expect(dead_code, reason = "there is no page whose links it could be good for")
)]
pub(crate) fn forwarded(headers: &HeaderMap) -> Option<&str> {
    let mut said = headers.get_all(FORWARDED).iter();
    let (Some(prefix), None) = (said.next(), said.next()) else { return None };
    let prefix = prefix.to_str().ok()?;
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    (prefix.len() <= BYTES_MAX && is_clean(prefix)).then_some(prefix)
}

#[cfg(test)]
mod tests {
    use axum::extract::OriginalUri;
    use axum::http::HeaderValue;
    use axum::routing::get;
    use http_body_util::BodyExt as _;

    use super::*;

    const HOSTILE: [&str; 20] = [
        "",
        "redrive",
        "//",
        "//evil.example",
        "/a//b",
        "/a//",
        "/.",
        "/..",
        "/a/../b",
        "/a b",
        "/a\"onload=x",
        "/<script>",
        "/a'b",
        "/a\\b",
        "/%2e%2e",
        "/a?b",
        "/a#b",
        "/a:b",
        "https://evil.example",
        "/é",
    ];

    #[test]
    fn a_base_path_is_clean_or_refused() {
        let of = |text: &str| text.parse::<BasePath>().map(|base| base.to_string());
        for (text, shown) in [
            ("/", "/"),
            ("/redrive", "/redrive"),
            ("/redrive/", "/redrive"),
            ("/a/b-c/d.e_f~1", "/a/b-c/d.e_f~1"),
            ("/...", "/..."),
            ("/metricsx", "/metricsx"),
        ] {
            assert_eq!(of(text).as_deref(), Ok(shown), "{text}");
        }
        for text in HOSTILE {
            assert_eq!(of(text), Err(InvalidBasePath::Unclean), "{text}");
        }
        for text in ["/metrics", "/healthz/x", "/readyz/"] {
            assert_eq!(of(text), Err(InvalidBasePath::Taken), "{text}");
        }
        let long = |bytes: usize| of(&format!("/{}", "x".repeat(bytes - 1)));
        assert!(long(BYTES_MAX).is_ok());
        assert_eq!(long(BYTES_MAX + 1), Err(InvalidBasePath::TooLong));
    }

    #[test]
    fn what_a_proxy_says_counts_once_and_only_where_it_is_clean() {
        let of = |said: &[&str]| {
            let mut headers = HeaderMap::new();
            for prefix in said {
                headers.append(FORWARDED, HeaderValue::from_bytes(prefix.as_bytes()).unwrap());
            }
            forwarded(&headers).map(str::to_owned)
        };
        assert_eq!(of(&["/queue"]).as_deref(), Some("/queue"));
        assert_eq!(of(&["/a/b/"]).as_deref(), Some("/a/b"));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["/"]), None, "nothing was taken away");
        assert_eq!(of(&["/a", "/a"]), None);
        assert_eq!(of(&["/a, /b"]), None);
        for prefix in HOSTILE {
            assert_eq!(of(&[prefix]), None, "{prefix}");
        }
        assert_eq!(of(&[&format!("/{}", "x".repeat(BYTES_MAX))]), None);
    }

    async fn ask(base: &str, method: Method, uri: &str) -> (u16, String) {
        let echo = async |OriginalUri(asked): OriginalUri, uri: Uri| format!("{asked} is {uri}");
        let app =
            Router::new().route("/v1/queues", get(echo)).route("/metrics", get(echo)).route("/", get(echo));
        let app = base.parse::<BasePath>().unwrap().over(app.fallback(async || StatusCode::IM_A_TEAPOT));
        let request = Request::builder().method(method).uri(uri).body(axum::body::Body::empty()).unwrap();
        let answer = app.oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let to = answer.headers().get(header::LOCATION).map(|to| to.to_str().unwrap().to_owned());
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, to.unwrap_or_else(|| String::from_utf8(body.into()).unwrap()))
    }

    #[tokio::test]
    async fn everything_is_below_the_path_and_probes_are_where_they_were() {
        let get = async |uri: &str| ask("/a/b", Method::GET, uri).await;
        let queues = "/a/b/v1/queues?x=1%20 is /v1/queues?x=1%20".to_owned();
        assert_eq!(get("/a/b/v1/queues?x=1%20").await, (200, queues));
        assert_eq!(get("/a/b/").await, (200, "/a/b/ is /".to_owned()));
        assert_eq!(get("/metrics").await, (200, "/metrics is /metrics".to_owned()));
        assert_eq!(get("/a/b/metrics").await, (200, "/a/b/metrics is /metrics".to_owned()));
        assert_eq!(get("/a/b/other").await.0, 418, "whoever is below says what is not there");
        for uri in
            ["/v1/queues", "/a", "/a/", "/a/bc", "/a/bv1/queues", "/A/B/", "/a/%62/", "/a/b%2Fv1/queues"]
        {
            assert_eq!(get(uri).await.0, 404, "{uri}");
        }
        assert_eq!(ask("/", Method::GET, "/v1/queues").await.0, 200, "nothing is below the root");
    }

    #[tokio::test]
    async fn who_comes_a_little_short_is_told_where_it_is_from_there() {
        let told = async |base, uri| ask(base, Method::GET, uri).await;
        assert_eq!(told("/a/b", "/").await, (307, "a/b/".to_owned()));
        assert_eq!(told("/a/b", "/a/b").await, (307, "b/".to_owned()));
        assert_eq!(told("/a", "/a?x").await, (307, "a/".to_owned()));
        assert_eq!(ask("/a", Method::POST, "/a").await.0, 404);
    }
}
