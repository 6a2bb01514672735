//! Keys: made, rotated, revoked, looked at; and the trail of what was done.

use std::sync::Arc;

use redrive_core::access::{Deed, Grants, KeyId, KeyName, On, Secret, Token, Use};
use redrive_core::invalid::Invalid;
use redrive_core::limits::{API_KEYS_MAX, KEY_OVERLAP_MAX};
use redrive_core::queue::QueueName;
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::{Millis, Timestamp};
use redrive_core::topic::TopicPattern;
use redrive_store::{EntryKey, EntryKind, EntryName, Expect, Limit, LogRange, Write, WriteOutcome, Writes};

use super::audit::{About, AuditEntry};
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

impl Caller {
    fn keys(&self) -> Result<(&Keys, &Session), BrokerError> {
        let session = self.session.as_deref().ok_or(BrokerError::KeysNotInUse)?;
        Ok((&self.gate.0.keys, session))
    }

    /// Does something to a key, if the caller may, and writes it down with what came of it.
    async fn act_on_key<T>(
        &self,
        deed: Deed,
        id: KeyId,
        work: impl Future<Output = Result<T, BrokerError>>,
    ) -> Result<T, BrokerError> {
        self.may(deed, On::Some)?;
        // A secret that was replaced has an end, and must not give what has none.
        if let Ok((_, session)) = self.keys()
            && session.live.current().is_replaced(&session.secret)
        {
            return Err(BrokerError::NotHeld { what: "a secret that was replaced" });
        }
        let done = work.await;
        self.note_done(deed, Some(About::Key(id.to_string())), &done).await;
        done
    }

    /// Makes a key. Nobody gives more than they hold, to more queues, or for longer.
    pub async fn create_key(&self, new: NewKey) -> Result<(ApiKey, Token), BrokerError> {
        let (caller, token) = (self.clone(), random_token()?);
        to_the_end(async move {
            let key = caller.act_on_key(Deed::CreateKey, token.id, caller.make_key(new, &token)).await?;
            Ok((key, token))
        })
        .await
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
        let _counting = self.gate.0.counting.lock().await;
        check_count(keys, session, now)?;
        self.make_room(keys, now).await?;
        let key = ApiKey {
            id: token.id,
            name: new.name,
            grants: new.grants,
            quotas: new.quotas.within(giver.quotas),
            created_at: now,
            created_by: (!session.live.is_of_environment()).then_some(session.live.id),
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
        self.gate.0.broker.tell_entry(EntryKind::ApiKey, &ended.id.to_string());
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
        let kept = |live: &LiveKey| !live.is_of_environment() && after.is_none_or(|after| live.id > after);
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
        let (caller, secret) = (self.clone(), random_token()?.secret);
        to_the_end(async move {
            let renewed = caller.renew_key(id, overlap, &secret);
            let key = caller.act_on_key(Deed::RotateKey, id, renewed).await?;
            Ok((key, Token { id, secret }))
        })
        .await
    }

    async fn renew_key(&self, id: KeyId, overlap: Millis, secret: &Secret) -> Result<ApiKey, BrokerError> {
        let overlap = overlap.within("overlap_ms", Millis::ZERO, KEY_OVERLAP_MAX)?;
        let giver = Arc::clone(&self.keys()?.1.key);
        self.change_key(id, |key, now| {
            if !key.is_alive(now) {
                return Err(BrokerError::KeyEnded(id));
            }
            // Whoever gets the secret gets the key.
            if !key.ends_within(giver.expires_at) {
                return Err(BrokerError::NotHeld { what: "expires_at" });
            }
            if key.quotas.within(giver.quotas) != key.quotas {
                return Err(BrokerError::NotHeld { what: "quotas" });
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
        let caller = self.clone();
        to_the_end(async move { caller.act_on_key(Deed::RevokeKey, id, caller.end_key(id)).await }).await
    }

    async fn end_key(&self, id: KeyId) -> Result<ApiKey, BrokerError> {
        self.change_key(id, |key, now| {
            key.revoked_at = key.revoked_at.or(Some(now));
            Ok(())
        })
        .await
    }

    /// A key that the caller may end: all that it was given is within what the caller administrates.
    fn ruled(&self, id: KeyId) -> Result<Arc<LiveKey>, BrokerError> {
        let (keys, session) = self.keys()?;
        let live = keys.get(id).ok_or(BrokerError::KeyNotFound(id))?;
        // A key may always be renewed or ended by itself.
        if id != session.live.id && !session.key.grants.rule(&live.current().grants) {
            // Who may not see it need not know that it is there.
            return Err(BrokerError::KeyNotFound(id));
        }
        if live.is_of_environment() {
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
            let (current, version) = live.current_version();
            let mut key = (*current).clone();
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
                broker.tell_entry(EntryKind::ApiKey, &key.id.to_string());
                Ok(true)
            }
            WriteOutcome::Conflict { .. } => Ok(false),
        }
    }

    /// Whether an entry is about something that the caller administrates.
    fn may_read(&self, entry: &AuditEntry) -> bool {
        match &entry.act.on {
            Some(About::Queue(name)) => {
                QueueName::new(name).is_ok_and(|queue| self.sees(Use::ReadAudit, &queue))
            }
            Some(About::Subscription(id)) => {
                SubscriptionId::new(id).is_ok_and(|id| self.sees(Use::ReadAudit, &id.queue()))
            }
            Some(About::Topic(pattern)) => {
                pattern.parse().is_ok_and(|topics: TopicPattern| self.sees(Use::ReadAudit, &topics))
            }
            Some(About::Key(id)) => id.parse().is_ok_and(|id| self.ruled(id).is_ok()),
            None => false,
        }
    }

    /// Entries of the trail that the caller may see: all of them for who administrates every queue, else those about
    /// queues that it administrates. They begin behind the one whose number is given, whichever comes first.
    pub async fn audit(
        &self,
        newest_first: bool,
        behind: Option<u64>,
        limit: Limit,
        wanted: impl Fn(&AuditEntry) -> bool,
    ) -> Result<(Vec<AuditEntry>, Option<u64>), BrokerError> {
        let broker = self.may(Use::ReadAudit, On::Some)?;
        self.gate.flush_audit().await?;
        let all = self.sees(Use::ReadAudit, On::Every);
        let may_read = |entry: &AuditEntry| all || self.may_read(entry);
        let (trail, store) = (&self.gate.0.audit, &*broker.store);
        let mut behind = behind.unwrap_or(if newest_first { u64::MAX } else { 0 });
        // One more than was asked for says whether there are more. Where that is not enough, few of many are wanted.
        let mut at_once = Limit::new(limit.get() + 1).unwrap_or(Limit::MAX);
        let mut seen = Vec::new();
        loop {
            let range = if newest_first { LogRange::Before(behind) } else { LogRange::After(behind) };
            let page = trail.read(store, range, at_once).await?;
            let Some(last) = page.last().map(|entry| entry.sequence) else { return Ok((seen, None)) };
            for entry in page.into_iter().filter(|entry| may_read(entry) && wanted(entry)) {
                if seen.len() == limit.get() {
                    let next = seen.last().map(|last: &AuditEntry| last.sequence);
                    return Ok((seen, next));
                }
                seen.push(entry);
            }
            (behind, at_once) = (last, Limit::MAX);
        }
    }
}

/// Does something though the caller may go away: what the store has done must be known here, and written down.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, BrokerError>> + Send + 'static,
) -> Result<T, BrokerError> {
    tokio::spawn(work).await.unwrap_or(Err(BrokerError::Stopping))
}

/// Whether there may be one more key among those that the caller made, those that these made, and so on; and so for whoever
/// made the caller.
fn check_count(keys: &Keys, session: &Session, now: Timestamp) -> Result<(), BrokerError> {
    let mut giver = Some(Arc::clone(&session.key));
    while let Some(key) = giver {
        if let Some(max) = key.quotas.keys {
            let made = keys.all().into_iter().map(|live| live.current());
            let count = made.filter(|made| made.is_alive(now) && descends(keys, made, key.id)).count();
            if count >= max as usize {
                return Err(BrokerError::QuotaReached { what: "keys", max });
            }
        }
        giver = parent(keys, &key);
    }
    Ok(())
}

fn parent(keys: &Keys, key: &ApiKey) -> Option<Arc<ApiKey>> {
    Some(keys.get(key.created_by?)?.current())
}

fn descends(keys: &Keys, key: &ApiKey, from: KeyId) -> bool {
    let mut above = key.created_by;
    while let Some(id) = above {
        if id == from {
            return true;
        }
        above = keys.get(id).and_then(|live| live.current().created_by);
    }
    false
}

/// A token that nobody can guess.
fn random_token() -> Result<Token, BrokerError> {
    let (mut id, mut secret) = ([0; 8], [0; 32]);
    getrandom::fill(&mut id)?;
    getrandom::fill(&mut secret)?;
    Ok(Token { id: KeyId::new(id), secret: Secret::new(secret) })
}
