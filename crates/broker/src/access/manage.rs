//! Keys: made, rotated, revoked, looked at; and the trail of what was done.

use redrive_core::access::{Deed, Grants, KeyId, KeyName, On, Secret, Token, Use};
use redrive_core::invalid::Invalid;
use redrive_core::limits::{API_KEYS_MAX, KEY_OVERLAP_MAX};
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{EntryKey, EntryKind, EntryName, Expect, Limit, Write, WriteOutcome, Writes};

use super::audit::AuditEntry;
use super::caller::Caller;
use super::keys::{Keys, LiveKey, Session};
use super::record::{ApiKey, Kept, Quotas};
use crate::broker::Broker;
use crate::error::BrokerError;

/// A key that somebody wants.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// What people call it.
    pub name: KeyName,
    /// What it may do.
    pub grants: Grants,
    /// How much of it.
    pub quotas: Quotas,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
}

/// The version under which the key from the environment is known: nothing that a store keeps is newer.
const KEPT_NOWHERE: u64 = u64::MAX;

impl Caller {
    fn keys(&self) -> Result<(&Keys, &Session), BrokerError> {
        match (&self.gate.0.keys, &self.session) {
            (Some(keys), Some(session)) => Ok((keys, session)),
            _ => Err(BrokerError::KeysNotInUse),
        }
    }

    /// Does something to a key, if the caller may, and writes it down with what came of it.
    async fn act_on_key<T>(
        &self,
        deed: Deed,
        id: KeyId,
        work: impl Future<Output = Result<T, BrokerError>>,
    ) -> Result<T, BrokerError> {
        self.may(deed, On::Some)?;
        let done = work.await;
        self.note_done(deed, Some(&id.to_string()), &done).await;
        done
    }

    /// Makes a key. Nobody gives more than they hold, to more queues, or for longer.
    pub async fn create_key(&self, new: NewKey) -> Result<(ApiKey, Token), BrokerError> {
        let token = random_token()?;
        let key = self.act_on_key(Deed::CreateKey, token.id, self.make_key(new, &token)).await?;
        Ok((key, token))
    }

    async fn make_key(&self, new: NewKey, token: &Token) -> Result<ApiKey, BrokerError> {
        let broker = &self.gate.0.broker;
        let (keys, session) = self.keys()?;
        let giver = &session.key;
        let now = broker.now();
        if !giver.grants.hold(&new.grants) {
            return Err(BrokerError::NotHeld { what: "grants" });
        }
        let expires_at = match (new.expires_at, giver.expires_at) {
            (Some(end), Some(last)) if end > last => return Err(BrokerError::NotHeld { what: "expires_at" }),
            (end, last) => end.or(last),
        };
        if expires_at.is_some_and(|end| end <= now) {
            return Err(Invalid::unusable("expires_at", "must lie ahead").into());
        }
        check_count(keys, session, now)?;
        self.make_room(keys, now).await?;
        let key = ApiKey {
            id: token.id,
            name: new.name,
            grants: new.grants,
            quotas: new.quotas.within(giver.quotas),
            created_at: now,
            created_by: (session.live.version() != KEPT_NOWHERE).then_some(session.live.id),
            expires_at,
            revoked_at: None,
            secrets: vec![Kept { hash: token.secret.hash(), until: None }],
        };
        if self.keep_key(broker, &key, Expect::Absent).await? {
            Ok(key)
        } else {
            // Eight random bytes that somebody else has drawn before.
            Err(BrokerError::KeyIdTaken)
        }
    }

    /// Where there are as many keys as there may be, the one that ended first goes.
    async fn make_room(&self, keys: &Keys, now: Timestamp) -> Result<(), BrokerError> {
        if keys.len() < API_KEYS_MAX {
            return Ok(());
        }
        let ended = keys.first_ended(now).ok_or(BrokerError::TooManyKeys { max: API_KEYS_MAX })?;
        let key = EntryKey { kind: EntryKind::ApiKey, name: EntryName::new(ended.id.to_string())? };
        let gone = Write { key, expect: Expect::Anything, value: None };
        self.gate.0.broker.store.registry_write(Writes::new(vec![gone])?).await?;
        self.gate.refresh().await
    }

    /// The keys that the caller may see, by id, and where the next page begins.
    pub fn list_keys(
        &self,
        after: Option<KeyId>,
        limit: Limit,
    ) -> Result<(Vec<ApiKey>, Option<KeyId>), BrokerError> {
        self.may(Use::ListKeys, On::Some)?;
        let (keys, session) = self.keys()?;
        let kept =
            |live: &LiveKey| live.version() != KEPT_NOWHERE && after.is_none_or(|after| live.id > after);
        let all = keys.all().into_iter().filter(|live| kept(live)).map(|live| live.current());
        let mut seen = all.filter(|key| session.key.grants.rule(&key.grants));
        let page: Vec<ApiKey> = seen.by_ref().take(limit.get()).map(|key| (*key).clone()).collect();
        let next = seen.next().and_then(|_| page.last().map(|key| key.id));
        Ok((page, next))
    }

    /// A key that the caller may see.
    pub fn get_key(&self, id: KeyId) -> Result<ApiKey, BrokerError> {
        self.may(Use::ListKeys, On::Some)?;
        Ok((*self.ruled(id)?.current()).clone())
    }

    /// Gives a key another secret. The one before works for `overlap` more, so that those who use it can change over.
    pub async fn rotate_key(&self, id: KeyId, overlap: Millis) -> Result<(ApiKey, Token), BrokerError> {
        let secret = random_token()?.secret;
        let key = self.act_on_key(Deed::RotateKey, id, self.renew_key(id, overlap, &secret)).await?;
        Ok((key, Token { id, secret }))
    }

    async fn renew_key(&self, id: KeyId, overlap: Millis, secret: &Secret) -> Result<ApiKey, BrokerError> {
        let overlap = overlap.within("overlap_ms", Millis::ZERO, KEY_OVERLAP_MAX)?;
        self.change_key(id, |key, now| {
            if !key.is_alive(now) {
                return Err(BrokerError::KeyEnded(id));
            }
            // One before the newest, however often it is rotated within the overlap.
            key.secrets.truncate(1);
            for kept in &mut key.secrets {
                kept.until = Some(now.plus(overlap));
            }
            key.secrets.insert(0, Kept { hash: secret.hash(), until: None });
            Ok(())
        })
        .await
    }

    /// Ends a key, at once. It stays in the list, so that the trail can be read.
    pub async fn revoke_key(&self, id: KeyId) -> Result<ApiKey, BrokerError> {
        self.act_on_key(Deed::RevokeKey, id, self.end_key(id)).await
    }

    async fn end_key(&self, id: KeyId) -> Result<ApiKey, BrokerError> {
        self.change_key(id, |key, now| {
            key.revoked_at = key.revoked_at.or(Some(now));
            Ok(())
        })
        .await
    }

    /// A key that the caller may end: all that it was given is within what the caller administrates.
    fn ruled(&self, id: KeyId) -> Result<std::sync::Arc<LiveKey>, BrokerError> {
        let (keys, session) = self.keys()?;
        let live = keys.get(id).ok_or(BrokerError::KeyNotFound(id))?;
        if !session.key.grants.rule(&live.current().grants) {
            // Who may not see it need not know that it is there.
            return Err(BrokerError::KeyNotFound(id));
        }
        if live.version() == KEPT_NOWHERE {
            return Err(BrokerError::KeyOfEnvironment);
        }
        Ok(live)
    }

    async fn change_key(
        &self,
        id: KeyId,
        change: impl Fn(&mut ApiKey, Timestamp) -> Result<(), BrokerError>,
    ) -> Result<ApiKey, BrokerError> {
        loop {
            let live = self.ruled(id)?;
            let (mut key, version) = ((*live.current()).clone(), live.version());
            let broker = &self.gate.0.broker;
            change(&mut key, broker.now())?;
            if self.keep_key(broker, &key, Expect::Version(version)).await? {
                return Ok(key);
            }
            // Another instance changed it meanwhile.
            self.gate.refresh().await?;
        }
    }

    /// Keeps a key if it still is what it was; says whether it was.
    async fn keep_key(&self, broker: &Broker, key: &ApiKey, expect: Expect) -> Result<bool, BrokerError> {
        let name = EntryName::new(key.id.to_string())?;
        let address = EntryKey { kind: EntryKind::ApiKey, name };
        let write = Write { key: address, expect, value: Some(key.encode().into()) };
        let (keys, _) = self.keys()?;
        match broker.store.registry_write(Writes::new(vec![write])?).await? {
            WriteOutcome::Committed(versions) => {
                if let Some(version) = versions.into_iter().next().flatten() {
                    keys.note(key.clone(), version);
                }
                Ok(true)
            }
            WriteOutcome::Conflict { .. } => Ok(false),
        }
    }

    /// Entries of the trail that the caller may see: all of them for who administrates every queue, else those about
    /// queues that it administrates.
    pub async fn audit(
        &self,
        mut after: u64,
        limit: Limit,
        wanted: impl Fn(&AuditEntry) -> bool,
    ) -> Result<(Vec<AuditEntry>, Option<u64>), BrokerError> {
        let broker = self.may(Use::ReadAudit, On::Some)?;
        self.gate.flush_audit().await?;
        let all = self.sees(Use::ReadAudit, On::Every);
        let may_read =
            |entry: &AuditEntry| all || entry.queue().is_some_and(|queue| self.sees(Use::ReadAudit, &queue));
        let mut seen = Vec::new();
        loop {
            let page = self.gate.0.audit.read(&*broker.store, after, Limit::MAX).await?;
            let Some(last) = page.last().map(|entry| entry.sequence) else { return Ok((seen, None)) };
            for entry in page.into_iter().filter(|entry| may_read(entry) && wanted(entry)) {
                if seen.len() == limit.get() {
                    let next = seen.last().map(|last: &AuditEntry| last.sequence);
                    return Ok((seen, next));
                }
                seen.push(entry);
            }
            after = last;
        }
    }
}

/// Whether there may be one more key among those that the caller made.
fn check_count(keys: &Keys, session: &Session, now: Timestamp) -> Result<(), BrokerError> {
    let Some(max) = session.key.quotas.keys else { return Ok(()) };
    let own = |live: &LiveKey| {
        let key = live.current();
        key.created_by == Some(session.live.id) && key.is_alive(now)
    };
    if keys.all().iter().filter(|live| own(live)).count() >= max as usize {
        return Err(BrokerError::QuotaReached { what: "keys", max });
    }
    Ok(())
}

/// A token that nobody can guess.
fn random_token() -> Result<Token, BrokerError> {
    let (mut id, mut secret) = ([0; 8], [0; 32]);
    getrandom::fill(&mut id)?;
    getrandom::fill(&mut secret)?;
    Ok(Token { id: KeyId::new(id), secret: Secret::new(secret) })
}
