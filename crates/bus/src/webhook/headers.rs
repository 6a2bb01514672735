//! The headers of a request, and which of them anybody may set.

use redrive_core::invalid::Invalid;
use redrive_core::limits::HEADERS_BYTES_MAX;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};

use super::client::Call;
use super::sign::sign;

const PREFIX: &str = "webhook-";
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// What is said by somebody else: by the connection, by the body, or by the message's own content type.
const RESERVED: [&str; 13] = [
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Parts of the names of headers whose values are nobody else's business.
const SECRETIVE: [&str; 8] =
    ["auth", "cookie", "credential", "key", "password", "secret", "signature", "token"];

/// Whether a webhook may carry this header of its owner's.
pub fn check_header(name: &str, value: &str) -> Result<(), Invalid> {
    read(name, value).map(drop)
}

fn read(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Invalid> {
    let unusable = |why| Invalid::unusable("headers", why);
    let name = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| unusable("has a name that is none: letters, digits and !#$%&'*+-.^_`|~"))?;
    if RESERVED.contains(&name.as_str()) || name.as_str().starts_with(PREFIX) {
        return Err(unusable("has a name that is not free: it is set by the webhook itself"));
    }
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| unusable("has a value with other characters than visible ASCII and spaces"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// All headers of a request. What its owner adds cannot stand in for one of ours.
pub(super) fn of_call(call: &Call<'_>, user_agent: &str) -> Result<HeaderMap, Invalid> {
    let own = |value: &str| {
        HeaderValue::from_str(value).map_err(|_| {
            Invalid::unusable("headers", "the id or the content type is not visible ASCII and spaces")
        })
    };
    let bytes = call.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    Invalid::check_length("headers", bytes, HEADERS_BYTES_MAX, "bytes")?;
    let seconds = call.at.as_millis() / 1_000;
    let mut signature = own(&sign(call.secrets, call.id, seconds, &call.body))?;
    signature.set_sensitive(true);

    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, own(user_agent)?);
    for (name, value) in call.headers {
        let (name, value) = read(name, value)?;
        headers.insert(name, value);
    }
    headers.insert(CONTENT_TYPE, own(call.content_type)?);
    headers.insert(HeaderName::from_static("webhook-id"), own(call.id)?);
    headers.insert(HeaderName::from_static("webhook-timestamp"), seconds.into());
    if !call.secrets.is_empty() {
        headers.insert(SIGNATURE, signature);
    }
    Ok(headers)
}

/// The headers as people may see them: so many, so many bytes, and no secrets. The signature is left out altogether.
pub(super) fn shown(headers: &HeaderMap, count_max: usize, bytes_max: usize) -> Vec<(String, String)> {
    let mut left = bytes_max;
    let mut shown = Vec::new();
    for (name, value) in headers.iter().filter(|(name, _)| *name != SIGNATURE).take(count_max) {
        let secret = SECRETIVE.iter().any(|part| name.as_str().contains(part));
        let value = if secret { "…".into() } else { String::from_utf8_lossy(value.as_bytes()) };
        let Some(room) = left.checked_sub(name.as_str().len()) else {
            break;
        };
        let value = value[..value.floor_char_boundary(room)].to_owned();
        left = room - value.len();
        shown.push((name.as_str().to_owned(), value));
    }
    shown
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use redrive_core::time::{Millis, Timestamp};

    use super::super::guard::Guard;
    use super::super::secret::SigningSecret;
    use super::super::url::WebhookUrl;
    use super::*;

    fn with<T>(extra: &[(&str, &str)], then: impl FnOnce(Result<HeaderMap, Invalid>) -> T) -> T {
        let url = WebhookUrl::parse("https://example.com/", &Guard::default()).unwrap();
        let secrets = [SigningSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap()];
        let headers: Vec<(String, String)> =
            extra.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let call = Call {
            url: &url,
            secrets: &secrets,
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
            at: Timestamp::from_millis(1_614_265_330_999),
            content_type: "application/json",
            headers: &headers,
            body: Bytes::from_static(br#"{"test": 2432232314}"#),
            timeout: Millis::from_secs(30),
        };
        then(of_call(&call, "Redrive/1"))
    }

    #[test]
    fn a_request_has_the_headers_of_the_specification() {
        with(&[("x-tenant", "7")], |headers| {
            let headers = headers.unwrap();
            let expected = [
                ("user-agent", "Redrive/1"),
                ("x-tenant", "7"),
                ("content-type", "application/json"),
                ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
                ("webhook-timestamp", "1614265330"),
                ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
            ];
            let found: Vec<_> =
                headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
            assert_eq!(found, expected);
            assert!(!format!("{headers:?}").contains("g0hM9SsE"));
        });
    }

    #[test]
    fn nobody_sets_what_is_not_theirs() {
        for name in RESERVED.iter().chain(&["Webhook-Signature", "webhook-id", "webhook-x", "HOST"]) {
            assert!(check_header(name, "1").is_err(), "{name}");
            with(&[(name, "1")], |headers| assert!(headers.is_err(), "{name}"));
        }
        for (name, value) in
            [("", "a"), ("a b", "a"), ("ä", "a"), ("a:", "a"), ("a", "b\r\nhost: c"), ("a", "\0")]
        {
            assert_eq!(check_header(name, value).unwrap_err().field, "headers", "{name} {value}");
        }
        check_header("X-Tenant", "seven and eight").unwrap();
        check_header("authorization", "Bearer x").unwrap();
        with(&[("user-agent", "mine")], |headers| assert_eq!(headers.unwrap()["user-agent"], "mine"));
        let much = "a".repeat(HEADERS_BYTES_MAX);
        with(&[("x", &much)], |headers| assert!(headers.is_err()));
    }

    #[test]
    fn what_is_shown_is_bounded_and_no_secret() {
        with(&[("authorization", "Bearer x"), ("x-api-key", "y"), ("x-tenant", "7")], |headers| {
            let headers = headers.unwrap();
            let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            let all = shown(&headers, 100, 1_000);
            assert_eq!(all.len(), headers.len() - 1, "all but the signature");
            assert!(all.contains(&pair("authorization", "…")) && all.contains(&pair("x-api-key", "…")));
            assert!(all.contains(&pair("x-tenant", "7")));
            assert_eq!(shown(&headers, 1, 1_000), [pair("user-agent", "Redrive/1")]);
            assert_eq!(shown(&headers, 100, 12), [pair("user-agent", "Re")]);
        });
    }
}
