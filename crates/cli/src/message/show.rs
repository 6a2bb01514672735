//! `redrive message show`, and what is shown of a message anywhere.

use clap::Args;
use data_encoding::BASE64;
use redrive_wire::{AttemptView, MessageView};

use crate::arguments::{message_id, queue_name};
use crate::output::{Card, Cell, Column, Format, Output, counted, table};
use crate::remote::{Answer, Failure, Query, Session};

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The queue.
    #[arg(value_parser = queue_name)]
    queue: String,
    /// The message.
    #[arg(value_parser = message_id)]
    id: String,
    /// Only its body, byte by byte.
    #[arg(long)]
    body: bool,
}

pub(crate) async fn run(session: &Session, arguments: &ShowArguments) -> Result<(), Failure> {
    let path = ["v1", "queues", &*arguments.queue, "messages", &*arguments.id];
    let answer: Answer<MessageView> = session.remote.get(&path, &Query::new()).await?;
    if arguments.body {
        return print_body(&session.output, &answer.value);
    }
    print(&session.output, &answer)
}

/// The message, and below it its failed attempts.
fn print(output: &Output, answer: &Answer<MessageView>) -> Result<(), Failure> {
    output.one(answer)?;
    let failures = &answer.value.failures;
    if output.format != Format::Table || failures.is_empty() {
        return Ok(());
    }
    let rows = failures.iter().map(attempt).collect();
    output.print(&format!("\n{}", table(&ATTEMPTS, rows, output.coloured)))
}

const ATTEMPTS: [Column; 6] = [
    Column::Number("ATTEMPT"),
    Column::Text("ENDED"),
    Column::Text("BY"),
    Column::Text("CONSUMER"),
    Column::Number("DELAY"),
    Column::Text("ERROR"),
];

fn attempt(attempt: &AttemptView) -> Vec<Cell> {
    let text = |text: &str| Cell::maybe(Some(text).filter(|text| !text.is_empty()), Cell::clipped);
    vec![
        Cell::number(attempt.attempt),
        Cell::text(attempt.ended_at.to_string()),
        Cell::text(&attempt.cause),
        text(&attempt.consumer),
        Cell::maybe(attempt.delay_ms, Cell::span),
        text(&attempt.error),
    ]
}

/// The body as it was enqueued.
fn print_body(output: &Output, message: &MessageView) -> Result<(), Failure> {
    let bytes = match (&message.body, &message.body_base64) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(text)) => BASE64
            .decode(text.as_bytes())
            .map_err(|_| Failure::Failed("the server sent a body that is no base64".to_owned()))?,
        (None, None) => Vec::new(),
    };
    output.bytes(&bytes)
}

impl Card for MessageView {
    fn fields(&self) -> Vec<(&'static str, Cell)> {
        let mut fields = vec![
            ("id", Cell::text(&self.id)),
            ("queue", Cell::text(&self.queue)),
            ("state", Cell::state(&self.state)),
            ("attempts", Cell::number(self.attempts)),
            ("deliveries", Cell::number(self.deliveries)),
            ("redrives", Cell::number(self.redrives)),
            ("priority", Cell::number(self.priority)),
            ("created", Cell::text(self.created_at.to_string())),
            ("visible", Cell::text(self.visible_at.to_string())),
        ];
        let time = |time: Option<redrive_wire::Time>| time.map(|time| time.to_string());
        let told = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let headers: Vec<String> =
            self.headers.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let lease = self.lease.as_ref();
        let more = [
            ("expires", time(self.expires_at)),
            ("type", told(&self.r#type)),
            ("source", told(&self.source)),
            ("key", told(&self.fairness_key)),
            ("dedup key", self.dedup_key.clone()),
            ("max attempts", self.max_attempts.map(|max| max.to_string())),
            ("headers", told(&headers.join(", "))),
            ("consumer", lease.and_then(|lease| told(&lease.consumer))),
            ("fencing token", lease.map(|lease| lease.lease_id.clone())),
            (
                "deadline",
                lease.map(|lease| {
                    format!("{}{}", lease.deadline, if lease.overdue { " (overdue)" } else { "" })
                }),
            ),
            ("dead reason", self.dead_reason.clone()),
            ("died", time(self.dead_at)),
            ("fingerprint", self.fingerprint.clone()),
            ("last error", self.last_error.clone()),
            ("came from", self.origin_queue.clone()),
            ("note", self.note.clone()),
        ];
        fields.extend(more.into_iter().filter_map(|(name, value)| Some((name, Cell::text(value?)))));
        fields.push(("content type", Cell::text(&self.content_type)));
        fields.push(("body", body(self)));
        fields
    }

    fn id(&self) -> String {
        self.id.clone()
    }
}

/// What is shown of a body: its beginning where it is text.
pub(crate) fn body(message: &MessageView) -> Cell {
    match &message.body {
        Some(text) => Cell::clipped(text),
        None => Cell::text(counted(message.body_bytes, "byte")),
    }
}
