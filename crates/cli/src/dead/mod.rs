//! `redrive dead`: what was given up, and the way back.

mod discard;
mod groups;
mod redrive;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use redrive_wire::MessageView;

use crate::arguments::queue_name;
use crate::message::filter::{self, DeadFilter, FilterArguments};
use crate::message::show;
use crate::output::{Card, Cell, Column, Row};
use crate::remote::{Asking, Failure, HowMany, Session};

#[derive(Debug, Args)]
pub(crate) struct DeadArguments {
    #[command(subcommand)]
    verb: DeadVerb,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Subcommand)]
enum DeadVerb {
    /// Lists dead messages.
    List(ListArguments),
    /// Groups of dead messages whose errors are alike, the largest first.
    Groups(groups::GroupsArguments),
    /// Shows a dead message and its failed attempts.
    Show(show::ShowArguments),
    /// Brings dead messages back.
    Redrive(redrive::RedriveArguments),
    /// Discards dead messages.
    Discard(discard::DiscardArguments),
}

#[derive(Debug, Args)]
struct ListArguments {
    /// The queue.
    #[arg(value_parser = queue_name)]
    queue: String,
    #[command(flatten)]
    filter: FilterArguments,
    #[command(flatten)]
    dead: DeadFilter,
    /// The newest first.
    #[arg(long)]
    newest_first: bool,
    #[command(flatten)]
    how_many: HowMany,
}

pub(crate) fn run(arguments: DeadArguments) -> ExitCode {
    arguments.asking.run(async |session| match arguments.verb {
        DeadVerb::List(arguments) => list(session, &arguments).await,
        DeadVerb::Groups(arguments) => groups::run(session, &arguments).await,
        DeadVerb::Show(arguments) => show::run(session, &arguments).await,
        DeadVerb::Redrive(arguments) => redrive::run(session, &arguments).await,
        DeadVerb::Discard(arguments) => discard::run(session, &arguments).await,
    })
}

async fn list(session: &Session, arguments: &ListArguments) -> Result<(), Failure> {
    let body = arguments.filter.body(session, &arguments.queue).await?;
    let mut query = filter::query(&arguments.dead.over(body));
    if arguments.newest_first {
        query.push(("newest_first", "true".to_owned()));
    }
    let path = ["v1", "queues", &*arguments.queue, "dead"];
    session.list::<DeadRow>(&path, query, "messages", arguments.how_many).await
}

/// A message, as far as its death is of interest.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct DeadRow(MessageView);

impl Row for DeadRow {
    const COLUMNS: &'static [Column] = &[
        Column::Text("ID"),
        Column::Text("REASON"),
        Column::Number("ATTEMPTS"),
        Column::Text("DIED"),
        Column::Text("FINGERPRINT"),
        Column::Text("LAST ERROR"),
    ];

    fn cells(&self) -> Vec<Cell> {
        let message = &self.0;
        let error = message.last_error.as_ref().filter(|error| !error.is_empty());
        vec![
            Cell::text(&message.id),
            Cell::maybe(message.dead_reason.as_ref(), Cell::text),
            Cell::number(message.attempts),
            Cell::maybe(message.dead_at, |at| Cell::text(at.to_string())),
            Cell::maybe(message.fingerprint.as_ref(), Cell::text),
            Cell::maybe(error, Cell::clipped),
        ]
    }

    fn id(&self) -> String {
        Card::id(&self.0)
    }
}
