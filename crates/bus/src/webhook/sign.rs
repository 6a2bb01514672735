//! Signatures by the Standard Webhooks specification: `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`.
//!
//! Every live secret signs, so that a receiver may change from one to the other at its own time.

// What is read here came from outside.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use data_encoding::BASE64;
use hmac::Mac;
use redrive_core::limits::WEBHOOK_SECRETS_MAX;
use redrive_core::time::{Millis, Timestamp};
use subtle::{Choice, ConstantTimeEq};
use thiserror::Error;

use super::secret::SigningSecret;

const VERSION: &str = "v1,";
const SIGNATURE_BYTES: usize = 32;
/// Most signatures of one request that are looked at: each costs a hash of the body.
const SIGNATURES_MAX: usize = 4 * WEBHOOK_SECRETS_MAX;

/// How far the clocks of the two sides may differ: what the specification's own libraries allow.
pub const TOLERANCE: Millis = Millis::from_secs(5 * 60);

/// The value of the `webhook-signature` header: one signature for each secret, separated by spaces.
pub fn sign(secrets: &[SigningSecret], id: &str, timestamp_seconds: u64, body: &[u8]) -> String {
    let timestamp = timestamp_seconds.to_string();
    let signatures = secrets.iter().map(|secret| {
        let signature = signature(secret, id, &timestamp, body);
        format!("{VERSION}{}", BASE64.encode(&signature))
    });
    signatures.collect::<Vec<_>>().join(" ")
}

fn signature(secret: &SigningSecret, id: &str, timestamp: &str, body: &[u8]) -> [u8; SIGNATURE_BYTES] {
    let mut mac = secret.mac();
    for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// A request as its receiver sees it.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'a> {
    /// The value of `webhook-id`.
    pub id: &'a str,
    /// The value of `webhook-timestamp`.
    pub timestamp: &'a str,
    /// The value of `webhook-signature`.
    pub signature: &'a str,
    /// The body, byte for byte.
    pub body: &'a [u8],
}

/// The request is not to be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unverified {
    /// The time is no number of seconds.
    #[error("`webhook-timestamp` is not a number of seconds")]
    Timestamp,
    /// It was sent too long ago: it may be one that somebody recorded.
    #[error("`webhook-timestamp` is too long ago")]
    TooOld,
    /// It claims to be sent in the future.
    #[error("`webhook-timestamp` lies too far ahead")]
    TooNew,
    /// No signature is one of these secrets.
    #[error("no signature in `webhook-signature` is right")]
    Signature,
}

/// Whether one of the secrets has signed the request, at a time no further from `now` than `tolerance`.
///
/// A signature counts only where it has all its 32 bytes; those are compared in a time that tells nothing about where the
/// two differ. Signatures of other versions are passed over.
pub fn verify(
    secrets: &[SigningSecret],
    request: &Signed<'_>,
    now: Timestamp,
    tolerance: Millis,
) -> Result<(), Unverified> {
    check_time(request.timestamp, now, tolerance)?;
    let shown: Vec<[u8; SIGNATURE_BYTES]> =
        request.signature.split(' ').take(SIGNATURES_MAX).filter_map(read).collect();
    let mut right = Choice::from(0);
    for secret in secrets {
        let expected = signature(secret, request.id, request.timestamp, request.body);
        for shown in &shown {
            right |= expected.ct_eq(shown);
        }
    }
    if right.into() { Ok(()) } else { Err(Unverified::Signature) }
}

/// Only digits are a time: `parse` alone takes a plus sign as well, and there is one way to write each.
fn check_time(text: &str, now: Timestamp, tolerance: Millis) -> Result<(), Unverified> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let seconds: Option<u64> = text.parse().ok().filter(|_| digits);
    let at = Timestamp::from_millis(Millis::from_secs(seconds.ok_or(Unverified::Timestamp)?).get());
    if now.since(at) > tolerance {
        Err(Unverified::TooOld)
    } else if at.since(now) > tolerance {
        Err(Unverified::TooNew)
    } else {
        Ok(())
    }
}

/// A signature of our version with all its bytes, or nothing.
fn read(text: &str) -> Option<[u8; SIGNATURE_BYTES]> {
    BASE64.decode(text.strip_prefix(VERSION)?.as_bytes()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector of the specification's own libraries.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const SECONDS: u64 = 1_614_265_330;
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn secret(byte: u8) -> SigningSecret {
        SigningSecret::parse(&BASE64.encode(&[byte; 32])).unwrap()
    }

    fn published() -> SigningSecret {
        SigningSecret::parse(SECRET).unwrap()
    }

    fn check(signature: &str) -> Result<(), Unverified> {
        let request = Signed { id: ID, timestamp: &SECONDS.to_string(), signature, body: BODY };
        verify(&[published()], &request, Timestamp::from_millis(SECONDS * 1_000), TOLERANCE)
    }

    #[test]
    fn the_published_vector_is_signed_and_verified() {
        assert_eq!(sign(&[published()], ID, SECONDS, BODY), SIGNATURE);
        assert_eq!(check(SIGNATURE), Ok(()));
    }

    #[test]
    fn every_live_secret_signs_and_any_of_them_verifies() {
        let all = [secret(1), published(), secret(2)];
        let signature = sign(&all, ID, SECONDS, BODY);
        assert_eq!(signature.split(' ').count(), 3);
        assert!(signature.contains(SIGNATURE));
        assert_eq!(check(&signature), Ok(()));
        assert_eq!(check(&sign(&[secret(1), secret(2)], ID, SECONDS, BODY)), Err(Unverified::Signature));
        assert_eq!(sign(&[], ID, SECONDS, BODY), "");
    }

    /// Svix compared up to the shorter length once (RUSTSEC-2024-0010): `v1,` alone was always right.
    #[test]
    fn every_proper_prefix_of_a_right_signature_is_refused() {
        for end in 0..SIGNATURE.len() {
            assert_eq!(check(&SIGNATURE[..end]), Err(Unverified::Signature), "{end}");
            let padded = format!("{}==", SIGNATURE[..end].trim_end_matches('='));
            assert_eq!(check(&padded), Err(Unverified::Signature), "{padded}");
        }
        let bytes = BASE64.decode(&SIGNATURE.as_bytes()[3..]).unwrap();
        for end in 0..bytes.len() {
            let cut = format!("v1,{}", BASE64.encode(&bytes[..end]));
            assert_eq!(check(&cut), Err(Unverified::Signature), "{end}");
        }
        let longer = format!("v1,{}", BASE64.encode(&[&bytes[..], &[0]].concat()));
        assert_eq!(check(&longer), Err(Unverified::Signature));
    }

    #[test]
    fn other_versions_and_garbage_are_passed_over() {
        let bare = &SIGNATURE[3..];
        for wrong in ["v1,", "v1", "", " ", ",", "v1,,", "v1,=", "v1,ä"] {
            assert_eq!(check(wrong), Err(Unverified::Signature), "{wrong}");
            assert_eq!(check(&format!("{wrong} {SIGNATURE}")), Ok(()), "{wrong}");
        }
        for version in ["v1a,", "v2,", "V1,", "", "v1, ", " v1 ,"] {
            assert_eq!(check(&format!("{version}{bare}")), Err(Unverified::Signature), "{version}");
        }
        let many = format!("{}{SIGNATURE}", "v1, ".repeat(SIGNATURES_MAX));
        assert_eq!(check(&many), Err(Unverified::Signature), "no more are looked at than there may be");
    }

    #[test]
    fn each_bit_of_a_signature_counts() {
        let right: [u8; SIGNATURE_BYTES] = read(SIGNATURE).unwrap();
        for bit in 0..SIGNATURE_BYTES * 8 {
            let mut wrong = right;
            wrong[bit / 8] ^= 1 << (bit % 8);
            let wrong = format!("v1,{}", BASE64.encode(&wrong));
            assert_eq!(check(&wrong), Err(Unverified::Signature), "{bit}");
        }
    }

    #[test]
    fn whatever_is_signed_counts() {
        let now = Timestamp::from_millis(SECONDS * 1_000);
        let verified = |id: &str, timestamp: &str, body: &[u8]| {
            let request = Signed { id, timestamp, signature: SIGNATURE, body };
            verify(&[published()], &request, now, TOLERANCE)
        };
        assert_eq!(verified(ID, "1614265330", BODY), Ok(()));
        assert_eq!(verified("msg_other", "1614265330", BODY), Err(Unverified::Signature));
        assert_eq!(verified(ID, "1614265331", BODY), Err(Unverified::Signature));
        assert_eq!(verified(ID, "01614265330", BODY), Err(Unverified::Signature));
        assert_eq!(verified(ID, "1614265330", b""), Err(Unverified::Signature));
        for no_time in ["", "+1614265330", "-1", "1614265330.0", "now", "99999999999999999999"] {
            assert_eq!(verified(ID, no_time, BODY), Err(Unverified::Timestamp), "{no_time}");
        }
    }

    #[test]
    fn a_request_counts_for_as_long_as_the_tolerance_says() {
        let request = Signed { id: ID, timestamp: "1614265330", signature: SIGNATURE, body: BODY };
        let at = |ms: i64| {
            let now = Timestamp::from_millis((SECONDS * 1_000).checked_add_signed(ms).unwrap());
            verify(&[published()], &request, now, TOLERANCE)
        };
        assert_eq!(at(300_000), Ok(()));
        assert_eq!(at(300_001), Err(Unverified::TooOld));
        assert_eq!(at(-300_000), Ok(()));
        assert_eq!(at(-300_001), Err(Unverified::TooNew));
    }
}
