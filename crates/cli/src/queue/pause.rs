//! `redrive queue pause` and `redrive queue resume`.

use clap::Args;
use redrive_wire::{PauseRequest, QueueView, ResumeRequest};

use crate::arguments::queue_name;
use crate::remote::{Failure, Session};
use crate::span::Span;
use crate::when::When;

#[derive(Debug, Args)]
pub(super) struct PauseArguments {
    /// The queue.
    #[arg(value_parser = queue_name)]
    name: String,
    /// Only this fairness key.
    #[arg(long)]
    key: Option<String>,
    /// Until this time, or for this span; otherwise until it is resumed.
    #[arg(long, value_name = "TIME|SPAN")]
    until: Option<When>,
    /// For this long.
    #[arg(long = "for", value_name = "SPAN", conflicts_with = "until")]
    span: Option<Span>,
}

#[derive(Debug, Args)]
pub(super) struct ResumeArguments {
    /// The queue.
    #[arg(value_parser = queue_name)]
    name: String,
    /// Only this fairness key.
    #[arg(long)]
    key: Option<String>,
}

pub(super) async fn pause(session: &Session, arguments: PauseArguments) -> Result<(), Failure> {
    // A span is sent as one: it begins when the server reads it.
    let (until, span) = match arguments.until {
        Some(When::At(time)) => (Some(time), None),
        Some(When::Span(span)) => (None, Some(span)),
        None => (None, arguments.span),
    };
    let what = named(&arguments.name, arguments.key.as_deref());
    let request = PauseRequest { key: arguments.key.clone(), until, for_ms: span.map(Span::millis) };
    let path = ["v1", "queues", &*arguments.name, "pause"];
    let answer = session.remote.post::<QueueView>(&path, &request).await?;
    let pause = answer.value.pauses.iter().find(|pause| pause.key == arguments.key);
    let until = match pause.and_then(|pause| pause.until) {
        Some(until) => format!(" until {until}"),
        None => String::new(),
    };
    session.output.told(Some(&answer.json), &format!("{what} is paused{until}"), &arguments.name)
}

pub(super) async fn resume(session: &Session, arguments: ResumeArguments) -> Result<(), Failure> {
    let what = named(&arguments.name, arguments.key.as_deref());
    let request = ResumeRequest { key: arguments.key };
    let path = ["v1", "queues", &*arguments.name, "resume"];
    let answer = session.remote.post::<QueueView>(&path, &request).await?;
    session.output.told(Some(&answer.json), &format!("{what} goes on"), &arguments.name)
}

fn named(queue: &str, key: Option<&str>) -> String {
    match key {
        Some(key) => format!("key `{key}` of queue {queue}"),
        None => format!("queue {queue}"),
    }
}
