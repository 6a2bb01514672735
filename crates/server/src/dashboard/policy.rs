//! What the page may do in a browser: show itself, and talk to the server that it came from.

use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// Nothing from elsewhere, nothing inline, nothing that was put together from text: what a message or an error says can never
/// become a script, be it shown wrongly. The one name is that of the policy by which Svelte makes elements.
const CONTENT: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
    connect-src 'self'; manifest-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types svelte-trusted-html";
/// Everything off that browsers let a page ask for, but to put something on the clipboard. One that a browser does not know
/// is told on its console, so that only those are here which all of the same family know.
const PERMISSIONS: &str = "accelerometer=(), autoplay=(), camera=(), clipboard-read=(), display-capture=(), \
    encrypted-media=(), fullscreen=(), gamepad=(), geolocation=(), gyroscope=(), hid=(), idle-detection=(), \
    local-fonts=(), magnetometer=(), microphone=(), midi=(), payment=(), picture-in-picture=(), \
    publickey-credentials-create=(), publickey-credentials-get=(), screen-wake-lock=(), serial=(), sync-xhr=(), usb=(), \
    window-management=(), xr-spatial-tracking=()";

/// Says so. The port adds what it says with every answer.
pub(super) fn add_to(headers: &mut HeaderMap) {
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT));
    headers.insert(
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    );
    headers.insert(HeaderName::from_static("permissions-policy"), HeaderValue::from_static(PERMISSIONS));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_inline_and_nothing_from_elsewhere_is_allowed() {
        assert!(CONTENT.starts_with("default-src 'none'; "));
        for word in ["unsafe", "http:", "https:", "*", "blob:", "nonce", "strict-dynamic"] {
            assert!(!CONTENT.contains(word), "{word}");
        }
        assert_eq!(CONTENT.matches("data:").count(), 1, "for pictures only");
        assert!(CONTENT.ends_with("; require-trusted-types-for 'script'; trusted-types svelte-trusted-html"));
        assert!(PERMISSIONS.split(", ").all(|feature| feature.ends_with("=()")));
    }
}
