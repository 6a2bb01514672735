//! `redrive operation`: work on many messages, and how far it is.

mod bulk;
mod follow;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use redrive_wire::{FilterBody, OperationView};
use serde_json::json;

pub(crate) use bulk::Bulk;
pub(crate) use follow::Follow;

use crate::arguments::operation_id;
use crate::output::{Card, Cell, Column, Row};
use crate::remote::{Answer, Asking, Failure, HowMany, Query, Session};
use crate::span::Span;

#[derive(Debug, Args)]
pub(crate) struct OperationArguments {
    #[command(subcommand)]
    verb: OperationVerb,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Subcommand)]
enum OperationVerb {
    /// Lists operations, the oldest first.
    List(HowMany),
    /// Shows how far an operation is.
    Show(One),
    /// Pauses an operation after the step it is at.
    Pause(One),
    /// Lets an operation go on.
    Resume(One),
    /// Ends an operation after the step it is at. What it did stays done.
    Cancel(One),
    /// Waits for the end of an operation.
    Wait(WaitArguments),
}

#[derive(Debug, Args)]
struct One {
    /// The operation.
    #[arg(value_parser = operation_id)]
    id: String,
}

#[derive(Debug, Args)]
struct WaitArguments {
    /// The operation.
    #[arg(value_parser = operation_id)]
    id: String,
    /// For how long at most; the exit code is 8 then.
    #[arg(long, value_name = "SPAN")]
    timeout: Option<Span>,
}

pub(crate) fn run(arguments: OperationArguments) -> ExitCode {
    arguments.asking.run(async |session| match arguments.verb {
        OperationVerb::List(how_many) => {
            let path = ["v1", "operations"];
            session.list::<OperationView>(&path, Query::new(), "operations", how_many).await
        }
        OperationVerb::Show(one) => session.output.one(&get(session, &one.id).await?),
        OperationVerb::Pause(one) => change(session, &one.id, "pause").await,
        OperationVerb::Resume(one) => change(session, &one.id, "resume").await,
        OperationVerb::Cancel(one) => change(session, &one.id, "cancel").await,
        OperationVerb::Wait(arguments) => {
            let operation = get(session, &arguments.id).await?;
            follow::to_the_end(session, operation, arguments.timeout).await
        }
    })
}

/// A filter as the API takes it; one that takes everything is said in a word.
fn written(filter: &FilterBody) -> String {
    if *filter == FilterBody::default() {
        return "everything".to_owned();
    }
    serde_json::to_string(filter).expect("texts and numbers can always be written")
}

async fn get(session: &Session, id: &str) -> Result<Answer<OperationView>, Failure> {
    session.remote.get(&["v1", "operations", id], &Query::new()).await
}

async fn change(session: &Session, id: &str, verb: &str) -> Result<(), Failure> {
    let answer = session.remote.post::<OperationView>(&["v1", "operations", id, verb], &json!({})).await?;
    session.output.told(Some(&answer.json), &format!("operation {id} is {}", answer.value.state), id)
}

impl Row for OperationView {
    const COLUMNS: &'static [Column] = &[
        Column::Text("ID"),
        Column::Text("KIND"),
        Column::Text("QUEUE"),
        Column::Text("STATE"),
        Column::Number("DONE"),
        Column::Number("TOTAL"),
        Column::Number("REFUSED"),
        Column::Text("STARTED"),
    ];

    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::text(&self.id),
            Cell::text(&self.kind),
            Cell::text(&self.queue),
            Cell::state(&self.state),
            Cell::number(self.applied),
            Cell::number(self.total),
            Cell::number(self.refused),
            Cell::text(self.started_at.to_string()),
        ]
    }

    fn id(&self) -> String {
        self.id.clone()
    }
}

impl Card for OperationView {
    fn fields(&self) -> Vec<(&'static str, Cell)> {
        let mut fields = vec![
            ("id", Cell::text(&self.id)),
            ("kind", Cell::text(&self.kind)),
            ("queue", Cell::text(&self.queue)),
            ("state", Cell::state(&self.state)),
            ("done", Cell::number(self.applied)),
            ("total", Cell::number(self.total)),
            ("refused", Cell::number(self.refused)),
            ("started", Cell::text(self.started_at.to_string())),
            ("updated", Cell::text(self.updated_at.to_string())),
        ];
        let filter = self.filter.as_ref().map(written);
        let more = [
            ("filter", &filter),
            ("until", &self.until),
            ("target", &self.target),
            ("by", &self.by),
            ("reason", &self.reason),
            ("problem", &self.problem),
        ];
        let said = more
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_ref().filter(|text| !text.is_empty())?)));
        fields.extend(said.map(|(name, value)| (name, Cell::text(value))));
        fields.extend(self.rate.map(|rate| ("rate", Cell::text(format!("{rate}/s")))));
        fields
    }

    fn id(&self) -> String {
        self.id.clone()
    }
}
