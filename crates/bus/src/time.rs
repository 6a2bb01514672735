//! Times as CloudEvents writes them.

use redrive_core::time::Timestamp;

/// A time as RFC 3339 writes it.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    let ms = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    // Its last day comes a little before ours.
    jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX).to_string()
}
