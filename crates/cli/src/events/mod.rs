//! `redrive events`: what happens, as it happens.

pub(crate) mod sse;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use redrive_broker::pause;
use redrive_core::time::Millis;
use redrive_wire::{Event, Time};
use reqwest::{Method, Response};
use serde_json::value::RawValue;

use crate::arguments::queue_name;
use crate::exit::Exit;
use crate::output::{Format, Output, Tree, counted, printable};
use crate::remote::{Asking, Failure, Query, Session};
use sse::{SseEvent, SseReader};

/// How long a stream may be silent: a server says something every 15 seconds.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// How long to stay away where the server says nothing else, in milliseconds.
const RETRY_MS: u64 = 2_000;
/// How long to stay away at most, in milliseconds.
const RETRY_MS_MAX: u64 = 30_000;

#[derive(Debug, Args)]
pub(crate) struct EventsArguments {
    /// Of this queue only.
    #[arg(long, value_parser = queue_name)]
    queue: Option<String>,
    /// Those after the event of this number, as far as the server still has them.
    #[arg(long, value_name = "N")]
    after: Option<u64>,
    /// Ends after so many events.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    asking: Asking,
}

pub(crate) fn run(arguments: EventsArguments) -> ExitCode {
    let EventsArguments { queue, after, count, asking } = arguments;
    asking.run(async |session| {
        let query: Query = queue.into_iter().map(|queue| ("queue", queue)).collect();
        let mut tail = Tail { session, query, after: after.map(|after| after.to_string()), left: count };
        tail.run().await
    })
}

/// A reader that comes back where it was.
struct Tail<'a> {
    session: &'a Session,
    query: Query,
    after: Option<String>,
    left: Option<u64>,
}

impl Tail<'_> {
    /// Reads until enough has come. Who was cut off comes back; who was never let in, or is not any more, does not.
    async fn run(&mut self) -> Result<(), Failure> {
        let mut stream = self.open().await?;
        let mut away_ms = RETRY_MS;
        loop {
            if self.read(stream, &mut away_ms).await? {
                return Ok(());
            }
            let from = self.session.remote.base();
            self.session.output.say(&format!("the stream from {from} ended; coming back"));
            stream = loop {
                pause(Millis::new(away_ms.min(RETRY_MS_MAX))).await;
                match self.open().await {
                    Ok(stream) => break stream,
                    Err(failure) if failure.exit() == Exit::Unreachable => {}
                    Err(failure) => return Err(failure),
                }
            };
        }
    }

    async fn open(&self) -> Result<Response, Failure> {
        let mut request = self.session.remote.endless(Method::GET, &["v1", "events"], &self.query);
        if let Some(after) = &self.after {
            request = request.header("last-event-id", after);
        }
        self.session.remote.response(request).await
    }

    /// Prints what comes; says whether that is enough, or the stream just ended.
    async fn read(&mut self, mut stream: Response, away_ms: &mut u64) -> Result<bool, Failure> {
        let mut reader = SseReader::default();
        while let Ok(Ok(Some(piece))) = tokio::time::timeout(SILENCE_MAX, stream.chunk()).await {
            let wrong = |_| Failure::Failed("the server sends what are no events".to_owned());
            for event in reader.take(&piece).map_err(wrong)? {
                self.after = Some(event.id.clone()).filter(|id| !id.is_empty()).or(self.after.take());
                print(&self.session.output, &event)?;
                if event.name != "lagged" && self.is_enough() {
                    return Ok(true);
                }
            }
            *away_ms = reader.retry_ms.unwrap_or(*away_ms);
        }
        Ok(false)
    }

    fn is_enough(&mut self) -> bool {
        self.left = self.left.map(|left| left - 1);
        self.left == Some(0)
    }
}

fn print(output: &Output, event: &SseEvent) -> Result<(), Failure> {
    let id = &event.id;
    match output.format {
        Format::Id => output.line(id),
        Format::Table if event.name == "lagged" => {
            output.say(&format!("events were missed; going on after {id}"));
            Ok(())
        }
        Format::Table => output.line(&line(event)),
        format => {
            let json: Box<RawValue> = serde_json::from_str(&event.data)
                .map_err(|_| Failure::Failed("the server sends events that are no JSON".to_owned()))?;
            let tree = numbered(event, Tree::of(&json));
            match format {
                Format::Yaml => output.print(&Tree::List(vec![tree]).yaml()),
                _ => output.line(&tree.compact()),
            }
        }
    }
}

/// The server's object, with its number before everything: `--after` takes it.
fn numbered(event: &SseEvent, tree: Tree) -> Tree {
    let Tree::Map(fields) = tree else { return tree };
    let mut all =
        vec![("id".to_owned(), Tree::Scalar(event.id.parse::<u64>().unwrap_or_default().to_string()))];
    if !fields.iter().any(|(name, _)| name == "type") {
        all.push(("type".to_owned(), Tree::Scalar(serde_json::Value::from(&*event.name).to_string())));
    }
    all.extend(fields);
    Tree::Map(all)
}

/// An event on one line. Columns have fixed widths: nobody knows what comes next.
fn line(event: &SseEvent) -> String {
    let Ok(Event { r#type, timestamp, payload }) = serde_json::from_str(&event.data) else {
        return format!("{:>6}  {}  {}", event.id, printable(&event.name), printable(&event.data));
    };
    let what = match (payload.action.as_ref().or(payload.act.as_ref()), &payload.from, &payload.to) {
        (Some(action), ..) => action.clone(),
        (None, Some(from), Some(to)) => {
            format!("{from} to {to}: {}", payload.reason.as_deref().unwrap_or("-"))
        }
        _ => counted(payload.count, "message"),
    };
    let dead = if payload.dlq_count > 0 { format!(", {} dead", payload.dlq_count) } else { String::new() };
    let line = format!(
        "{:>6}  {}  {type:<11}  {}  {what}{dead} by {}",
        event.id,
        Time(timestamp),
        payload.queue.as_deref().unwrap_or("-"),
        payload.triggered_by,
        r#type = r#type
    );
    printable(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent { id: "5".to_owned(), name: name.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn an_event_is_one_line() {
        let requeue = r#"{"type":"requeue","timestamp":1704067200000,"payload":{"queue":"orders","count":3,"dlq_count":1,"triggered_by":"scheduler"}}"#;
        let told = "     5  2024-01-01T00:00:00.000Z  requeue      orders  3 messages, 1 dead by scheduler";
        assert_eq!(line(&event("requeue", requeue)), told);
        let breaker = r#"{"type":"breaker","timestamp":0,"payload":{"queue":"q","count":0,"dlq_count":0,"triggered_by":"scheduler","from":"closed","to":"open","reason":"a\nb"}}"#;
        let told = "     5  1970-01-01T00:00:00.000Z  breaker      q  closed to open: a\\nb by scheduler";
        assert_eq!(line(&event("breaker", breaker)), told);
        let subscription = r#"{"type":"subscription","timestamp":0,"payload":{"queue":"bus.sub.mail","count":0,"dlq_count":0,"triggered_by":"operator","act":"rotated","subscription":"mail"}}"#;
        let told = "     5  1970-01-01T00:00:00.000Z  subscription  bus.sub.mail  rotated by operator";
        assert_eq!(line(&event("subscription", subscription)), told);
        let counted =
            r#"{"type":"ack","timestamp":0,"payload":{"count":2,"dlq_count":0,"triggered_by":"consumer"}}"#;
        let told = "     5  1970-01-01T00:00:00.000Z  ack          -  2 messages by consumer";
        assert_eq!(line(&event("ack", counted)), told, "for who shows no key");
        assert_eq!(line(&event("new", "{}")), "     5  new  {}");
    }

    #[test]
    fn programs_get_the_number_with_it() {
        let tree = |text: &str| serde_json::from_str(text).unwrap();
        let lagged = numbered(&event("lagged", ""), tree(r#"{"after":4}"#));
        assert_eq!(lagged.compact(), r#"{"id":5,"type":"lagged","after":4}"#);
        let ack = numbered(&event("ack", ""), tree(r#"{"type":"ack"}"#));
        assert_eq!(ack.compact(), r#"{"id":5,"type":"ack"}"#);
    }
}
