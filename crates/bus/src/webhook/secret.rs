//! The secret that a receiver shares with us.
//!
//! `whsec_` · base64 of 24 to 64 bytes, as the Standard Webhooks specification has it. The prefix lets scanners of
//! repositories and logs find one that got lost.

// What is read here came from outside.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use std::fmt;
use std::hint;

use data_encoding::BASE64;
use hmac::{Hmac, KeyInit};
use redrive_core::invalid::{Invalid, Problem};
use sha2::Sha256;
use subtle::ConstantTimeEq;

const PREFIX: &str = "whsec_";
const BYTES_MIN: usize = 24;
const BYTES_MAX: usize = 64;
/// What a generated one has: as much as the signature.
const BYTES_GENERATED: usize = 32;

/// The secret of a webhook. Nothing prints it but [`SigningSecret::reveal`].
#[derive(Clone)]
pub struct SigningSecret(Box<[u8]>);

impl SigningSecret {
    /// Reads `whsec_` and base64, or the base64 alone.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if text.is_empty() {
            return Err(Invalid::new("secret", Problem::Empty));
        }
        let encoded = text.strip_prefix(PREFIX).unwrap_or(text);
        let longest = BASE64.encode_len(BYTES_MAX);
        Invalid::check_length("secret", encoded.len(), longest, "characters after `whsec_`")?;
        // Where the base64 breaks is not said: it would be a piece of the secret.
        let bytes = BASE64
            .decode(encoded.as_bytes())
            .map_err(|_| Invalid::unusable("secret", "must be `whsec_` and base64, with its padding"))?;
        let secret = Self(bytes.into());
        if (BYTES_MIN..=BYTES_MAX).contains(&secret.0.len()) {
            Ok(secret)
        } else {
            Err(Invalid::unusable("secret", "must be base64 of 24 to 64 bytes"))
        }
    }

    /// A new one, which nobody can guess.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = vec![0; BYTES_GENERATED].into_boxed_slice();
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// The text, to be shown once and to be written to the store.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", BASE64.encode(&self.0))
    }

    /// What makes signatures of it.
    pub(super) fn mac(&self) -> Hmac<Sha256> {
        Hmac::new_from_slice(&self.0).expect("HMAC takes keys of any length")
    }
}

/// Compared in a time that tells nothing about where the two differ.
impl PartialEq for SigningSecret {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for SigningSecret {}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(…)")
    }
}

impl Drop for SigningSecret {
    fn drop(&mut self) {
        self.0.fill(0);
        // Somebody might look, as far as the compiler knows, so it does not leave the zeros out.
        hint::black_box(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_reads_back_with_and_without_its_prefix() {
        for len in [BYTES_MIN, 32, BYTES_MAX] {
            let bytes: Vec<u8> = (0..len).map(|n| u8::try_from(n).unwrap()).collect();
            let bare = BASE64.encode(&bytes);
            let secret = SigningSecret::parse(&bare).unwrap();
            assert_eq!(secret.reveal(), format!("whsec_{bare}"));
            assert_eq!(SigningSecret::parse(&secret.reveal()).unwrap(), secret);
        }
    }

    #[test]
    fn what_is_no_secret_is_refused_by_its_field_and_not_repeated() {
        let encoded = |len: usize| BASE64.encode(&vec![7; len]);
        let wrong = [
            (String::new(), "secret: must not be empty"),
            ("whsec_".to_owned(), "secret: must be base64 of 24 to 64 bytes"),
            (encoded(BYTES_MIN - 1), "secret: must be base64 of 24 to 64 bytes"),
            (encoded(BYTES_MAX + 1), "secret: must be base64 of 24 to 64 bytes"),
            (encoded(BYTES_MAX + 3), "secret: is 92 characters after `whsec_` long, the limit is 88"),
            ("hunter2".to_owned(), "secret: must be `whsec_` and base64, with its padding"),
            (encoded(32).replace('=', ""), "secret: must be `whsec_` and base64, with its padding"),
            (format!("whsk_{}", encoded(30)), "secret: must be `whsec_` and base64, with its padding"),
            (format!("{} ", encoded(30)), "secret: must be `whsec_` and base64, with its padding"),
        ];
        for (text, said) in wrong {
            assert_eq!(SigningSecret::parse(&text).unwrap_err().to_string(), said, "{text}");
        }
    }

    #[test]
    fn no_two_generated_ones_are_the_same_and_none_is_printed() {
        let (one, two) = (SigningSecret::generate().unwrap(), SigningSecret::generate().unwrap());
        assert_eq!(one.0.len(), BYTES_GENERATED);
        assert_ne!(one, two);
        assert_eq!(one, one.clone());
        assert_eq!(format!("{one:?} {:#?}", [&two]), "SigningSecret(…) [\n    SigningSecret(…),\n]");
    }

    #[test]
    fn a_prefix_of_a_secret_is_another_secret() {
        let whole = SigningSecret(vec![9; 32].into());
        assert_ne!(whole, SigningSecret(vec![9; 31].into()));
        assert_ne!(whole, SigningSecret(vec![9; 33].into()));
    }
}
