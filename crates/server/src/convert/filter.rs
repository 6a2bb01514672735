//! Which messages are meant.

use std::str::FromStr;

use redrive_core::invalid::Invalid;
use redrive_core::message::{DeadReason, State};
use redrive_core::time::Timestamp;
use redrive_store::{ClassFilter, Filter};
use redrive_wire as wire;

use super::{time, timestamp};

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

/// The same as it was sent. A bound that leaves nothing out is as none.
pub(crate) fn body(filter: &Filter) -> wire::FilterBody {
    let attempts = filter.attempts.as_ref();
    let created = filter.created.as_ref();
    wire::FilterBody {
        states: filter.states.iter().map(|state| state.name().to_owned()).collect(),
        ids: filter.ids.iter().map(ToString::to_string).collect(),
        types: filter.kinds.iter().map(|kind| kind.as_str().to_owned()).collect(),
        sources: filter.sources.iter().map(|source| source.as_str().to_owned()).collect(),
        keys: filter.keys.iter().map(|key| key.as_str().to_owned()).collect(),
        consumers: filter.consumers.iter().map(|consumer| consumer.as_str().to_owned()).collect(),
        reasons: filter.reasons.iter().map(|reason| reason.name().to_owned()).collect(),
        fingerprint: filter.fingerprint.map(|fingerprint| fingerprint.to_string()),
        attempts_min: attempts.map(|range| *range.start()).filter(|min| *min > 0),
        attempts_max: attempts.map(|range| *range.end()).filter(|max| *max < u32::MAX),
        created_after: created.map(|range| *range.start()).filter(|at| *at > Timestamp::EPOCH).map(time),
        created_before: created.map(|range| *range.end()).filter(|at| *at < Timestamp::MAX).map(time),
        error: filter.error.clone(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_told_as_it_was_sent() {
        let time = |text: &str| serde_json::from_value(serde_json::json!(text)).unwrap();
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let sent = wire::FilterBody {
            states: texts(&["dead", "ready"]),
            ids: texts(&["0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"]),
            types: texts(&["order.paid", ""]),
            sources: texts(&["shop"]),
            keys: texts(&["tenant-1"]),
            consumers: texts(&["worker-1"]),
            reasons: texts(&["buried", "max_attempts"]),
            fingerprint: Some("00c0ffee00c0ffee".to_owned()),
            attempts_min: Some(1),
            attempts_max: Some(7),
            created_after: Some(time("2020-01-01T00:00:00.000Z")),
            created_before: Some(time("2030-01-01T00:00:00.001Z")),
            error: Some("timed out".to_owned()),
        };
        assert_eq!(body(&filter(sent.clone()).unwrap()), sent);
        assert_eq!(body(&Filter::default()), wire::FilterBody::default());
        for (min, max) in [(Some(3), None), (None, Some(3))] {
            let some =
                wire::FilterBody { attempts_min: min, attempts_max: max, ..wire::FilterBody::default() };
            assert_eq!(body(&filter(some.clone()).unwrap()), some);
        }
        for (after, before) in [(sent.created_after, None), (None, sent.created_before)] {
            let some = wire::FilterBody {
                created_after: after,
                created_before: before,
                ..wire::FilterBody::default()
            };
            assert_eq!(body(&filter(some.clone()).unwrap()), some);
        }
    }
}
