//! Which messages are meant.

use std::str::FromStr;

use redrive_core::invalid::Invalid;
use redrive_core::message::{DeadReason, State};
use redrive_core::time::Timestamp;
use redrive_store::{ClassFilter, Filter};
use redrive_wire as wire;

use super::timestamp;

pub(crate) fn filter(body: wire::FilterBody) -> Result<Filter, Invalid> {
    let attempts = match (body.attempts_min, body.attempts_max) {
        (None, None) => None,
        (min, max) => Some(min.unwrap_or(0)..=max.unwrap_or(u32::MAX)),
    };
    let created = match (body.created_after, body.created_before) {
        (None, None) => None,
        (after, before) => {
            let after = after.map_or(Timestamp::EPOCH, timestamp);
            Some(after..=before.map_or(Timestamp::MAX, timestamp))
        }
    };
    let filter = Filter {
        states: body.states.iter().map(|name| state(name)).collect::<Result<_, _>>()?,
        ids: parsed("ids", &body.ids)?,
        kinds: parsed("types", &body.types)?,
        sources: parsed("sources", &body.sources)?,
        keys: parsed("keys", &body.keys)?,
        consumers: parsed("consumers", &body.consumers)?,
        reasons: body.reasons.iter().map(|name| reason(name)).collect::<Result<_, _>>()?,
        fingerprint: match body.fingerprint {
            Some(text) => {
                let wrong = |_| Invalid::unusable("fingerprint", "must be 16 hexadecimal digits");
                Some(text.parse().map_err(wrong)?)
            }
            None => None,
        },
        attempts,
        created,
        error: body.error,
    };
    filter.check()?;
    Ok(filter)
}

/// Which messages a consumer takes.
pub(crate) fn classes(types: &[String], sources: &[String]) -> Result<ClassFilter, Invalid> {
    Ok(ClassFilter { kinds: parsed("types", types)?, sources: parsed("sources", sources)? })
}

fn parsed<T: FromStr<Err = Invalid>>(field: &'static str, texts: &[String]) -> Result<Vec<T>, Invalid> {
    let parse = |text: &String| text.parse().map_err(|invalid: Invalid| Invalid { field, ..invalid });
    texts.iter().map(parse).collect()
}

fn state(name: &str) -> Result<State, Invalid> {
    let found = State::ALL.into_iter().find(|state| state.name() == name);
    found.ok_or_else(|| Invalid::unusable("states", "must be delayed, ready, leased, dead or done"))
}

fn reason(name: &str) -> Result<DeadReason, Invalid> {
    let found = DeadReason::ALL.into_iter().find(|reason| reason.name() == name);
    let allowed = "must be max_attempts, buried, expired_ttl, max_deliveries or not_reached";
    found.ok_or_else(|| Invalid::unusable("reasons", allowed))
}
