//! What is made of a receiver's answer.

// What is read here came from outside.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use std::time::UNIX_EPOCH;

use redrive_core::limits::CAPTURE_BYTES_MAX;
use redrive_core::time::{Millis, Timestamp};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// Longest time that a receiver may ask us to wait: a day. Whoever says more has made a mistake.
pub const RETRY_AFTER_MAX: Millis = Millis::from_days(1);
/// How much of the answer's body is put into the error text, in bytes.
const QUOTE_BYTES_MAX: usize = 200;

/// What came of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What it means for the message.
    pub verdict: Verdict,
    /// What people may see of it.
    pub capture: Capture,
}

/// What a request means for the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The receiver has it.
    Delivered,
    /// The receiver wants nothing any more, ever (410).
    Gone,
    /// It may be tried again.
    Failed {
        /// Why: the same text for the same failure, as far as that can be.
        error: String,
        /// How long the receiver asks us to wait.
        retry_after: Option<Millis>,
    },
}

impl Verdict {
    pub(super) fn failed(error: impl Into<String>) -> Self {
        Self::Failed { error: error.into(), retry_after: None }
    }
}

/// What people may see of a request and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capture {
    /// The headers that were sent, without the signature and with `…` for values that are secrets.
    pub request_headers: Vec<(String, String)>,
    /// The start of the body that was sent.
    pub request_body: String,
    /// How many bytes the body has.
    pub request_bytes: usize,
    /// What was answered; `None` where nothing was.
    pub status: Option<u16>,
    /// The first headers of the answer.
    pub response_headers: Vec<(String, String)>,
    /// The start of the answer's body.
    pub response_body: String,
    /// How long all of it took.
    pub elapsed_ms: u64,
}

/// The start of a body as text, which is all that is kept of it.
pub(super) fn start_of(body: &[u8]) -> String {
    let start = body.get(..CAPTURE_BYTES_MAX).unwrap_or(body);
    // A character that was cut in two is left out; what never was text is shown as such.
    let text = match str::from_utf8(start) {
        Err(error) if error.error_len().is_none() => start.get(..error.valid_up_to()).unwrap_or(start),
        _ => start,
    };
    let mut text = String::from_utf8_lossy(text).into_owned();
    text.truncate(text.floor_char_boundary(CAPTURE_BYTES_MAX));
    text
}

/// What an answer means: 2xx is a success, and nothing else is.
pub(super) fn judge(status: StatusCode, headers: &HeaderMap, body: &str, at: Timestamp) -> Verdict {
    let number = status.as_u16();
    if status.is_success() {
        return Verdict::Delivered;
    }
    if status == StatusCode::GONE {
        return Verdict::Gone;
    }
    if status.is_redirection() {
        return Verdict::failed(format!("answered {number}: redirects are not followed"));
    }
    let asks = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    let error = match quote(body) {
        Some(quote) => format!("answered {number}: {quote}"),
        None => format!("answered {number}"),
    };
    Verdict::Failed { error, retry_after: retry_after(headers, at).filter(|_| asks) }
}

/// The start of a text in one line; `None` where it is none.
fn quote(body: &str) -> Option<String> {
    let line = body.split_whitespace().collect::<Vec<_>>().join(" ");
    let text =
        !line.is_empty() && !line.contains(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER);
    text.then(|| match line.get(..line.floor_char_boundary(QUOTE_BYTES_MAX)) {
        Some(start) if start.len() < line.len() => format!("{start}…"),
        _ => line,
    })
}

/// The time that `Retry-After` asks for: a number of seconds, or a date. Whatever else it says is not listened to.
fn retry_after(headers: &HeaderMap, at: Timestamp) -> Option<Millis> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let asked = if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        value.parse().map_or(RETRY_AFTER_MAX, Millis::from_secs)
    } else {
        let date = httpdate::parse_http_date(value).ok()?.duration_since(UNIX_EPOCH).ok()?;
        Timestamp::from_millis(u64::try_from(date.as_millis()).unwrap_or(u64::MAX)).since(at)
    };
    Some(asked.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT
    const AT: Timestamp = Timestamp::from_millis(784_111_777_000);

    fn judged(status: u16, retry_after: Option<&str>, body: &str) -> Verdict {
        let mut headers = HeaderMap::new();
        if let Some(value) = retry_after {
            headers.insert(RETRY_AFTER, value.parse().unwrap());
        }
        judge(StatusCode::from_u16(status).unwrap(), &headers, body, AT)
    }

    fn failed(error: &str, retry_after: Option<u64>) -> Verdict {
        Verdict::Failed { error: error.to_owned(), retry_after: retry_after.map(Millis::new) }
    }

    #[test]
    fn only_2xx_is_a_success_and_only_410_is_the_end() {
        for status in 100..1_000 {
            let verdict = judged(status, None, "");
            match status {
                200..300 => assert_eq!(verdict, Verdict::Delivered),
                410 => assert_eq!(verdict, Verdict::Gone),
                300..400 => {
                    assert_eq!(
                        verdict,
                        failed(&format!("answered {status}: redirects are not followed"), None)
                    );
                }
                _ => assert_eq!(verdict, failed(&format!("answered {status}"), None)),
            }
        }
    }

    #[test]
    fn a_receiver_that_is_busy_says_for_how_long() {
        let day = RETRY_AFTER_MAX.get();
        let cases = [
            ("0", Some(0)),
            ("120", Some(120_000)),
            (" 7 ", Some(7_000)),
            ("86400", Some(day)),
            ("86401", Some(day)),
            ("99999999999999999999999999", Some(day)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60_000)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", Some(60_000)),
            ("Sun Nov  6 08:50:37 1994", Some(60_000)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
            ("Sun, 06 Nov 1983 08:49:37 GMT", Some(0)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(day)),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("1.5", None),
            ("1e3", None),
            ("soon", None),
            ("1994-11-06T08:50:37Z", None),
        ];
        for (value, expected) in cases {
            for status in [429, 503] {
                assert_eq!(
                    judged(status, Some(value), ""),
                    failed(&format!("answered {status}"), expected),
                    "{value}"
                );
            }
            assert_eq!(judged(500, Some(value), ""), failed("answered 500", None));
        }
    }

    #[test]
    fn the_error_quotes_what_is_text() {
        assert_eq!(judged(500, None, " no\r\n  such\ttable "), failed("answered 500: no such table", None));
        assert_eq!(judged(500, None, "\u{1f}\u{8b}"), failed("answered 500", None));
        assert_eq!(judged(500, None, "a\u{fffd}b"), failed("answered 500", None));
        assert_eq!(judged(500, None, "a\0b"), failed("answered 500", None));
        let long = judged(500, None, &"ü".repeat(500));
        assert_eq!(long, failed(&format!("answered 500: {}…", "ü".repeat(QUOTE_BYTES_MAX / 2)), None));
    }

    #[test]
    fn a_start_is_never_longer_than_its_limit() {
        assert_eq!(start_of(b"short"), "short");
        assert_eq!(start_of(&[b'a'; 5_000]), "a".repeat(CAPTURE_BYTES_MAX));
        assert!(start_of(&[0xff; 5_000]).len() <= CAPTURE_BYTES_MAX);
        let cut = format!("a{}", "ü".repeat(CAPTURE_BYTES_MAX));
        assert_eq!(start_of(cut.as_bytes()), format!("a{}", "ü".repeat(CAPTURE_BYTES_MAX / 2 - 1)));
    }
}
