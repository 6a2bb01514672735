//! API keys, and the trail of what was done with them.

use redrive_broker::{ApiKey, AuditEntry, NewKey, Quotas};
use redrive_core::access::{Grant, Grants, KeyName, QueuePattern};
use redrive_core::invalid::Invalid;
use redrive_core::time::Timestamp;
use redrive_wire as wire;

use super::{time, timestamp};

pub(crate) fn new_key(request: wire::CreateKeyRequest) -> Result<NewKey, Invalid> {
    let grant = |grant: wire::Grant| {
        Ok(Grant { scope: grant.scope.parse()?, queues: QueuePattern::new(grant.queues)? })
    };
    let grants = request.grants.into_iter().map(grant).collect::<Result<_, Invalid>>()?;
    Ok(NewKey {
        name: KeyName::new(request.name)?,
        grants: Grants::new(grants)?,
        quotas: Quotas {
            queues: request.queues_max,
            keys: request.keys_max,
            consumers: request.consumers_max,
        },
        expires_at: request.expires_at.map(timestamp),
    })
}

pub(crate) fn view(key: &ApiKey, now: Timestamp) -> wire::KeyView {
    let state = match key.revoked_at {
        Some(_) => "revoked",
        None if key.is_alive(now) => "active",
        None => "expired",
    };
    let grant = |grant: &Grant| wire::Grant {
        scope: grant.scope.name().to_owned(),
        queues: grant.queues.as_str().to_owned(),
    };
    wire::KeyView {
        id: key.id.to_string(),
        name: key.name.as_str().to_owned(),
        grants: key.grants.iter().map(grant).collect(),
        state: state.to_owned(),
        created_at: time(key.created_at),
        created_by: key.created_by.map(|id| id.to_string()),
        expires_at: key.expires_at.map(time),
        revoked_at: key.revoked_at.map(time),
        overlaps_until: key.overlaps_until().filter(|until| *until > now).map(time),
        queues_max: key.quotas.queues,
        keys_max: key.quotas.keys,
        consumers_max: key.quotas.consumers,
    }
}

pub(crate) fn entry(entry: AuditEntry) -> wire::AuditView {
    let act = entry.act;
    wire::AuditView {
        sequence: entry.sequence,
        at: time(entry.at),
        key: act.who.key,
        name: act.who.name,
        from: act.from.map(|from| from.to_string()),
        what: act.what,
        on: act.on.map(|on| on.name().to_owned()),
        result: act.result,
        count: entry.count,
    }
}
