//! `redrive lease`: takes work.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use redrive_wire::{DeliveredMessage, LeaseRequest};
use reqwest::Method;
use serde::Deserialize;
use tokio::time::Instant;

use crate::arguments::queue_name;
use crate::message::show;
use crate::output::{Card, Cell, Column, Format, Output, Row};
use crate::remote::{Answer, Asking, Failure, Query, Session};
use crate::span::Span;

/// How long a server may take for an answer beyond the wait.
const GRACE: Duration = Duration::from_mins(1);
/// How long one call waits; who waits longer calls again.
const WAIT_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
pub(crate) struct LeaseArguments {
    /// The queue.
    #[arg(value_parser = queue_name)]
    queue: String,
    /// How many messages at most.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    /// How long to wait where nothing is ready; the exit code is 8 where nothing came.
    #[arg(long, value_name = "SPAN")]
    wait: Option<Span>,
    /// For how long; message and queue decide where nothing is said.
    #[arg(long, value_name = "SPAN")]
    lease: Option<Span>,
    /// Who asks.
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,
    /// Only messages that were never tried, or only those that failed before.
    #[arg(long)]
    lane: Option<Lane>,
    /// Of this type only; give it again for another.
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// From this source only; give it again for another.
    #[arg(long = "source", value_name = "SOURCE")]
    sources: Vec<String>,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Lane {
    Fresh,
    Retry,
}

/// What was handed out, each as the server wrote it.
#[derive(Deserialize)]
struct Handed {
    messages: Vec<Answer<DeliveredMessage>>,
}

pub(crate) fn run(arguments: LeaseArguments) -> ExitCode {
    let LeaseArguments { queue, limit, wait, lease, consumer, lane, types, sources, asking } = arguments;
    let lane = lane.map(|lane| if lane == Lane::Fresh { "fresh" } else { "retry" }.to_owned());
    let lease_ms = lease.map(Span::millis);
    let request =
        LeaseRequest { limit: Some(limit), consumer, lease_ms, wait_ms: None, lane, types, sources };
    let wait = wait.unwrap_or(Span::from_millis(0));
    asking.run(async |session| {
        let messages = take(session, &queue, request, wait).await?;
        print(&session.output, &messages, limit == 1)
    })
}

/// Asks until something came or the time is over: a server waits only so long for one call.
async fn take(
    session: &Session,
    queue: &str,
    mut request: LeaseRequest,
    wait: Span,
) -> Result<Vec<Answer<DeliveredMessage>>, Failure> {
    let until = Instant::now() + wait.duration();
    loop {
        let left = until.saturating_duration_since(Instant::now()).min(WAIT_MAX);
        request.wait_ms = Some(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        let call = session.remote.request(Method::POST, &["v1", "queues", queue, "lease"], &Query::new());
        let handed: Handed = session.remote.answer(call.timeout(left + GRACE).json(&request)).await?.value;
        if !handed.messages.is_empty() {
            return Ok(handed.messages);
        }
        if Instant::now() >= until {
            return Err(Failure::TimedOut(match wait.millis() {
                0 => format!("nothing is ready in {queue}"),
                _ => format!("nothing was ready in {queue} within {wait}"),
            }));
        }
    }
}

/// Who asks for one message is shown all of it.
fn print(output: &Output, messages: &[Answer<DeliveredMessage>], single: bool) -> Result<(), Failure> {
    if single && output.format == Format::Table {
        return messages.iter().try_for_each(|message| output.one(message));
    }
    let mut list = output.list::<DeliveredMessage>();
    messages.iter().try_for_each(|message| list.item(message))?;
    list.end()
}

impl Card for DeliveredMessage {
    fn fields(&self) -> Vec<(&'static str, Cell)> {
        const SHOWN: [&str; 11] = [
            "id",
            "attempts",
            "priority",
            "type",
            "source",
            "key",
            "headers",
            "fencing token",
            "deadline",
            "content type",
            "body",
        ];
        let all = self.message.fields();
        let mut fields: Vec<_> = all.into_iter().filter(|(name, _)| SHOWN.contains(name)).collect();
        fields.push(("receipt", Cell::text(&self.receipt)));
        fields
    }

    /// What settles it: `redrive lease Q -o id | redrive ack -`.
    fn id(&self) -> String {
        self.receipt.clone()
    }
}

impl Row for DeliveredMessage {
    const COLUMNS: &'static [Column] = &[
        Column::Text("ID"),
        Column::Number("ATTEMPTS"),
        Column::Text("DEADLINE"),
        Column::Text("BODY"),
        Column::Text("RECEIPT"),
    ];

    fn cells(&self) -> Vec<Cell> {
        let message = &self.message;
        vec![
            Cell::text(&message.id),
            Cell::number(message.attempts),
            Cell::maybe(message.lease.as_ref(), |lease| Cell::text(lease.deadline.to_string())),
            show::body(message),
            Cell::text(&self.receipt),
        ]
    }

    fn id(&self) -> String {
        Card::id(self)
    }
}
