//! `redrive publish`: an event for everybody who wants it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use redrive_wire::{NewEvent, PublishResult};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;

use crate::arguments::{pair, topic};
use crate::body::{self, Body, BodyArguments};
use crate::import::{self, Destination};
use crate::remote::{Answer, Asking, Failure, Query, Session};

/// Of CloudEvents: one, and several.
const MEDIA_TYPES: [&str; 2] = ["application/cloudevents+json", "application/cloudevents-batch+json"];

#[derive(Debug, Args)]
pub(crate) struct PublishArguments {
    /// The topic, such as orders.created.
    #[arg(value_parser = topic)]
    topic: String,
    #[command(flatten)]
    body: BodyArguments,
    /// Takes CloudEvents from a file: one as a JSON object with its data in it, or several as an array; `-` is stdin.
    #[arg(long, value_name = "FILE", group = "what", conflicts_with = "EventArguments")]
    cloudevent: Option<PathBuf>,
    /// Takes events from a file, each a line of JSON such as {"body": "text", "type": "order"}; stdin where no file is named.
    #[arg(long, value_name = "FILE", group = "what", num_args = 0..=1, default_missing_value = "-",
        conflicts_with = "EventArguments")]
    ndjson: Option<PathBuf>,
    #[command(flatten)]
    event: EventArguments,
    #[command(flatten)]
    asking: Asking,
}

/// What is said about one event.
#[derive(Debug, Args)]
struct EventArguments {
    /// What kind of event it is; its topic, where nothing is said.
    #[arg(long = "type", value_name = "TYPE", help_heading = "Event")]
    kind: Option<String>,
    /// Travels with it, and subscriptions can ask for it; give it again for another.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = pair, help_heading = "Event")]
    headers: Vec<(String, String)>,
    /// The key that keeps it from being published twice.
    #[arg(long, value_name = "KEY", help_heading = "Event")]
    dedup_key: Option<String>,
    /// The tenant it belongs to: its fairness key.
    #[arg(long, help_heading = "Event")]
    key: Option<String>,
    /// What the body is.
    #[arg(long, value_name = "TYPE", help_heading = "Event")]
    content_type: Option<String>,
}

#[derive(Deserialize)]
struct Results {
    results: Vec<Answer<PublishResult>>,
}

pub(crate) fn run(arguments: PublishArguments) -> ExitCode {
    let PublishArguments { topic, body, cloudevent, ndjson, event, asking } = arguments;
    asking.run(async |session| {
        let path = ["v1", "topics", &*topic, "events"];
        if let Some(file) = ndjson {
            let read = import::item::<NewEvent>;
            let to = Destination { path: &path, field: "events", read, done: "published" };
            return import::run(session, &to, &file).await;
        }
        if let Some(file) = cloudevent {
            return cloud_event(session, &path, &file).await;
        }
        let request = redrive_wire::PublishRequest { events: vec![event.with_body(body).await?] };
        tell(session, session.remote.post(&path, &request).await?)
    })
}

/// The file goes as it is: what it says about the event is the server's to read.
async fn cloud_event(session: &Session, path: &[&str], file: &Path) -> Result<(), Failure> {
    let text = body::read(file).await?;
    let several = text.trim_ascii_start().starts_with(b"[");
    let request = session.remote.request(Method::POST, path, &Query::new());
    let request = request.header(CONTENT_TYPE, MEDIA_TYPES[usize::from(several)]).body(text);
    tell(session, session.remote.answer(request).await?)
}

/// Prints the id of each event, and says what is to know about it.
fn tell(session: &Session, answer: Answer<Results>) -> Result<(), Failure> {
    let results = answer.value.results;
    let (mut refused, total) = (0, results.len() as u64);
    for result in &results {
        let PublishResult { id, subscriptions, duplicate, code, detail, .. } = &result.value;
        let Some(id) = id else {
            let code = code.as_deref().unwrap_or("REFUSED");
            let said = format!("{} ({code})", detail.as_deref().unwrap_or("refused"));
            if total == 1 {
                return Err(Failure::Failed(said));
            }
            session.output.complain(&said);
            refused += 1;
            continue;
        };
        session.output.told(Some(&result.json), id, id)?;
        if *duplicate == Some(true) {
            session.output.say("it was published already: this is the first one's id");
        } else if *subscriptions == Some(0) {
            session.output.say("no subscription wants it");
        }
    }
    if refused > 0 { Err(Failure::Partial { failed: refused, total, what: "events" }) } else { Ok(()) }
}

impl EventArguments {
    async fn with_body(self, body: BodyArguments) -> Result<NewEvent, Failure> {
        let mut event = NewEvent {
            content_type: self.content_type,
            headers: self.headers.into_iter().collect(),
            r#type: self.kind,
            fairness_key: self.key,
            dedup_key: self.dedup_key,
            ..NewEvent::default()
        };
        match body.body().await? {
            Some(Body::Text(text)) => event.body = Some(text),
            Some(Body::Base64(text)) => event.body_base64 = Some(text),
            Some(Body::Json(json)) => event.json = Some(json),
            None => {
                let which = "say what: BODY, --file FILE, --json-body JSON, --cloudevent FILE or --ndjson; an empty body is \"\"";
                return Err(Failure::Usage(which.to_owned()));
            }
        }
        Ok(event)
    }
}
