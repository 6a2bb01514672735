//! An API key, and how it is written down.

use data_encoding::HEXLOWER;
use redrive_core::access::{Grant, Grants, KeyId, KeyName, QueuePattern, Scope, Secret, SecretHash};
use redrive_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::Unauthenticated;

/// How much of something a key may have; `None` is as much as there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quotas {
    /// Queues within what it may manage. One that others created counts, too.
    pub queues: Option<u32>,
    /// Keys that it made and that still work.
    pub keys: Option<u32>,
    /// Polls and streams that wait for work at a time.
    pub consumers: Option<u32>,
}

impl Quotas {
    /// These, where `giver` leaves them free, and no more than the giver has where it does not.
    #[must_use]
    pub fn within(self, giver: Self) -> Self {
        let least = |own: Option<u32>, most: Option<u32>| match (own, most) {
            (Some(own), Some(most)) => Some(own.min(most)),
            (own, most) => own.or(most),
        };
        Self {
            queues: least(self.queues, giver.queues),
            keys: least(self.keys, giver.keys),
            consumers: least(self.consumers, giver.consumers),
        }
    }
}

/// One secret of a key; there are two while it is rotated.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) hash: SecretHash,
    /// When it ends, where it was replaced.
    pub(crate) until: Option<Timestamp>,
}

/// An API key, as far as anybody may see it.
#[derive(Debug, Clone)]
pub struct ApiKey {
    /// Its public name.
    pub id: KeyId,
    /// What people call it.
    pub name: KeyName,
    /// What it may do.
    pub grants: Grants,
    /// How much of it.
    pub quotas: Quotas,
    /// When it was made.
    pub created_at: Timestamp,
    /// By which key; `None` is the one from the environment.
    pub created_by: Option<KeyId>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    pub(crate) secrets: Vec<Kept>,
}

impl ApiKey {
    /// Whether it still works, or will not any more.
    pub fn is_alive(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| end > now)
    }

    /// Until when an older secret works beside the newest.
    pub fn overlaps_until(&self) -> Option<Timestamp> {
        self.secrets.iter().filter_map(|kept| kept.until).max()
    }

    /// Whether it ends no later than that.
    pub(crate) fn ends_within(&self, last: Option<Timestamp>) -> bool {
        last.is_none_or(|last| self.expires_at.is_some_and(|end| end <= last))
    }

    /// Whether another secret has taken the place of that one.
    pub(crate) fn is_replaced(&self, secret: &SecretHash) -> bool {
        let kept = self.secrets.iter().find(|kept| kept.hash.as_bytes() == secret.as_bytes());
        kept.is_none_or(|kept| kept.until.is_some())
    }

    /// Which of its secrets that is. All are compared, whichever it is.
    pub(crate) fn secret_of(&self, shown: &Secret) -> Option<SecretHash> {
        let right: Vec<&Kept> = self.secrets.iter().filter(|kept| kept.hash.is_of(shown)).collect();
        right.first().map(|kept| kept.hash.clone())
    }

    /// Until when who showed that secret may go on; `Ok(None)` is for as long as nothing changes.
    pub(crate) fn until(
        &self,
        secret: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Unauthenticated> {
        if self.revoked_at.is_some() {
            return Err(Unauthenticated::Revoked);
        }
        let kept = self.secrets.iter().find(|kept| kept.hash.as_bytes() == secret.as_bytes());
        let kept = kept.ok_or(Unauthenticated::Expired)?;
        let until = [kept.until, self.expires_at].into_iter().flatten().min();
        if until.is_some_and(|until| until <= now) { Err(Unauthenticated::Expired) } else { Ok(until) }
    }

    /// The bytes that are kept.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let written = Written {
            name: self.name.as_str().to_owned(),
            grants: self.grants.iter().map(WrittenGrant::of).collect(),
            secrets: self.secrets.iter().map(WrittenSecret::of).collect(),
            created_at: self.created_at.as_millis(),
            created_by: self.created_by.map(|id| id.to_string()),
            expires_at: self.expires_at.map(Timestamp::as_millis),
            revoked_at: self.revoked_at.map(Timestamp::as_millis),
            queues_max: self.quotas.queues,
            keys_max: self.quotas.keys,
            consumers_max: self.quotas.consumers,
        };
        serde_json::to_vec(&written).expect("plain fields are JSON")
    }

    /// What was kept; `None` where it cannot be read.
    pub(crate) fn decode(name: &str, bytes: &[u8]) -> Option<Self> {
        let written: Written = serde_json::from_slice(bytes).ok()?;
        let grants = written.grants.into_iter().map(WrittenGrant::read).collect::<Option<_>>()?;
        Some(Self {
            id: name.parse().ok()?,
            name: KeyName::new(written.name).ok()?,
            grants: Grants::new(grants).ok()?,
            quotas: Quotas {
                queues: written.queues_max,
                keys: written.keys_max,
                consumers: written.consumers_max,
            },
            created_at: Timestamp::from_millis(written.created_at),
            created_by: written.created_by.map(|id| id.parse()).transpose().ok()?,
            expires_at: written.expires_at.map(Timestamp::from_millis),
            revoked_at: written.revoked_at.map(Timestamp::from_millis),
            secrets: written.secrets.into_iter().map(WrittenSecret::read).collect::<Option<_>>()?,
        })
    }
}

#[derive(Serialize, Deserialize)]
struct Written {
    name: String,
    grants: Vec<WrittenGrant>,
    secrets: Vec<WrittenSecret>,
    created_at: u64,
    created_by: Option<String>,
    expires_at: Option<u64>,
    revoked_at: Option<u64>,
    queues_max: Option<u32>,
    keys_max: Option<u32>,
    consumers_max: Option<u32>,
}

#[derive(Serialize, Deserialize)]
struct WrittenGrant {
    scope: String,
    queues: String,
}

impl WrittenGrant {
    fn of(grant: &Grant) -> Self {
        Self { scope: grant.scope.name().to_owned(), queues: grant.queues.as_str().to_owned() }
    }

    fn read(self) -> Option<Grant> {
        let scope: Scope = self.scope.parse().ok()?;
        Some(Grant { scope, queues: QueuePattern::new(self.queues).ok()? })
    }
}

#[derive(Serialize, Deserialize)]
struct WrittenSecret {
    sha256: String,
    until: Option<u64>,
}

impl WrittenSecret {
    fn of(kept: &Kept) -> Self {
        Self { sha256: HEXLOWER.encode(kept.hash.as_bytes()), until: kept.until.map(Timestamp::as_millis) }
    }

    fn read(self) -> Option<Kept> {
        let bytes = HEXLOWER.decode(self.sha256.as_bytes()).ok()?;
        let hash = SecretHash::new(bytes.try_into().ok()?);
        Some(Kept { hash, until: self.until.map(Timestamp::from_millis) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ApiKey {
        let kept = |byte, until: Option<u64>| Kept {
            hash: Secret::new([byte; 32]).hash(),
            until: until.map(Timestamp::from_millis),
        };
        ApiKey {
            id: KeyId::new([1; 8]),
            name: KeyName::new("billing").unwrap(),
            grants: Grants::everything(),
            quotas: Quotas { queues: Some(3), keys: None, consumers: Some(0) },
            created_at: Timestamp::from_millis(5),
            created_by: Some(KeyId::new([2; 8])),
            expires_at: Some(Timestamp::from_millis(1_000)),
            revoked_at: None,
            secrets: vec![kept(1, None), kept(2, Some(500))],
        }
    }

    #[test]
    fn a_key_reads_back_and_what_is_kept_is_no_secret() {
        let (key, bytes) = (key(), key().encode());
        let back = ApiKey::decode(&key.id.to_string(), &bytes).unwrap();
        assert_eq!(back.encode(), bytes);
        assert_eq!(
            (back.quotas, back.created_by, back.expires_at),
            (key.quotas, key.created_by, key.expires_at)
        );
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(!text.contains(&HEXLOWER.encode(&[1; 32])));
        for end in 0..bytes.len() {
            assert!(ApiKey::decode(&key.id.to_string(), &bytes[..end]).is_none());
        }
        assert!(ApiKey::decode("nobody", &bytes).is_none());
    }

    #[test]
    fn each_secret_has_its_end_and_the_key_has_one_for_all() {
        let (mut key, at) = (key(), Timestamp::from_millis);
        let (new, old) = (Secret::new([1; 32]), Secret::new([2; 32]));
        let until = |key: &ApiKey, secret: &Secret, now| key.until(&key.secret_of(secret).unwrap(), at(now));
        assert_eq!(until(&key, &new, 0), Ok(Some(at(1_000))));
        assert_eq!(until(&key, &old, 0), Ok(Some(at(500))));
        assert_eq!(until(&key, &old, 500), Err(Unauthenticated::Expired));
        assert_eq!(until(&key, &new, 999), Ok(Some(at(1_000))));
        assert_eq!(until(&key, &new, 1_000), Err(Unauthenticated::Expired));
        assert!(key.secret_of(&Secret::new([3; 32])).is_none());
        key.revoked_at = Some(at(1));
        assert_eq!(until(&key, &new, 0), Err(Unauthenticated::Revoked));
    }

    #[test]
    fn nobody_gives_more_than_they_have() {
        let quotas = |queues, keys, consumers| Quotas { queues, keys, consumers };
        let given = quotas(None, Some(9), Some(1)).within(quotas(Some(5), Some(2), None));
        assert_eq!(given, quotas(Some(5), Some(2), Some(1)));
    }
}
