//! `redrive message`: single messages, and many by a filter.

mod discard;
pub(crate) mod filter;
mod r#move;
pub(crate) mod show;
mod why;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use redrive_wire::MessageView;

use crate::arguments::queue_name;
use crate::output::{Cell, Column, Row};
use crate::remote::{Asking, Failure, HowMany, Session};
use filter::{DeadFilter, FilterArguments, StateFilter};

#[derive(Debug, Args)]
pub(crate) struct MessageArguments {
    #[command(subcommand)]
    verb: MessageVerb,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Subcommand)]
enum MessageVerb {
    /// Shows a message and its failed attempts.
    Show(show::ShowArguments),
    /// Says why a message is not running, and when it can.
    Why(why::WhyArguments),
    /// Lists messages by id, which is the order in which they were made.
    List(ListArguments),
    /// Moves a message, or all that match, to another queue.
    Move(r#move::MoveArguments),
    /// Discards a message, or all that match.
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
    states: StateFilter,
    #[command(flatten)]
    dead: DeadFilter,
    /// The newest first.
    #[arg(long)]
    newest_first: bool,
    #[command(flatten)]
    how_many: HowMany,
}

pub(crate) fn run(arguments: MessageArguments) -> ExitCode {
    arguments.asking.run(async |session| match arguments.verb {
        MessageVerb::Show(arguments) => show::run(session, &arguments).await,
        MessageVerb::Why(arguments) => why::run(session, &arguments).await,
        MessageVerb::List(arguments) => list(session, &arguments).await,
        MessageVerb::Move(arguments) => r#move::run(session, &arguments).await,
        MessageVerb::Discard(arguments) => discard::run(session, &arguments).await,
    })
}

async fn list(session: &Session, arguments: &ListArguments) -> Result<(), Failure> {
    let body = arguments.filter.body(session, &arguments.queue).await?;
    let mut query = filter::query(&arguments.states.over(arguments.dead.over(body)));
    if arguments.newest_first {
        query.push(("newest_first", "true".to_owned()));
    }
    let path = ["v1", "queues", &*arguments.queue, "messages"];
    session.list::<MessageView>(&path, query, "messages", arguments.how_many).await
}

impl Row for MessageView {
    const COLUMNS: &'static [Column] = &[
        Column::Text("ID"),
        Column::Text("STATE"),
        Column::Number("ATTEMPTS"),
        Column::Number("PRIORITY"),
        Column::Text("TYPE"),
        Column::Text("KEY"),
        Column::Text("CREATED"),
        Column::Text("VISIBLE"),
    ];

    fn cells(&self) -> Vec<Cell> {
        let text = |text: &String| Cell::maybe(Some(text).filter(|text| !text.is_empty()), Cell::text);
        vec![
            Cell::text(&self.id),
            Cell::state(&self.state),
            Cell::number(self.attempts),
            Cell::number(self.priority),
            text(&self.r#type),
            text(&self.fairness_key),
            Cell::text(self.created_at.to_string()),
            Cell::text(self.visible_at.to_string()),
        ]
    }

    fn id(&self) -> String {
        self.id.clone()
    }
}
