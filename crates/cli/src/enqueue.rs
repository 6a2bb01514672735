//! `redrive enqueue`: puts work into a queue.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use redrive_wire::{Enqueued, NewMessage};

use crate::arguments::{pair, queue_name};
use crate::body::{Body, BodyArguments};
use crate::import::{self, Destination};
use crate::remote::{Asking, Failure, Session};
use crate::span::Span;
use crate::when::When;

#[derive(Debug, Args)]
pub(crate) struct EnqueueArguments {
    /// The queue.
    #[arg(value_parser = queue_name)]
    queue: String,
    #[command(flatten)]
    body: BodyArguments,
    /// Takes messages from a file, each a line of JSON such as {"body": "text", "type": "order"}; stdin where no file is
    /// named.
    #[arg(long, value_name = "FILE", group = "what", num_args = 0..=1, default_missing_value = "-",
        conflicts_with = "MessageArguments")]
    ndjson: Option<PathBuf>,
    #[command(flatten)]
    message: MessageArguments,
    #[command(flatten)]
    asking: Asking,
}

/// What is said about one message.
#[derive(Debug, Args)]
struct MessageArguments {
    /// Its id, a UUID; the same id again is a duplicate.
    #[arg(long, value_name = "ID", help_heading = "Message")]
    id: Option<String>,
    /// What happened; consumers can ask for it.
    #[arg(long = "type", value_name = "TYPE", help_heading = "Message")]
    kind: Option<String>,
    /// Where it came from; consumers can ask for it.
    #[arg(long, help_heading = "Message")]
    source: Option<String>,
    /// How urgent it is: 0 to 9, 9 first.
    #[arg(long, value_name = "0-9", value_parser = clap::value_parser!(u8).range(0..=9), help_heading = "Message")]
    priority: Option<u8>,
    /// The tenant it belongs to: its fairness key.
    #[arg(long, help_heading = "Message")]
    key: Option<String>,
    /// The key that keeps it from being enqueued twice.
    #[arg(long, value_name = "KEY", help_heading = "Message")]
    dedup_key: Option<String>,
    /// Holds the dedup key until the message is done or dead, instead of for the queue's window.
    #[arg(long, requires = "dedup_key", help_heading = "Message")]
    unique: bool,
    /// Not before this much time.
    #[arg(long, value_name = "SPAN", conflicts_with = "at", help_heading = "Message")]
    delay: Option<Span>,
    /// Not before this time, or this span from now.
    #[arg(long, value_name = "TIME|SPAN", help_heading = "Message")]
    at: Option<When>,
    /// Not after this time, or this span from now.
    #[arg(long, value_name = "TIME|SPAN", help_heading = "Message")]
    ttl: Option<When>,
    /// How long its leases last.
    #[arg(long, value_name = "SPAN", help_heading = "Message")]
    lease_timeout: Option<Span>,
    /// How often it may be attempted.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Message")]
    max_attempts: Option<u32>,
    /// Travels with it; give it again for another.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = pair, help_heading = "Message")]
    headers: Vec<(String, String)>,
    /// What the body is.
    #[arg(long, value_name = "TYPE", help_heading = "Message")]
    content_type: Option<String>,
}

pub(crate) fn run(arguments: EnqueueArguments) -> ExitCode {
    let EnqueueArguments { queue, body, ndjson, message, asking } = arguments;
    asking.run(async |session| {
        if let Some(file) = ndjson {
            let path = ["v1", "queues", &*queue, "messages", "batch"];
            let read = import::item::<NewMessage>;
            let to = Destination { path: &path, field: "messages", read, done: "enqueued" };
            return import::run(session, &to, &file).await;
        }
        one(session, &queue, &message.with_body(body).await?).await
    })
}

async fn one(session: &Session, queue: &str, message: &NewMessage) -> Result<(), Failure> {
    let answer = session.remote.post::<Enqueued>(&["v1", "queues", queue, "messages"], message).await?;
    if answer.value.duplicate {
        session.output.say("it was there already: this is the first one's id");
    }
    session.output.told(Some(&answer.json), &answer.value.id, &answer.value.id)
}

impl MessageArguments {
    async fn with_body(self, body: BodyArguments) -> Result<NewMessage, Failure> {
        let mut message = self.message();
        match body.body().await? {
            Some(Body::Text(text)) => message.body = Some(text),
            Some(Body::Base64(text)) => message.body_base64 = Some(text),
            Some(Body::Json(json)) => message.json = Some(json),
            None => {
                let which =
                    "say what: BODY, --file FILE, --json-body JSON or --ndjson; an empty body is \"\"";
                return Err(Failure::Usage(which.to_owned()));
            }
        }
        Ok(message)
    }

    fn message(self) -> NewMessage {
        let span = |when: Option<When>| match when {
            Some(When::Span(span)) => Some(span.millis()),
            _ => None,
        };
        let time = |when: Option<When>| match when {
            Some(When::At(time)) => Some(time),
            _ => None,
        };
        let headers: BTreeMap<String, String> = self.headers.into_iter().collect();
        NewMessage {
            id: self.id,
            content_type: self.content_type,
            headers,
            r#type: self.kind,
            source: self.source,
            priority: self.priority,
            fairness_key: self.key,
            dedup_key: self.dedup_key,
            unique: self.unique.then(|| "until_done".to_owned()),
            delay_ms: self.delay.map(Span::millis).or(span(self.at)),
            visible_at: time(self.at),
            ttl_ms: span(self.ttl),
            expires_at: time(self.ttl),
            lease_timeout_ms: self.lease_timeout.map(Span::millis),
            max_attempts: self.max_attempts,
            ..NewMessage::default()
        }
    }
}
