//! Whether a request was meant for this server, and by whom it was made.
//!
//! A browser sends what any page tells it to send, to any server that it can reach. Two things give such requests away:
//! the page's `Origin`, and, where a page's own name was made to point at this machine (DNS rebinding), that name in
//! `Host`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::{HeaderMap, Method, StatusCode, Uri, header};

use crate::http::Refusal;

/// What a request says of the page that it was made by, in newer browsers.
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// A host and a port, as `Host` and `:authority` name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Authority<'a> {
    host: Host<'a>,
    port: Option<u16>,
}

#[derive(Debug, Clone, Copy)]
enum Host<'a> {
    Address(IpAddr),
    Name(&'a str),
}

impl PartialEq for Host<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Address(one), Self::Address(other)) => one == other,
            (Self::Name(one), Self::Name(other)) => one.eq_ignore_ascii_case(other),
            _ => false,
        }
    }
}

impl Eq for Host<'_> {}

impl<'a> Authority<'a> {
    /// Nothing where it is garbled. Names are narrower than the standard has them: no machine is called otherwise.
    fn parse(text: &'a str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']')?;
            let address: Ipv6Addr = address.parse().ok()?;
            let port = if rest.is_empty() { None } else { port(rest.strip_prefix(':')?)? };
            return Some(Self { host: Host::Address(address.into()), port });
        }
        let (host, port) = match text.split_once(':') {
            Some((host, rest)) => (host, port(rest)?),
            None => (text, None),
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if host.is_empty() || !host.bytes().all(is_name) {
            return None;
        }
        let address = host.parse::<Ipv4Addr>().map(|address| Host::Address(address.into()));
        Some(Self { host: address.unwrap_or(Host::Name(host)), port })
    }
}

/// A port, which may be left out after its colon; nothing where it is none.
#[expect(clippy::option_option, reason = "wrong, left out, and there are three things")]
fn port(text: &str) -> Option<Option<u16>> {
    match text {
        "" => Some(None),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok().map(Some),
        _ => None,
    }
}

/// The names to which a port answers.
#[derive(Debug)]
pub(super) enum Names {
    /// To any: whoever is not known is refused elsewhere.
    Any,
    /// To addresses, to `localhost` and to these.
    Known(Vec<String>),
}

impl Names {
    fn have(&self, host: Host<'_>) -> bool {
        match (self, host) {
            (Self::Any, _) | (_, Host::Address(_)) => true,
            (Self::Known(names), Host::Name(name)) => {
                name.eq_ignore_ascii_case("localhost")
                    || names.iter().any(|known| known.eq_ignore_ascii_case(name))
            }
        }
    }
}

/// Refuses what was meant for another server, or was made by another server's page.
pub(super) fn check(method: &Method, uri: &Uri, headers: &HeaderMap, names: &Names) -> Result<(), Refusal> {
    let Some(asked) = authority(uri, headers) else {
        let detail = "the request must say once, and rightly, for which host it is";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "INVALID_HOST", detail));
    };
    if !names.have(asked.host) {
        let detail = "this server runs without API keys, and answers only to IP addresses, to localhost, and to what \
                      allowed_hosts names";
        return Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, "WRONG_HOST", detail));
    }
    // Whatever changes something; the others do not, and their answers are kept from other pages by the browser.
    if !method.is_safe() && !is_own(asked, headers) {
        let detail = "a page of another origin may not do this";
        return Err(Refusal::new(StatusCode::FORBIDDEN, "CROSS_ORIGIN", detail));
    }
    Ok(())
}

/// For which host a request is. HTTP/2 says it beside the path, HTTP/1 in a header; who says both must agree.
fn authority<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<Authority<'a>> {
    let target = uri.authority().map(|target| Authority::parse(target.as_str()));
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().map(|host| Authority::parse(host.to_str().ok()?));
    match (target, host, hosts.next()) {
        (Some(one), None, None) | (None, Some(one), None) => one,
        (Some(target), Some(host), None) if target == host => target,
        _ => None,
    }
}

/// Whether no page made the request, or one of this server.
fn is_own(asked: Authority<'_>, headers: &HeaderMap) -> bool {
    if headers.get(SEC_FETCH_SITE).is_some_and(|site| site == "cross-site") {
        return false;
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) => true,
        (Some(origin), None) => origin.to_str().is_ok_and(|origin| is_origin_of(asked, origin)),
        (Some(_), Some(_)) => false,
    }
}

fn is_origin_of(asked: Authority<'_>, origin: &str) -> bool {
    let Some((scheme, rest)) = origin.split_once("://") else { return false };
    let usual = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    Authority::parse(rest).is_some_and(|origin| {
        origin.host == asked.host && origin.port.unwrap_or(usual) == asked.port.unwrap_or(usual)
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use axum::response::IntoResponse;

    use super::*;

    fn judged(method: &Method, uri: &str, said: &[(&'static str, &str)], names: &Names) -> u16 {
        let mut headers = HeaderMap::new();
        for (name, value) in said {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        match check(method, &uri.parse().unwrap(), &headers, names) {
            Ok(()) => 200,
            Err(refusal) => refusal.into_response().status().as_u16(),
        }
    }

    #[test]
    fn a_host_is_said_once_and_rightly() {
        let of = |hosts: &[&str]| {
            let said: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
            judged(&Method::GET, "/", &said, &Names::Any)
        };
        for host in ["a", "a:1", "a:", "a.b-c_d:65535", "127.0.0.1", "[::1]", "[::1]:7400", "EXAMPLE.com"] {
            assert_eq!(of(&[host]), 200, "{host}");
        }
        let wrong = [
            "", ":80", "a b", "a:x", "a:65536", "a:+1", "a:1:2", "u@a", "a/b", "[::1", "::1", "[a]",
            "[::1]x", "é", "a,b", "http://a", "%61", "a?b", "[::1%lo]", "a\\b",
        ];
        for host in wrong {
            assert_eq!(of(&[host]), 400, "{host}");
        }
        assert_eq!((of(&[]), of(&["a", "a"])), (400, 400));
        let absolute = |host: &[_]| judged(&Method::GET, "http://a:1/x", host, &Names::Any);
        assert_eq!(absolute(&[]), 200, "as HTTP/2 says it");
        assert_eq!((absolute(&[("host", "A:1")]), absolute(&[("host", "b:1")])), (200, 400));
        let user = judged(&Method::GET, "http://user@a:1/x", &[], &Names::Any);
        assert_eq!(user, 400, "nobody logs in that way");
    }

    #[test]
    fn an_open_port_answers_to_no_name_that_a_page_could_have_taken() {
        let names = Names::Known(vec!["queue.internal".to_owned()]);
        let of = |host| judged(&Method::GET, "/", &[("host", host)], &names);
        for host in [
            "localhost",
            "LocalHost:7400",
            "127.0.0.1:7400",
            "10.0.0.7",
            "[::1]:7400",
            "[fe80::1]",
            "queue.internal",
            "Queue.Internal:1",
        ] {
            assert_eq!(of(host), 200, "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "evil.localhost",
            "localhost.",
            "127.0.0.1.evil.example",
            "127.1",
            "0x7f000001",
            "2130706433",
            "queue.internal.evil.example",
            "a.queue.internal",
        ] {
            assert_eq!(of(host), 421, "{host}");
        }
        assert_eq!(judged(&Method::GET, "http://evil.example/", &[("host", "localhost")], &names), 400);
        assert_eq!(judged(&Method::GET, "http://evil.example/", &[], &names), 421);
    }

    #[test]
    fn only_a_page_of_this_server_may_change_anything() {
        let of = |method: &Method, host, said: &[(&'static str, &'static str)]| {
            judged(method, "/", &[&[("host", host)], said].concat(), &Names::Any)
        };
        let post = |host, origin| of(&Method::POST, host, &[("origin", origin)]);
        for (host, origin) in [
            ("localhost:7400", "http://localhost:7400"),
            ("LOCALHOST:7400", "http://localhost:7400"),
            ("a.example", "https://a.example"),
            ("a.example:443", "https://a.example"),
            ("a.example", "https://a.example:443"),
            ("a.example", "http://a.example"),
            ("[::1]:7400", "http://[0:0:0:0:0:0:0:1]:7400"),
        ] {
            assert_eq!(post(host, origin), 200, "{origin} at {host}");
        }
        for (host, origin) in [
            ("localhost:7400", "null"),
            ("localhost:7400", ""),
            ("localhost:7400", "http://evil.example"),
            ("localhost:7400", "http://localhost:7401"),
            ("localhost:7400", "http://localhost"),
            ("localhost:7400", "http://localhost:7400.evil.example"),
            ("localhost:7400", "http://evil.example:7400"),
            ("localhost:7400", "http://localhost:7400/"),
            ("localhost:7400", "http://localhost:7400@evil.example"),
            ("localhost:7400", "http://evil@localhost:7400"),
            ("localhost:7400", "localhost:7400"),
            ("localhost:7400", "file://localhost:7400"),
            ("localhost:7400", "chrome-extension://localhost:7400"),
            ("127.0.0.1:7400", "http://localhost:7400"),
            ("a.example:80", "https://a.example"),
            ("localhost:7400", "http://localhost:7400 http://evil.example"),
            ("localhost:7400", "http://löcalhost:7400"),
        ] {
            assert_eq!(post(host, origin), 403, "{origin} at {host}");
        }
        let (own, other) = (("origin", "http://a"), ("origin", "http://b"));
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert_eq!(of(&method, "a", &[other]), 403, "{method}");
            assert_eq!(of(&method, "a", &[]), 200, "{method}: no browser leaves it out");
            assert_eq!(of(&method, "a", &[own, own]), 403, "{method}: it is said once");
            for (site, status) in
                [("cross-site", 403), ("same-origin", 200), ("none", 200), ("same-site", 200)]
            {
                assert_eq!(of(&method, "a", &[("sec-fetch-site", site)]), status, "{method} {site}");
            }
        }
        for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
            assert_eq!(of(&method, "a", &[other, ("sec-fetch-site", "cross-site")]), 200, "{method}");
        }
    }
}
