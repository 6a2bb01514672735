//! The receipt: what a consumer shows to settle its lease.
//!
//! It carries what the judge needs, so that a nack is one round trip in every store, and a MAC whose key lives
//! in the store, so that what it carries can be believed. Layout, before base64url without padding:
//!
//! | bytes | what |
//! |---|---|
//! | 1 | version, 1 |
//! | 16 | message id |
//! | 8 | lease id, big-endian |
//! | 4 | attempts, big-endian |
//! | 4 | deliveries that count against the cap, big-endian |
//! | 4 | the message's own `max_attempts`, big-endian; 0 for none |
//! | 1–80 | queue name |
//! | 16 | HMAC-SHA-256 over all of the above, its first half |

// What is read here came from outside.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use std::fmt;
use std::num::NonZeroU32;

use data_encoding::BASE64URL_NOPAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thiserror::Error;

use crate::lease::LeaseId;
use crate::limits::RECEIPT_CHARS_MAX;
use crate::message::{Message, MessageId};
use crate::queue::QueueName;

const VERSION: u8 = 1;
const MAC_BYTES: usize = 16;

/// What a receipt says, once its MAC was found right: which lease of which message, and what the judge needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The queue the message was leased from.
    pub queue: QueueName,
    /// The message.
    pub message: MessageId,
    /// The lease.
    pub lease: LeaseId,
    /// The number of this attempt.
    pub attempts: u32,
    /// Deliveries that count against `max_deliveries`, this one included.
    pub deliveries: u32,
    /// The message's own cap, which beats the queue's.
    pub max_attempts: Option<NonZeroU32>,
}

impl Claim {
    /// What a receipt for the current lease of `message` says; `None` where it is not leased.
    pub fn on(message: &Message) -> Option<Self> {
        Some(Self {
            queue: message.queue.clone(),
            message: message.id(),
            lease: message.lease()?.id,
            attempts: message.progress.attempts,
            deliveries: message.progress.deliveries_counted(),
            max_attempts: message.spec.max_attempts,
        })
    }

    /// The queue that a receipt says it is of, which may be a lie: nothing but [`ReceiptKey::open`] can tell.
    pub fn queue_said(receipt: &str) -> Option<QueueName> {
        if receipt.len() > RECEIPT_CHARS_MAX {
            return None;
        }
        let bytes = BASE64URL_NOPAD.decode(receipt.as_bytes()).ok()?;
        let (signed, _) = bytes.split_last_chunk::<MAC_BYTES>()?;
        parse(signed).map(|claim| claim.queue)
    }
}

/// The receipt is not one of ours: it was mistyped, cut, forged, or made under another store's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("receipt: not a receipt of this store")]
pub struct InvalidReceipt;

impl InvalidReceipt {
    /// The stable word for it in APIs, metrics and logs.
    pub const CODE: &'static str = "INVALID_RECEIPT";
}

/// The key under which a store's receipts are made. Write-only: it prints as nothing.
#[derive(Clone)]
pub struct ReceiptKey {
    bytes: [u8; 32],
    /// With the key already in it, which is half of the work on something as short as a receipt.
    mac: Hmac<Sha256>,
}

impl PartialEq for ReceiptKey {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for ReceiptKey {}

impl ReceiptKey {
    /// A key from 32 random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        let mac = Hmac::new_from_slice(&bytes).expect("HMAC takes keys of any length");
        Self { bytes, mac }
    }

    /// The bytes, for the store that keeps them.
    pub const fn expose(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// Writes the receipt for a claim.
    pub fn seal(&self, claim: &Claim) -> String {
        let mut bytes = Vec::with_capacity(64 + claim.queue.as_str().len());
        bytes.push(VERSION);
        bytes.extend_from_slice(claim.message.as_bytes());
        bytes.extend_from_slice(&claim.lease.bits().to_be_bytes());
        bytes.extend_from_slice(&claim.attempts.to_be_bytes());
        bytes.extend_from_slice(&claim.deliveries.to_be_bytes());
        bytes.extend_from_slice(&claim.max_attempts.map_or(0, NonZeroU32::get).to_be_bytes());
        bytes.extend_from_slice(claim.queue.as_str().as_bytes());
        let tag = self.mac(&bytes).finalize().into_bytes();
        bytes.extend(tag.iter().take(MAC_BYTES));
        BASE64URL_NOPAD.encode(&bytes)
    }

    /// Reads a receipt. Anything whose MAC is not right says the same, whatever is wrong with it.
    pub fn open(&self, receipt: &str) -> Result<Claim, InvalidReceipt> {
        if receipt.len() > RECEIPT_CHARS_MAX {
            return Err(InvalidReceipt);
        }
        let bytes = BASE64URL_NOPAD.decode(receipt.as_bytes()).map_err(|_| InvalidReceipt)?;
        let (signed, tag) = bytes.split_last_chunk::<MAC_BYTES>().ok_or(InvalidReceipt)?;
        self.mac(signed).verify_truncated_left(tag).map_err(|_| InvalidReceipt)?;
        parse(signed).ok_or(InvalidReceipt)
    }

    fn mac(&self, signed: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        mac.update(signed);
        mac
    }
}

impl fmt::Debug for ReceiptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReceiptKey(…)")
    }
}

fn parse(bytes: &[u8]) -> Option<Claim> {
    let ([version], rest) = bytes.split_first_chunk()?;
    if *version != VERSION {
        return None;
    }
    let (message, rest) = rest.split_first_chunk()?;
    let (lease, rest) = rest.split_first_chunk()?;
    let (attempts, rest) = rest.split_first_chunk()?;
    let (deliveries, rest) = rest.split_first_chunk()?;
    let (max_attempts, rest) = rest.split_first_chunk()?;
    Some(Claim {
        queue: QueueName::new(str::from_utf8(rest).ok()?).ok()?,
        message: MessageId::from_bytes(*message),
        lease: LeaseId::from_bits(u64::from_be_bytes(*lease)),
        attempts: u32::from_be_bytes(*attempts),
        deliveries: u32::from_be_bytes(*deliveries),
        max_attempts: NonZeroU32::new(u32::from_be_bytes(*max_attempts)),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits::QUEUE_NAME_BYTES_MAX;

    fn our_key() -> ReceiptKey {
        ReceiptKey::new([7; 32])
    }

    prop_compose! {
        fn claims()(
            queue in "[A-Za-z0-9._-]{1,80}", message: [u8; 16], lease: u64, attempts: u32, deliveries: u32,
            max_attempts: u32,
        ) -> Claim {
            Claim {
                queue: QueueName::new(queue).unwrap(),
                message: MessageId::from_bytes(message),
                lease: LeaseId::from_bits(lease),
                attempts,
                deliveries,
                max_attempts: NonZeroU32::new(max_attempts),
                    }
        }
    }

    proptest! {
        #[test]
        fn a_receipt_says_what_was_sealed(claim in claims()) {
            prop_assert_eq!(our_key().open(&our_key().seal(&claim)), Ok(claim));
        }

        #[test]
        fn another_key_is_refused(claim in claims(), key: [u8; 32]) {
            prop_assume!(key != [7; 32]);
            prop_assert_eq!(ReceiptKey::new(key).open(&our_key().seal(&claim)), Err(InvalidReceipt));
        }

        #[test]
        fn one_flipped_bit_is_refused(claim in claims(), bit: prop::sample::Index) {
            let mut bytes = BASE64URL_NOPAD.decode(our_key().seal(&claim).as_bytes()).unwrap();
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(our_key().open(&BASE64URL_NOPAD.encode(&bytes)), Err(InvalidReceipt));
        }

        #[test]
        fn every_cut_receipt_is_refused(claim in claims(), at: prop::sample::Index) {
            let receipt = our_key().seal(&claim);
            prop_assert_eq!(our_key().open(&receipt[..at.index(receipt.len())]), Err(InvalidReceipt));
        }

        #[test]
        fn no_text_panics_the_reader(text: String) {
            prop_assert_eq!(our_key().open(&text), Err(InvalidReceipt));
        }
    }

    #[test]
    fn the_longest_receipt_fits_its_limit() {
        let claim = Claim {
            queue: QueueName::new("q".repeat(QUEUE_NAME_BYTES_MAX)).unwrap(),
            message: MessageId::MIN,
            lease: LeaseId::from_bits(1),
            attempts: 1,
            deliveries: 1,
            max_attempts: None,
        };
        assert!(our_key().seal(&claim).len() <= RECEIPT_CHARS_MAX);
    }

    #[test]
    fn the_layout_is_a_promise_to_consumers_that_outlive_a_restart() {
        let claim = Claim {
            queue: QueueName::new("orders").unwrap(),
            message: MessageId::from_bytes([1; 16]),
            lease: LeaseId::new(3, 4).unwrap(),
            attempts: 2,
            deliveries: 5,
            max_attempts: NonZeroU32::new(6),
        };
        let receipt = "AQEBAQEBAQEBAQEBAQEBAQEAAwAAAAAABAAAAAIAAAAFAAAABm9yZGVyc589OdCRSRn5MB6xo8Nd6Vc";
        assert_eq!(our_key().seal(&claim), receipt);
    }

    #[test]
    fn the_key_is_not_printed() {
        assert_eq!(format!("{:?}", our_key()), "ReceiptKey(…)");
    }
}
