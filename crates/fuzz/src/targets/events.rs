//! What publishers and subscribers write: CloudEvents, filters of headers, URLs of webhooks, signing secrets.

use redrive_bus::cloudevents;
use redrive_bus::webhook::{AllowRule, Guard, SigningSecret, WebhookUrl};
use redrive_core::limits::{BODY_BYTES_DEFAULT_MAX, URL_BYTES_MAX};

use super::text;
use crate::trial::note;

/// One event as JSON. What is accepted is named by its source and id, and has a type.
pub fn structured(input: &[u8]) {
    match cloudevents::structured(input, BODY_BYTES_DEFAULT_MAX) {
        Ok(event) => {
            assert!(event.kind.is_some() && event.dedup_key.is_some());
            assert!(event.headers.get("ce-source").is_some_and(|source| !source.is_empty()));
            assert!(event.headers.get("ce-id").is_some_and(|id| !id.is_empty()));
        }
        Err(invalid) => note(invalid),
    }
}

/// Several of them.
pub fn batch(input: &[u8]) {
    if let Err(invalid) = cloudevents::batch(input, BODY_BYTES_DEFAULT_MAX) {
        note(invalid);
    }
}

/// One whose attributes are headers: a name and a value on each line, then an empty line, then the data.
pub fn binary(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let attributes = head.lines().filter_map(|line| line.split_once(':'));
    let body = body.as_bytes().to_vec();
    match cloudevents::binary(attributes, None, body.clone().into(), BODY_BYTES_DEFAULT_MAX) {
        Ok(event) => assert_eq!(event.body.bytes().as_ref(), body, "data passes untouched"),
        Err(invalid) => note(invalid),
    }
}

/// The URL of a webhook. What is accepted is accepted as it is printed, leads to a web port, and never to an address that is
/// written out and not public.
pub fn url(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let guard = Guard::default();
    match WebhookUrl::parse(text, &guard) {
        Ok(url) => {
            assert!(
                url.as_str().len() <= URL_BYTES_MAX && matches!(url.port(), 80 | 443),
                "{}",
                url.as_str()
            );
            let again = WebhookUrl::parse(url.as_str(), &guard).expect("it is refused the second time");
            assert_eq!(again.as_str(), url.as_str());
            if let Ok(address) = url.host().parse() {
                assert_eq!(guard.check(url.host(), address, url.port()), Ok(()));
            }
        }
        Err(invalid) => note(invalid),
    }
}

/// A rule about who may be called, or a secret.
pub fn rule(input: &[u8]) {
    let Some(text) = text(input) else { return };
    if let Err(invalid) = AllowRule::parse(text) {
        note(invalid);
    }
    match SigningSecret::parse(text) {
        Ok(secret) => assert_eq!(SigningSecret::parse(&secret.reveal()), Ok(secret)),
        Err(invalid) => note(invalid),
    }
}
