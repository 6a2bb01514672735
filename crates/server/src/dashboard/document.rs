//! A file as it is answered: in the encoding that is wanted, or not at all where it is there already.

use std::borrow::Cow;
use std::io::Write as _;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::accept::{Encoding, has_already};
use super::fnv::Fnv;
use super::policy;

/// How long a browser may keep a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// For ever: its name changes with what is in it.
    Ever,
    /// Until it was asked whether it is still the same.
    Asked,
}

/// A file in each of its encodings.
#[derive(Debug, Clone)]
pub(super) struct Document {
    pub(super) kind: &'static str,
    /// The number of what is in it.
    pub(super) hash: Cow<'static, str>,
    pub(super) life: Life,
    pub(super) plain: Bytes,
    pub(super) gzip: Option<Bytes>,
    pub(super) brotli: Option<Bytes>,
}

impl Document {
    /// A page that was just written. It is small, and often written anew: what more time would save is less than a packet.
    pub(super) fn page(text: String) -> Self {
        Self {
            kind: "text/html; charset=utf-8",
            hash: Fnv::new().with(text.as_bytes()).hex().into(),
            life: Life::Asked,
            gzip: gzip(text.as_bytes()).filter(|gzip| gzip.len() < text.len()),
            brotli: None,
            plain: text.into(),
        }
    }

    fn is_page(&self) -> bool {
        self.kind.starts_with("text/html")
    }

    fn body(&self, encoding: Encoding) -> Option<&Bytes> {
        match encoding {
            Encoding::Identity => Some(&self.plain),
            Encoding::Gzip => self.gzip.as_ref(),
            Encoding::Brotli => self.brotli.as_ref(),
        }
    }

    /// What is answered to who asks with these headers.
    pub(super) fn answer(&self, asked: &HeaderMap) -> Response<Body> {
        let encoding = Encoding::chosen(asked, |encoding| self.body(encoding).is_some());
        // Two encodings are two things, which must not be taken for each other.
        let tag = format!("\"{}-{}\"", self.hash, encoding.name());
        let mut response = Response::new(Body::empty());
        if has_already(asked, &tag) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            *response.body_mut() = self.body(encoding).unwrap_or(&self.plain).clone().into();
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
            if encoding != Encoding::Identity {
                headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
            }
        }
        self.tell_caches(&tag, response.headers_mut());
        if self.is_page() {
            policy::add_to(response.headers_mut());
        }
        response
    }

    fn tell_caches(&self, tag: &str, headers: &mut HeaderMap) {
        if let Ok(tag) = HeaderValue::from_str(tag) {
            headers.insert(header::ETAG, tag);
        }
        let life = match self.life {
            Life::Ever => "public, max-age=31536000, immutable",
            Life::Asked => "no-cache",
        };
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(life));
        // What one proxy says of its path must not be shown behind another.
        let varies = if self.is_page() { "accept-encoding, x-forwarded-prefix" } else { "accept-encoding" };
        headers.insert(header::VARY, HeaderValue::from_static(varies));
    }
}

fn gzip(bytes: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).ok()?;
    Some(encoder.finish().ok()?.into())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use http_body_util::BodyExt as _;

    use super::*;

    fn document() -> Document {
        Document {
            kind: "text/css; charset=utf-8",
            hash: "0123".into(),
            life: Life::Ever,
            plain: Bytes::from_static(b"plain"),
            gzip: Some(Bytes::from_static(b"gzip")),
            brotli: None,
        }
    }

    fn asking(headers: &[(header::HeaderName, &'static str)]) -> HeaderMap {
        headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    async fn body(answer: Response<Body>) -> Bytes {
        answer.into_body().collect().await.unwrap().to_bytes()
    }

    fn text<'a>(answer: &'a Response<Body>, name: &str) -> Option<&'a str> {
        answer.headers().get(name).map(|value| value.to_str().unwrap())
    }

    #[tokio::test]
    async fn each_encoding_has_a_tag_of_its_own() {
        let plain = document().answer(&HeaderMap::new());
        assert_eq!(text(&plain, "etag"), Some("\"0123-identity\""));
        assert_eq!((text(&plain, "content-encoding"), text(&plain, "vary")), (None, Some("accept-encoding")));
        assert_eq!(text(&plain, "content-type"), Some("text/css; charset=utf-8"));
        assert_eq!(text(&plain, "cache-control"), Some("public, max-age=31536000, immutable"));
        assert_eq!(body(plain).await, "plain");
        let packed = document().answer(&asking(&[(header::ACCEPT_ENCODING, "br, gzip")]));
        assert_eq!(text(&packed, "etag"), Some("\"0123-gzip\""));
        assert_eq!(text(&packed, "content-encoding"), Some("gzip"));
        assert_eq!(body(packed).await, "gzip");
    }

    #[tokio::test]
    async fn what_is_there_already_is_not_sent_again() {
        let ask = |tag, encoding| {
            document().answer(&asking(&[(header::IF_NONE_MATCH, tag), (header::ACCEPT_ENCODING, encoding)]))
        };
        let known = ask("W/\"0123-gzip\"", "gzip");
        assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(text(&known, "etag"), Some("\"0123-gzip\""));
        assert_eq!((text(&known, "vary"), text(&known, "content-type")), (Some("accept-encoding"), None));
        assert!(text(&known, "cache-control").is_some());
        assert!(body(known).await.is_empty());
        assert_eq!(ask("\"0123-gzip\"", "identity").status(), StatusCode::OK, "that is another");
    }

    #[tokio::test]
    async fn a_page_is_asked_for_again_and_has_its_policy() {
        let page = Document::page("<p>page</p>".repeat(40));
        let answer = page.answer(&asking(&[(header::ACCEPT_ENCODING, "gzip, br")]));
        assert_eq!(text(&answer, "cache-control"), Some("no-cache"));
        assert_eq!(text(&answer, "vary"), Some("accept-encoding, x-forwarded-prefix"));
        assert!(text(&answer, "content-security-policy").is_some());
        let mut unpacked = String::new();
        GzDecoder::new(&*body(answer).await).read_to_string(&mut unpacked).unwrap();
        assert_eq!(unpacked, "<p>page</p>".repeat(40));
        assert_ne!(page.hash, Document::page("<p>other</p>".to_owned()).hash);
        assert!(document().answer(&HeaderMap::new()).headers().get("content-security-policy").is_none());
    }
}
