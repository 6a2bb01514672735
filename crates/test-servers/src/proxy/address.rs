//! Where a URL leads, and the same URL by another way.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// What is spoken where a URL leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Postgres,
    Redis,
}

/// A URL in three parts, with the host and the port in the middle.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address<'a> {
    pub(super) protocol: Protocol,
    before: &'a str,
    host: &'a str,
    behind: &'a str,
}

impl<'a> Address<'a> {
    pub(super) fn of(url: &'a str) -> io::Result<Self> {
        let (scheme, _) = url.split_once("://").ok_or_else(|| unfit("it is no URL"))?;
        let protocol = match scheme.trim_end_matches("+cluster") {
            "redis" => Protocol::Redis,
            "rediss" => return Err(unfit("what it leads to is encrypted")),
            _ => Protocol::Postgres,
        };
        let start = scheme.len() + 3;
        let end = url[start..].find(['/', '?']).map_or(url.len(), |length| start + length);
        let start = url[start..end].rfind('@').map_or(start, |user| start + user + 1);
        let host = &url[start..end];
        match host {
            "" => Err(unfit("it has no host")),
            _ if host.contains(',') => Err(unfit("it has several hosts")),
            _ if host.contains('%') => Err(unfit("it leads to a Unix socket")),
            _ => Ok(Self { protocol, before: &url[..start], host, behind: &url[end..] }),
        }
    }

    pub(super) fn socket(&self) -> io::Result<SocketAddr> {
        let has_port = self.host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let named =
            if has_port { self.host.to_owned() } else { format!("{}:{}", self.host, self.protocol.port()) };
        named.to_socket_addrs()?.next().ok_or_else(|| unfit("its host has no address"))
    }

    /// The URL with a port of the loopback instead.
    pub(super) fn replaced_by(&self, port: u16) -> String {
        format!("{}127.0.0.1:{port}{}", self.before, self.behind)
    }
}

impl Protocol {
    /// The port of a URL that has none.
    fn port(self) -> u16 {
        match self {
            Self::Postgres => 5432,
            Self::Redis => 6379,
        }
    }
}

/// The URL has a password in it, so that it is not shown.
fn unfit(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("no proxy for this URL: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(url: &str) -> String {
        Address::of(url).map_or_else(|cause| cause.to_string(), |address| address.replaced_by(7))
    }

    #[test]
    fn only_host_and_port_are_replaced() {
        assert_eq!(replaced("postgres://a:b@host:5/db?x=1@y:2"), "postgres://a:b@127.0.0.1:7/db?x=1@y:2");
        assert_eq!(replaced("postgres://a:b%40c@host/db"), "postgres://a:b%40c@127.0.0.1:7/db");
        assert_eq!(replaced("postgresql://[::1]:5?a=b"), "postgresql://127.0.0.1:7?a=b");
        assert_eq!(replaced("redis://:secret@host:5/1"), "redis://:secret@127.0.0.1:7/1");
    }

    #[test]
    fn a_url_without_a_port_leads_to_the_usual_one() {
        for (url, port) in [
            ("p://127.0.0.1/db", 5432),
            ("p://[::1]/db", 5432),
            ("p://[::1]:9/db", 9),
            ("p://a@127.0.0.1:8", 8),
            ("redis://127.0.0.1", 6379),
            ("redis+cluster://127.0.0.1", 6379),
        ] {
            assert_eq!(Address::of(url).unwrap().socket().unwrap().port(), port, "{url}");
        }
    }

    #[test]
    fn what_leads_to_no_single_port_is_refused() {
        assert_eq!(replaced("host=127.0.0.1"), "no proxy for this URL: it is no URL");
        assert_eq!(replaced("p://a@/db?host=/tmp"), "no proxy for this URL: it has no host");
        assert_eq!(replaced("p://a:1,b:2/db"), "no proxy for this URL: it has several hosts");
        assert_eq!(replaced("p://a@%2Ftmp:5/db"), "no proxy for this URL: it leads to a Unix socket");
        assert_eq!(replaced("rediss://a:1"), "no proxy for this URL: what it leads to is encrypted");
    }
}
