//! Which messages are meant.

use clap::{Args, ValueEnum};
use redrive_wire::{FilterBody, QueueStats, Time};

use crate::arguments::{listed, message_id};
use crate::remote::{Failure, Query, Session};
use crate::when::When;

/// Which messages are meant: all that match every flag. A flag that is given several times matches any of its values.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FilterArguments {
    /// This one.
    #[arg(long = "id", value_name = "ID", value_parser = message_id, help_heading = "Which messages")]
    ids: Vec<String>,
    /// Of this type.
    #[arg(long = "type", value_name = "TYPE", value_parser = listed, help_heading = "Which messages")]
    types: Vec<String>,
    /// From this source.
    #[arg(long = "source", value_name = "SOURCE", value_parser = listed, help_heading = "Which messages")]
    sources: Vec<String>,
    /// Of this fairness key.
    #[arg(long = "key", value_name = "KEY", value_parser = listed, help_heading = "Which messages")]
    keys: Vec<String>,
    /// With at least so many attempts.
    #[arg(long, value_name = "N", help_heading = "Which messages")]
    attempts_min: Option<u32>,
    /// With at most so many attempts.
    #[arg(long, value_name = "N", help_heading = "Which messages")]
    attempts_max: Option<u32>,
    /// Enqueued at this time or later, or at most this long ago.
    #[arg(long, value_name = "TIME|SPAN", help_heading = "Which messages")]
    created_after: Option<When>,
    /// Enqueued at this time or earlier, or at least this long ago.
    #[arg(long, value_name = "TIME|SPAN", help_heading = "Which messages")]
    created_before: Option<When>,
    /// With this text somewhere in the last error.
    #[arg(long, value_name = "TEXT", help_heading = "Which messages")]
    error: Option<String>,
}

/// Which of the dead are meant, besides.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DeadFilter {
    /// Of the group with this fingerprint; `redrive dead groups` lists them.
    #[arg(long, value_name = "FINGERPRINT", help_heading = "Which messages")]
    fingerprint: Option<String>,
    /// Dead for this reason.
    #[arg(long = "dead-reason", value_name = "REASON", help_heading = "Which messages")]
    reasons: Vec<DeadReason>,
}

/// Which messages are meant by where they stand.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StateFilter {
    /// In this state.
    #[arg(long = "state", value_name = "STATE", help_heading = "Which messages")]
    states: Vec<State>,
    /// Leased by this consumer.
    #[arg(long = "consumer", value_name = "NAME", value_parser = listed, help_heading = "Which messages")]
    consumers: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum State {
    Delayed,
    Ready,
    Leased,
    Dead,
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum DeadReason {
    MaxAttempts,
    Buried,
    ExpiredTtl,
    MaxDeliveries,
    NotReached,
}

fn words<T: ValueEnum>(values: &[T]) -> Vec<String> {
    values.iter().filter_map(ValueEnum::to_possible_value).map(|word| word.get_name().to_owned()).collect()
}

impl FilterArguments {
    /// What the server is told. A span ago is counted from the server's time: its clock has stamped the messages.
    pub(crate) async fn body(&self, session: &Session, queue: &str) -> Result<FilterBody, Failure> {
        let relative =
            [self.created_after, self.created_before].iter().any(|when| matches!(when, Some(When::Span(_))));
        let now = if relative { server_time(session, queue).await? } else { Time(0) };
        Ok(FilterBody {
            ids: self.ids.clone(),
            types: self.types.clone(),
            sources: self.sources.clone(),
            keys: self.keys.clone(),
            attempts_min: self.attempts_min,
            attempts_max: self.attempts_max,
            created_after: self.created_after.map(|when| when.ago(now)),
            created_before: self.created_before.map(|when| when.ago(now)),
            error: self.error.clone(),
            ..FilterBody::default()
        })
    }
}

impl DeadFilter {
    pub(crate) fn over(&self, body: FilterBody) -> FilterBody {
        FilterBody { fingerprint: self.fingerprint.clone(), reasons: words(&self.reasons), ..body }
    }
}

impl StateFilter {
    pub(crate) fn over(&self, body: FilterBody) -> FilterBody {
        FilterBody { states: words(&self.states), consumers: self.consumers.clone(), ..body }
    }
}

/// What time it is at the server: its clock has stamped what is in the queue.
pub(crate) async fn server_time(session: &Session, queue: &str) -> Result<Time, Failure> {
    let stats = session.remote.get::<QueueStats>(&["v1", "queues", queue, "stats"], &Query::new()).await?;
    Ok(stats.value.at)
}

/// The parts of a filter that say something, by the names of parameters.
pub(crate) fn query(body: &FilterBody) -> Query {
    let list = |values: &[String]| Some(values.join(",")).filter(|text| !text.is_empty());
    let parts = [
        ("state", list(&body.states)),
        ("id", list(&body.ids)),
        ("type", list(&body.types)),
        ("source", list(&body.sources)),
        ("key", list(&body.keys)),
        ("consumer", list(&body.consumers)),
        ("reason", list(&body.reasons)),
        ("fingerprint", body.fingerprint.clone()),
        ("attempts_min", body.attempts_min.map(|count| count.to_string())),
        ("attempts_max", body.attempts_max.map(|count| count.to_string())),
        ("created_after", body.created_after.map(|time| time.to_string())),
        ("created_before", body.created_before.map(|time| time.to_string())),
        ("error", body.error.clone()),
    ];
    parts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// A filter for people: what stands behind `of QUEUE`.
pub(crate) fn described(body: &FilterBody) -> String {
    let parts: Vec<String> = query(body).into_iter().map(|(name, value)| format!("{name} {value}")).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}

/// Refuses to mean everything by saying nothing.
pub(crate) fn something(body: &FilterBody, all: bool) -> Result<(), Failure> {
    if *body == FilterBody::default() && !all {
        return Err(Failure::Usage("say which messages, or --all".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_told_to_people_and_to_the_server() {
        let body = FilterBody {
            types: vec!["a".to_owned(), "b".to_owned()],
            reasons: words(&[DeadReason::MaxAttempts]),
            attempts_min: Some(2),
            created_before: Some(Time(0)),
            ..FilterBody::default()
        };
        let told =
            " (type a,b; reason max_attempts; attempts_min 2; created_before 1970-01-01T00:00:00.000Z)";
        assert_eq!(described(&body), told);
        assert_eq!(described(&FilterBody::default()), "");
        assert!(something(&body, false).is_ok() && something(&FilterBody::default(), true).is_ok());
        assert!(something(&FilterBody::default(), false).is_err());
    }
}
