//! What a caller shows: the public id of a key, and its secret.
//!
//! `rdk_` · 16 hexadecimal digits, the id · `_` · 43 characters of base64url, the 256 bits of the secret. Anything else is
//! no token, so there is one way to write each. The prefix lets scanners of repositories and logs find one that got lost.

// What is read here came from outside.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use std::fmt;
use std::str::FromStr;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use thiserror::Error;

use crate::invalid::Invalid;
use crate::limits::KEY_NAME_BYTES_MAX;
use crate::text::text_type;

const PREFIX: &str = "rdk_";
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;
const SECRET_CHARS: usize = 43;

text_type! {
    /// What people call a key.
    KeyName, field = "name", max = KEY_NAME_BYTES_MAX, empty = false,
    allowed = "text without control characters", |c| !c.is_control()
}

/// The public name of a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; ID_BYTES]);

impl KeyId {
    /// An id from random bytes.
    pub const fn new(bytes: [u8; ID_BYTES]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for KeyId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let bytes: Option<[u8; ID_BYTES]> = fixed(&HEXLOWER, text);
        bytes
            .map(Self)
            .ok_or_else(|| Invalid::unusable("id", "must be the 16 hexadecimal digits of a key's id"))
    }
}

/// The secret of a key. Nothing prints it but [`Token::expose`].
#[derive(Clone)]
pub struct Secret([u8; SECRET_BYTES]);

impl Secret {
    /// A secret from random bytes.
    pub const fn new(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(bytes)
    }

    /// What is kept of it. It has 256 random bits, so one round is enough: there is nothing to guess.
    pub fn hash(&self) -> SecretHash {
        SecretHash(Sha256::digest(self.0).into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What is kept of a secret. Compared in a time that tells nothing about where the two differ.
#[derive(Clone)]
pub struct SecretHash([u8; SECRET_BYTES]);

impl SecretHash {
    /// A hash as it was kept.
    pub const fn new(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes, for whoever keeps them.
    pub const fn as_bytes(&self) -> &[u8; SECRET_BYTES] {
        &self.0
    }

    /// Whether it is the hash of that secret.
    pub fn is_of(&self, secret: &Secret) -> bool {
        self.0.ct_eq(&secret.hash().0).into()
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

/// What a caller shows.
#[derive(Debug, Clone)]
pub struct Token {
    /// Which key.
    pub id: KeyId,
    /// That it is the caller's.
    pub secret: Secret,
}

/// The text is not a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not an API key: it must be `rdk_`, 16 hexadecimal digits, `_`, and 43 characters of base64url")]
pub struct NotAToken;

impl Token {
    /// The text, which is shown once.
    pub fn expose(&self) -> String {
        format!("{PREFIX}{}_{}", self.id, BASE64URL_NOPAD.encode(&self.secret.0))
    }
}

impl FromStr for Token {
    type Err = NotAToken;

    fn from_str(text: &str) -> Result<Self, NotAToken> {
        let rest = text.strip_prefix(PREFIX).ok_or(NotAToken)?;
        let (id, secret) = rest.split_at_checked(ID_BYTES * 2).ok_or(NotAToken)?;
        let secret =
            secret.strip_prefix('_').filter(|secret| secret.len() == SECRET_CHARS).ok_or(NotAToken)?;
        let id = fixed(&HEXLOWER, id).ok_or(NotAToken)?;
        let secret = fixed(&BASE64URL_NOPAD, secret).ok_or(NotAToken)?;
        Ok(Self { id: KeyId(id), secret: Secret(secret) })
    }
}

/// A text that is so many bytes, neither more nor less.
fn fixed<const N: usize>(encoding: &data_encoding::Encoding, text: &str) -> Option<[u8; N]> {
    // No text that could be right is longer; a long one is not even decoded.
    if text.len() > encoding.encode_len(N) {
        return None;
    }
    encoding.decode(text.as_bytes()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn token() -> Token {
        Token { id: KeyId::new([0xab; 8]), secret: Secret::new([7; 32]) }
    }

    proptest! {
        #[test]
        fn every_token_reads_back(id: [u8; 8], secret: [u8; 32]) {
            let token = Token { id: KeyId::new(id), secret: Secret::new(secret) };
            let text = token.expose();
            let back: Token = text.parse().unwrap();
            prop_assert!(back.id == token.id && token.secret.hash().is_of(&back.secret));
            prop_assert_eq!(back.expose(), text);
        }

        #[test]
        fn whatever_is_no_token_is_refused(text in ".{0,100}") {
            if let Ok(token) = text.parse::<Token>() {
                prop_assert_eq!(token.expose(), text);
            }
        }
    }

    #[test]
    fn there_is_one_way_to_write_a_token() {
        let text = token().expose();
        assert_eq!(text.len(), 64);
        for end in 0..text.len() {
            assert!(text[..end].parse::<Token>().is_err(), "{end}");
        }
        let (head, last) = text.split_at(63);
        let wrong = [
            text.to_uppercase(),
            format!("{text} "),
            format!(" {text}"),
            format!("{text}="),
            format!("{text}A"),
            text.replace("rdk_", "rdk-"),
            text.replace("rdk_", "RDK_"),
            text.replacen("ab", "AB", 1),
            text.replacen("ab", "zz", 1),
            text.replace("abababababababab_", "abababababababab-"),
            // The last character has bits to spare, which must not be used.
            format!("{head}{}", if last == "c" { "d" } else { "9" }),
        ];
        for wrong in wrong {
            assert!(wrong.parse::<Token>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_hash_is_of_one_secret_whatever_they_share() {
        let secret = Secret::new([7; 32]);
        let hash = secret.hash();
        assert!(hash.is_of(&secret));
        for at in 0..SECRET_BYTES {
            for bit in 0..8 {
                let mut other = [7; 32];
                other[at] ^= 1 << bit;
                assert!(!hash.is_of(&Secret::new(other)), "{at} {bit}");
            }
        }
    }

    #[test]
    fn secrets_do_not_print() {
        let (token, shown) = (token(), token().expose());
        let secret = &shown[21..];
        let said = format!("{token:?} {:?} {:?} {:#?}", token.secret, token.secret.hash(), token);
        assert!(!said.contains(secret) && !said.contains("7, 7"), "{said}");
        assert!(said.contains("abababababababab"), "the id may be seen");
    }
}
