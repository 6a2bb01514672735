//! Where a webhook goes, as a person wrote it.
//!
//! An address can be written in many ways (`0x7f.1`, `2130706433`, `①②⑦.0.0.1`, `[::ffff:7f00:1]`), and programs read them
//! differently; such differences are how a guard is passed by. So one parser reads the text, the guard judges what that
//! parser made of it, and whatever two readers might see in two ways is refused before it is asked.

// What is read here came from outside.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use std::fmt;
use std::net::IpAddr;

use http::Uri;
use redrive_core::invalid::{Invalid, Problem};
use redrive_core::limits::URL_BYTES_MAX;
use reqwest::Url;

use super::guard::{Guard, Refused, is_host_name};

/// Where a webhook goes: checked, and normalised. The path and what follows it may be a secret of the receiver, so it is
/// shown by `Display` alone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct WebhookUrl(Url);

impl WebhookUrl {
    /// Reads `text`, which must be `http` or `https` and lead nowhere that `guard` refuses, as far as that is known
    /// without a lookup.
    pub fn parse(text: &str, guard: &Guard) -> Result<Self, Invalid> {
        let url = Self::kept(text)?;
        url.check(guard).map_err(Refused::invalid)?;
        Ok(url)
    }

    /// Reads what was kept. Whether it may be dialled by now is found out when it is.
    pub fn kept(text: &str) -> Result<Self, Invalid> {
        check_text(text)?;
        check_authority(authority(text).ok_or_else(|| unusable(SCHEME))?)?;
        let url = Url::parse(text).map_err(|_| unusable("is not a URL"))?;
        if url.fragment().is_some() {
            return Err(unusable("must not have a fragment (`#`): it would not be sent"));
        }
        let url = Self(url);
        // A longer text comes of it where something had to be escaped.
        Invalid::check_length("url", url.as_str().len(), URL_BYTES_MAX, "bytes")?;
        url.check_host()?;
        Ok(url)
    }

    /// The whole text, normalised.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whose it is, without its path and what follows: that may be a secret of the receiver.
    pub fn origin(&self) -> String {
        format!("{}/…", self.0.origin().ascii_serialization())
    }

    /// The name or the address that it leads to; an address of IPv6 without its brackets.
    pub fn host(&self) -> &str {
        let host = self.0.host_str().unwrap_or_default();
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The port, also where it is not written.
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or_default()
    }

    /// The address where it is written, and not a name: nobody looks that up.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.host().parse().ok()
    }

    pub(super) const fn url(&self) -> &Url {
        &self.0
    }

    /// What can be said without a lookup.
    pub(super) fn check(&self, guard: &Guard) -> Result<(), Refused> {
        match self.address() {
            Some(addr) => guard.check(self.host(), addr, self.port()),
            None => guard.check_port(self.host(), self.port()),
        }
    }

    fn check_host(&self) -> Result<(), Invalid> {
        if self.address().is_none() && !is_host_name(self.host()) {
            return Err(unusable(HOST));
        }
        // Who dials reads the text by another parser.
        let sent: Option<Uri> = self.as_str().parse().ok();
        if sent.as_ref().and_then(Uri::host) == self.0.host_str() {
            Ok(())
        } else {
            Err(unusable("is not a URL"))
        }
    }
}

const SCHEME: &str = "must begin with `http://` or `https://`";
const HOST: &str = "must have the name or the address of a host";

/// A name of 253 bytes, which is the longest, has no more parts than this, nor a dot behind each.
const LABELS_MAX: usize = 128;

const fn unusable(why: &'static str) -> Invalid {
    Invalid::unusable("url", why)
}

/// What a parser might quietly leave out or read as something else.
fn check_text(text: &str) -> Result<(), Invalid> {
    if text.is_empty() {
        return Err(Invalid::new("url", Problem::Empty));
    }
    Invalid::check_length("url", text.len(), URL_BYTES_MAX, "bytes")?;
    let allowed = "text without white space, control characters and backslashes";
    match text.find(|c: char| c.is_control() || c.is_whitespace() || c == '\\') {
        Some(at) => Err(Invalid::new("url", Problem::BadCharacter { at, allowed })),
        None => Ok(()),
    }
}

/// What stands between the two slashes and the path; `None` where the text begins with something else.
fn authority(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let known = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    rest.split(['/', '?', '#']).next().filter(|authority| known && !authority.is_empty())
}

/// The host and the port, as they were written.
fn check_authority(written: &str) -> Result<(), Invalid> {
    if written.contains('@') {
        return Err(unusable("must not have a user name or a password"));
    }
    if written.contains('%') {
        return Err(unusable("must not have `%` in its host: no escapes, and no zone of an IPv6 address"));
    }
    // It would be refused all the same, after its parts were taken for an address of IPv4, which costs more than the text is worth.
    if written.matches('.').count() >= LABELS_MAX {
        return Err(unusable(HOST));
    }
    Ok(())
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.0.host_str().unwrap_or_default();
        write!(f, "WebhookUrl({}://{host}:{}/…)", self.0.scheme(), self.port())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::guard::AllowRule;
    use super::*;

    fn parse(text: &str) -> Result<String, String> {
        let parsed = WebhookUrl::parse(text, &Guard::default());
        parsed.map(|url| url.to_string()).map_err(|refused| refused.to_string())
    }

    #[test]
    fn what_people_write_is_taken_and_normalised() {
        let cases = [
            ("https://example.com", "https://example.com/"),
            ("HTTPS://Example.COM:443/Hook?a=b", "https://example.com/Hook?a=b"),
            ("http://example.com:80", "http://example.com/"),
            ("http://example.com:443/", "http://example.com:443/"),
            ("https://example.com./x", "https://example.com./x"),
            ("https://my_host.example.com/a@b", "https://my_host.example.com/a@b"),
            ("https://bücher.example/ü?ü=|", "https://xn--bcher-kva.example/%C3%BC?%C3%BC=|"),
            ("https://8.8.8.8/", "https://8.8.8.8/"),
            ("https://0x08.8.8.8/", "https://8.8.8.8/"),
            ("https://[2606:4700:4700:0::1111]/", "https://[2606:4700:4700::1111]/"),
            ("https://example.com/a/../b", "https://example.com/b"),
            ("https://hooks.example.com/T0/B0/%20x", "https://hooks.example.com/T0/B0/%20x"),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn the_longest_name_is_taken_however_many_parts_it_has() {
        for name in [format!("{}a", "a.".repeat(126)), format!("{}a.", "a.".repeat(126))] {
            assert_eq!(parse(&format!("https://{name}")), Ok(format!("https://{name}/")));
        }
        assert_eq!(parse(&format!("https://{}a", "a.".repeat(127))), Err(format!("url: {HOST}")));
    }

    #[test]
    fn a_refusal_names_the_rule() {
        let long = format!("https://example.com/{}", "a".repeat(URL_BYTES_MAX));
        let longer = format!("https://example.com/{}", "ü".repeat(900));
        let dots = format!("https://0{}/", ".".repeat(512));
        let characters = "text without white space, control characters and backslashes";
        let escapes = "must not have `%` in its host: no escapes, and no zone of an IPv6 address";
        let blocked = "leads to an address that is not allowed";
        let ports =
            "has a port that is not allowed: only 80 and 443 are, unless a rule of the server allows another";
        let cases = [
            ("", "must not be empty".to_owned()),
            (&long, "is 2068 bytes long, the limit is 2048".to_owned()),
            (&longer, "is 5420 bytes long, the limit is 2048".to_owned()),
            ("https://example.com/ a", format!("byte 20 is not allowed; allowed: {characters}")),
            ("https://example.com\\@a/", format!("byte 19 is not allowed; allowed: {characters}")),
            ("ftp://example.com/", SCHEME.to_owned()),
            ("http:example.com", SCHEME.to_owned()),
            ("https:///example.com", SCHEME.to_owned()),
            ("example.com", SCHEME.to_owned()),
            ("https://example.com:x/", "is not a URL".to_owned()),
            ("https://example%2ecom/", escapes.to_owned()),
            ("https://[fe80::1%25eth0]/", escapes.to_owned()),
            ("https://u:p@example.com/", "must not have a user name or a password".to_owned()),
            ("https://@example.com/", "must not have a user name or a password".to_owned()),
            ("https://example.com/#a", "must not have a fragment (`#`): it would not be sent".to_owned()),
            ("https://a..b/", HOST.to_owned()),
            (&dots, HOST.to_owned()),
            ("https://example.com:8080/", ports.to_owned()),
            ("https://127.1/", format!("{blocked}: loopback")),
            ("https://[::ffff:8.8.8.8]/", format!("{blocked}: IPv4 written as IPv6")),
        ];
        for (text, rule) in cases {
            assert_eq!(parse(text), Err(format!("url: {rule}")), "{text}");
        }
    }

    #[test]
    fn rules_of_the_server_allow_more() {
        let rules = ["10.0.0.0/8:8080", "intranet.example.com:8443"];
        let guard = Guard::allowing(rules.iter().map(|rule| AllowRule::parse(rule).unwrap()).collect());
        let allowed = |text| WebhookUrl::parse(text, &guard).is_ok();
        assert!(allowed("http://10.0.0.7:8080/"));
        assert!(!allowed("http://10.0.0.7/"));
        assert!(allowed("https://intranet.example.com:8443/"));
        assert!(!allowed("https://example.com:8443/"));
        assert!(allowed("https://example.com:8080/"), "it may have an address there");
        assert!(!allowed("https://8.8.8.8:8080/"));
    }

    #[test]
    fn a_debugged_url_keeps_the_secrets_of_its_path() {
        let url = WebhookUrl::parse("https://example.com/secret?token=secret", &Guard::default()).unwrap();
        assert_eq!(format!("{url:?}"), "WebhookUrl(https://example.com:443/…)");
    }

    /// Pieces of which hostile URLs are made, so that more of them get past the first check than of random characters.
    fn urls() -> impl Strategy<Value = String> {
        let scheme =
            prop::sample::select(vec!["http://", "https://", "HTTP://", "http:", "//", "file://", ""]);
        let host = prop_oneof![
            any::<u32>().prop_map(|bits| bits.to_string()),
            any::<u32>().prop_map(|bits| format!("0x{bits:x}")),
            any::<[u8; 4]>().prop_map(|[a, b, c, d]| format!("{a}.0{b:o}.0x{c:x}.{d}")),
            any::<[u16; 8]>()
                .prop_map(|parts| format!("[{}]", parts.map(|part| format!("{part:x}")).join(":"))),
            any::<[u8; 4]>().prop_map(|[a, b, c, d]| format!("[::ffff:{a}.{b}.{c}.{d}]")),
            "[a-z0-9.%@:\\[\\]①２。_-]{1,12}",
            any::<String>(),
        ];
        (scheme, host, "(:[0-9]{0,6})?", "([/?#@\\\\][ -~]{0,8})?")
            .prop_map(|(scheme, host, port, rest)| format!("{scheme}{host}{port}{rest}"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_096))]

        #[test]
        fn no_text_panics_and_whatever_is_taken_is_allowed(text in prop_oneof![urls(), any::<String>()]) {
            match WebhookUrl::parse(&text, &Guard::default()) {
                Ok(url) => {
                    prop_assert!([80, 443].contains(&url.port()));
                    let again = WebhookUrl::parse(url.as_str(), &Guard::default());
                    prop_assert_eq!(again.as_ref(), Ok(&url), "it is normal already");
                    if let Some(addr) = url.address() {
                        prop_assert_eq!(Guard::default().check(url.host(), addr, url.port()), Ok(()));
                    }
                }
                Err(refused) => prop_assert_eq!(refused.field, "url"),
            }
        }
    }
}
