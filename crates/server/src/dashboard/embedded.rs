//! The files of the page, and which of them answers a request.

use std::borrow::Cow;
use std::collections::HashMap;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::accept::wants_page;
use super::document::{Document, Life};
use crate::base_path::{BasePath, forwarded};
use crate::http::Refusal;

/// A file as the build script found it.
struct File {
    path: &'static str,
    kind: &'static str,
    hash: &'static str,
    plain: &'static [u8],
    gzip: Option<&'static [u8]>,
    brotli: Option<&'static [u8]>,
}

/// All of them but the page itself.
const FILES: &[File] = &include!(concat!(env!("OUT_DIR"), "/dashboard.rs"));
/// The page, as it is found at the root.
const INDEX: &str = include_str!(concat!(env!("OUT_DIR"), "/index.html"));
/// What says so in it; the build script has looked that it is there once.
const BASE: &str = "<base href=\"/\"";
/// Files below this have a name that changes with what is in them.
const ASSETS: &str = "/assets/";
/// Where a page is never found, by the first segment: what is not there belongs to an API, or is a file of an older page.
const NO_PAGES: [&str; 7] = ["v1", "test", "openapi.json", "healthz", "readyz", "metrics", "assets"];

/// The page and its files, below a path.
#[derive(Debug)]
pub(crate) struct Dashboard {
    files: HashMap<&'static str, Document>,
    prefix: String,
    page: Document,
}

impl Dashboard {
    /// The page as it is found below that path.
    pub(crate) fn new(base: &BasePath) -> Self {
        let files = FILES.iter().map(|file| (file.path, file.document())).collect();
        Self { files, prefix: base.prefix().to_owned(), page: page(base.prefix()) }
    }

    /// What is answered, where it is something of the page.
    pub(crate) fn answer(&self, method: &Method, path: &str, headers: &HeaderMap) -> Option<Response> {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        let document = match self.files.get(path) {
            Some(file) => Cow::Borrowed(file),
            None if path == "/" || (reads && wants_page(headers) && may_be_page(path)) => self.page(headers),
            None => return None,
        };
        Some(if reads { document.answer(headers) } else { only_read(path) })
    }

    /// The page, with links that lead through the proxy which the request came by.
    fn page(&self, headers: &HeaderMap) -> Cow<'_, Document> {
        match forwarded(headers) {
            Some(before) => Cow::Owned(page(&format!("{before}{}", self.prefix))),
            None => Cow::Borrowed(&self.page),
        }
    }
}

impl File {
    fn document(&self) -> Document {
        Document {
            kind: self.kind,
            hash: self.hash.into(),
            life: if self.path.starts_with(ASSETS) { Life::Ever } else { Life::Asked },
            plain: Bytes::from_static(self.plain),
            gzip: self.gzip.map(Bytes::from_static),
            brotli: self.brotli.map(Bytes::from_static),
        }
    }
}

/// The page below a prefix, which is clean.
fn page(prefix: &str) -> Document {
    Document::page(INDEX.replacen(BASE, &format!("<base href=\"{prefix}/\""), 1))
}

/// Whether the page has something to show there, or says itself that it has not.
fn may_be_page(path: &str) -> bool {
    let first = path.split('/').nth(1).unwrap_or_default();
    !NO_PAGES.contains(&first)
}

fn only_read(path: &str) -> Response {
    let detail = format!("not with this method at {path}");
    let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", detail);
    let mut response = refusal.into_response();
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use http_body_util::BodyExt as _;

    use super::*;

    const BROWSER: (header::HeaderName, &str) = (header::ACCEPT, "text/html,*/*;q=0.8");

    fn asking(headers: &[(header::HeaderName, &str)]) -> HeaderMap {
        headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    async fn base_of(answer: Response) -> String {
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(text.into()).unwrap();
        let (_, rest) = text.split_once("<base href=\"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    }

    #[tokio::test]
    async fn the_page_is_at_the_root_and_wherever_a_browser_asks_for_one() {
        let dashboard = Dashboard::new(&BasePath::default());
        let status = |method: Method, path: &str, headers: &HeaderMap| {
            dashboard.answer(&method, path, headers).map(|answer| answer.status().as_u16())
        };
        let (program, browser) = (HeaderMap::new(), asking(&[BROWSER]));
        assert_eq!(status(Method::GET, "/", &program), Some(200));
        assert_eq!(status(Method::HEAD, "/", &program), Some(200));
        assert_eq!(status(Method::POST, "/", &program), Some(405));
        for path in ["/queues/orders", "/dead", "/v1x", "/../x", "//", "/%2e%2e/etc/passwd"] {
            assert_eq!(status(Method::GET, path, &browser), Some(200), "{path}");
            assert_eq!(status(Method::GET, path, &program), None, "{path}");
            assert_eq!(status(Method::POST, path, &browser), None, "{path}");
        }
        for path in
            ["/v1", "/v1/nothing", "/test/x", "/metrics/x", "/assets/", "/assets/none.js", "/assets/../x"]
        {
            assert_eq!(status(Method::GET, path, &browser), None, "{path}");
        }
        for file in FILES {
            assert_eq!(status(Method::GET, file.path, &program), Some(200), "{}", file.path);
            assert_eq!(status(Method::DELETE, file.path, &program), Some(405), "{}", file.path);
        }
    }

    #[tokio::test]
    async fn links_lead_through_whatever_stands_before_the_server() {
        let ask = async |base: &str, said: &[(header::HeaderName, &str)]| {
            let dashboard = Dashboard::new(&base.parse().unwrap());
            base_of(dashboard.answer(&Method::GET, "/", &asking(said)).unwrap()).await
        };
        let through = |prefix| [(header::HeaderName::from_static("x-forwarded-prefix"), prefix)];
        assert_eq!(ask("/", &[]).await, "/");
        assert_eq!(ask("/redrive", &[]).await, "/redrive/");
        assert_eq!(ask("/", &through("/queue")).await, "/queue/");
        assert_eq!(ask("/redrive", &through("/queue/")).await, "/queue/redrive/");
        for hostile in ["//evil.example", "/\"><script>", "https://evil.example", "/..", ""] {
            assert_eq!(ask("/redrive", &through(hostile)).await, "/redrive/", "{hostile}");
        }
    }

    #[test]
    fn the_page_has_nothing_inline_and_what_it_names_is_there() {
        for piece in INDEX.split('<').skip(1) {
            let (tag, text) = piece.split_once('>').unwrap();
            let name = tag.split_whitespace().next().unwrap();
            assert!(name != "script" || text.trim().is_empty(), "an inline script");
            assert!(name != "style" && !tag.contains(" style=") && !tag.contains(" on"), "<{tag}>");
            for link in tag.split_whitespace().filter_map(|word| word.split_once("=\"./")) {
                let path = format!("/{}", link.1.split('"').next().unwrap());
                assert!(FILES.iter().any(|file| file.path == path), "{path}");
            }
        }
    }

    #[test]
    fn every_encoding_of_a_file_is_that_file() {
        assert!(FILES.iter().any(|file| file.path.starts_with(ASSETS)));
        for file in FILES {
            let mut unpacked = Vec::new();
            if let Some(gzip) = file.gzip {
                flate2::read::GzDecoder::new(gzip).read_to_end(&mut unpacked).unwrap();
                assert_eq!(unpacked, file.plain, "{}", file.path);
            }
            if let Some(mut brotli) = file.brotli {
                unpacked.clear();
                brotli::BrotliDecompress(&mut brotli, &mut unpacked).unwrap();
                assert_eq!(unpacked, file.plain, "{}", file.path);
            }
            assert!(file.kind.contains('/') && file.hash.len() == 16, "{}", file.path);
        }
    }
}
