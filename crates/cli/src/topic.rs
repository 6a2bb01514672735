//! `redrive topic`: how events of some topics are dispatched, and for how long they are kept.

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use redrive_wire::{QueueStats, SetTopicRequest, TopicView};
use reqwest::Method;
use reqwest::header::IF_MATCH;

use crate::arguments::{OrNone, topic_pattern};
use crate::confirm::Consent;
use crate::exit::Exit;
use crate::output::{Card, Cell, Column, Row, counted};
use crate::queue::list::stats;
use crate::remote::{Answer, Asking, Failure, HowMany, Query, Session};
use crate::span::Span;

#[derive(Debug, Args)]
pub(crate) struct TopicArguments {
    #[command(subcommand)]
    verb: TopicVerb,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Subcommand)]
enum TopicVerb {
    /// Lists the patterns for which something is set.
    List(HowMany),
    /// Shows what is set for a pattern.
    Show(One),
    /// Sets how events are dispatched and for how long they are kept; what is not said stays as it is.
    Set(SetArguments),
    /// Forgets what is set for a pattern, and the events that were kept for replays.
    Delete(DeleteArguments),
}

#[derive(Debug, Args)]
struct One {
    /// The pattern, such as 'orders.**'.
    #[arg(value_parser = topic_pattern)]
    pattern: String,
}

#[derive(Debug, Args)]
struct SetArguments {
    /// For which topics: `*` is one segment, `**` any number of them. The most particular pattern counts.
    #[arg(value_parser = topic_pattern)]
    pattern: String,
    /// Whether each subscription gets an event by itself, or one after another.
    #[arg(long)]
    dispatch: Option<Dispatch>,
    /// For how long events can be replayed.
    #[arg(long, value_name = "SPAN|none")]
    retain: Option<OrNone<Span>>,
}

#[derive(Debug, Args)]
struct DeleteArguments {
    /// The pattern.
    #[arg(value_parser = topic_pattern)]
    pattern: String,
    /// With the events that wait for handlers which run one after another.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Dispatch {
    Independent,
    Sequential,
}

pub(crate) fn run(arguments: TopicArguments) -> ExitCode {
    arguments.asking.run(async |session| match arguments.verb {
        TopicVerb::List(how_many) => {
            session.list::<TopicView>(&["v1", "topics"], Query::new(), "topics", how_many).await
        }
        TopicVerb::Show(one) => session.output.one(&get(session, &one.pattern).await?),
        TopicVerb::Set(arguments) => set(session, &arguments).await,
        TopicVerb::Delete(arguments) => delete(session, &arguments).await,
    })
}

async fn get(session: &Session, pattern: &str) -> Result<Answer<TopicView>, Failure> {
    session.remote.get(&["v1", "topics", pattern], &Query::new()).await
}

/// Reads what is set, changes what was said, and writes it back if nobody else did meanwhile.
async fn set(session: &Session, arguments: &SetArguments) -> Result<(), Failure> {
    let known = match get(session, &arguments.pattern).await {
        Ok(answer) => Some(answer.value),
        Err(failure) if failure.exit() == Exit::NotFound => None,
        Err(failure) => return Err(failure),
    };
    let request = SetTopicRequest {
        dispatch: match arguments.dispatch {
            Some(Dispatch::Independent) => Some("independent".to_owned()),
            Some(Dispatch::Sequential) => Some("sequential".to_owned()),
            None => known.as_ref().map(|known| known.dispatch.clone()),
        },
        retain_ms: match arguments.retain {
            Some(OrNone::Some(span)) => Some(span.millis()),
            Some(OrNone::None) => None,
            None => known.as_ref().and_then(|known| known.retain_ms),
        },
    };
    let path = ["v1", "topics", &*arguments.pattern];
    let mut put = session.remote.request(Method::PUT, &path, &Query::new()).json(&request);
    if let Some(known) = &known {
        put = put.header(IF_MATCH, format!("\"{}\"", known.version));
    }
    let answer: Answer<TopicView> = session.remote.answer(put).await?;
    let set = &answer.value;
    let kept = match set.retain_ms {
        Some(ms) => format!("kept for {}", Span::from_millis(ms)),
        None => "not kept".to_owned(),
    };
    let sentence = format!("events of {} are dispatched {} and {kept}", set.pattern, way(&set.dispatch));
    session.output.told(Some(&answer.json), &sentence, &set.pattern)
}

fn way(dispatch: &str) -> &str {
    match dispatch {
        "independent" => "independently",
        "sequential" => "sequentially",
        other => other,
    }
}

async fn delete(session: &Session, arguments: &DeleteArguments) -> Result<(), Failure> {
    let pattern = &*arguments.pattern;
    let known = get(session, pattern).await?.value;
    let waiting = match &known.sequence_queue {
        Some(queue) => stats(session, queue).await?.as_ref().map_or(0, held),
        None => 0,
    };
    let what = format!("forget what is set for {pattern}, with {} that wait", counted(waiting, "event"));
    if !arguments.consent.given(&session.output, &what, waiting).await? {
        return Ok(());
    }
    let query: Query = if arguments.force { vec![("force", "true".to_owned())] } else { Query::new() };
    session.remote.done(session.remote.request(Method::DELETE, &["v1", "topics", pattern], &query)).await?;
    session.output.told(None, &format!("nothing is set for {pattern} any more"), pattern)
}

/// Everything that is in a queue.
pub(crate) fn held(stats: &QueueStats) -> u64 {
    let held = stats.states;
    held.ready + held.delayed + held.leased + held.dead + held.done
}

impl Row for TopicView {
    const COLUMNS: &'static [Column] =
        &[Column::Text("PATTERN"), Column::Text("DISPATCH"), Column::Text("RETAIN"), Column::Text("SINCE")];

    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::text(&self.pattern),
            Cell::text(&self.dispatch),
            Cell::maybe(self.retain_ms, Cell::span),
            Cell::text(self.created_at.to_string()),
        ]
    }

    fn id(&self) -> String {
        self.pattern.clone()
    }
}

impl Card for TopicView {
    fn fields(&self) -> Vec<(&'static str, Cell)> {
        vec![
            ("pattern", Cell::text(&self.pattern)),
            ("dispatch", Cell::text(&self.dispatch)),
            ("retain", Cell::maybe(self.retain_ms, Cell::span)),
            ("queue", Cell::maybe(self.sequence_queue.as_ref(), Cell::text)),
            ("since", Cell::text(self.created_at.to_string())),
            ("version", Cell::number(self.version)),
        ]
    }

    fn id(&self) -> String {
        self.pattern.clone()
    }
}
