//! Messages out of a queue and into one, a line of JSON each.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use redrive_broker::{Broker, BrokerError, NewMessage, TraceParent};
use redrive_core::access::{Deed, Use};
use redrive_core::queue::QueueName;
use redrive_store::{EnqueueOutcome, Limit, ListRequest};
use redrive_wire as wire;

use super::Api;
use super::extract::{Caller, InQueue, Query, Traced, broken, parse};
use super::messages::ListQuery;
use super::problem::{Refusal, Refusals};
use crate::convert;

/// How many messages of an import go into the store at a time.
const IMPORT_BATCH: usize = 500;
/// The bytes of a batch: messages may be large.
const IMPORT_BATCH_BYTES: usize = 8 * 1024 * 1024;
/// The longest line: the largest message as base64, its headers, and what is around them.
const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many refusals are told.
const PROBLEMS_MAX: usize = 100;

/// Exports messages, a line of JSON each, in a form that can be imported: what producers wrote, without what happened
/// since.
#[utoipa::path(get, path = "/v1/queues/{queue}/messages/export", tag = "messages", operation_id = "export_messages",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue"), ListQuery),
    responses((status = 200, description = "A line for each message", body = wire::NewMessage,
        content_type = "application/x-ndjson"), Refusals))]
pub(crate) async fn export(
    caller: Caller,
    InQueue(queue): InQueue,
    Query(query): Query<ListQuery>,
) -> Result<Response, Refusal> {
    let request = ListRequest { limit: Limit::MAX, ..query.with_bodies()?.request(queue, &[])? };
    // The first page is read before anything is answered, so that a refusal can be one.
    let first = async |broker: Broker| match lines(&broker, request.clone()).await {
        Ok(lines) => Ok((lines, broker)),
        Err(error) => Err(error),
    };
    let (first, broker) = caller.act(Deed::ExportMessages, &request.queue, first).await?;
    let rest = stream::unfold(first.1.map(|next| (caller, broker, next)), |state| async move {
        let (caller, broker, request) = state?;
        let lines = match caller.is_let_in() {
            Ok(()) => lines(&broker, request).await,
            Err(ended) => Err(ended),
        };
        match lines {
            Ok((bytes, next)) => Some((Ok(bytes), next.map(|next| (caller, broker, next)))),
            // The connection is cut: a client must not take a part for the whole.
            Err(error) => {
                tracing::warn!(%error, "an export ended early");
                Some((Err(std::io::Error::other(error)), None))
            }
        }
    });
    let all = stream::once(async { Ok(first.0) }).chain(rest);
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((StatusCode::OK, kind, Body::from_stream(all)).into_response())
}

/// A page as lines, and the request for the next.
async fn lines(broker: &Broker, request: ListRequest) -> Result<(Bytes, Option<ListRequest>), BrokerError> {
    let page = broker.list(request.clone()).await?;
    let mut bytes = Vec::new();
    for message in &page.messages {
        let exported = convert::message::exported(message, page.at);
        if serde_json::to_writer(&mut bytes, &exported).is_ok() {
            bytes.push(b'\n');
        }
    }
    let next = page.next.map(|next| ListRequest { after: Some(next), ..request });
    Ok((bytes.into(), next))
}

/// Messages of an import on their way into the store.
struct Importer {
    caller: Caller,
    body_bytes_max: usize,
    queue: QueueName,
    request: Option<TraceParent>,
    line: u64,
    pending: Vec<(u64, NewMessage)>,
    pending_bytes: usize,
    imported: wire::Imported,
}

impl Importer {
    fn refuse(&mut self, line: u64, problem: &str) {
        self.imported.refused += 1;
        if self.imported.problems.len() < PROBLEMS_MAX {
            self.imported.problems.push(format!("line {line}: {problem}"));
        }
    }

    async fn take(&mut self, line: &[u8]) -> Result<(), Refusal> {
        self.line += 1;
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let read = parse::<wire::NewMessage>(line).and_then(|message| {
            let (queue, max) = (self.queue.clone(), self.body_bytes_max);
            convert::message::new_message(queue, message, max).map_err(Refusal::from)
        });
        match read {
            Ok(message) => {
                self.pending_bytes += line.len();
                self.pending.push((self.line, NewMessage { request: self.request, ..message }));
            }
            Err(refusal) => self.refuse(self.line, refusal.detail()),
        }
        if self.pending.len() >= IMPORT_BATCH || self.pending_bytes >= IMPORT_BATCH_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Refusal> {
        self.pending_bytes = 0;
        let (lines, messages): (Vec<u64>, Vec<NewMessage>) =
            std::mem::take(&mut self.pending).into_iter().unzip();
        if messages.is_empty() {
            return Ok(());
        }
        // An import may take long.
        self.caller.is_let_in()?;
        let outcomes = self.caller.enqueue(messages, false).await?;
        for (line, outcome) in lines.into_iter().zip(outcomes) {
            match outcome {
                Ok(EnqueueOutcome::Enqueued { .. }) => self.imported.imported += 1,
                Ok(EnqueueOutcome::Duplicate { .. }) => self.imported.duplicates += 1,
                Ok(EnqueueOutcome::Refused(refusal)) => self.refuse(line, &refusal.to_string()),
                Ok(EnqueueOutcome::Aborted) => self.refuse(line, "aborted"),
                Err(error) => self.refuse(line, &error.to_string()),
            }
        }
        Ok(())
    }
}

/// Imports messages, a line of JSON each. What was imported before a line that is wrong stays; the line is told.
#[utoipa::path(post, path = "/v1/queues/{queue}/messages/import", tag = "messages", operation_id = "import_messages",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue")),
    request_body(content = Option<wire::NewMessage>, content_type = "application/x-ndjson",
        description = "A message on each line"),
    responses((status = 200, description = "What came of it", body = wire::Imported), Refusals))]
pub(crate) async fn import(
    State(api): State<Api>,
    caller: Caller,
    InQueue(queue): InQueue,
    Traced(trace): Traced,
    body: Body,
) -> Result<axum::Json<wire::Imported>, Refusal> {
    caller.may(Use::Enqueue, &queue)?;
    let mut importer = Importer {
        caller,
        body_bytes_max: api.body_bytes_max,
        queue,
        request: trace,
        line: 0,
        pending: Vec::new(),
        pending_bytes: 0,
        imported: wire::Imported::default(),
    };
    let mut left = Vec::new();
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        // What was looked at is not looked at again, however small the pieces are.
        let (mut start, mut unseen) = (0, left.len());
        left.extend_from_slice(&piece.map_err(|error| broken(&error))?);
        while let Some(at) = left[unseen..].iter().position(|byte| *byte == b'\n') {
            let end = unseen + at + 1;
            importer.take(&left[start..end]).await?;
            (start, unseen) = (end, end);
        }
        left.drain(..start);
        if left.len() > LINE_BYTES_MAX {
            let detail = format!("line {}: is longer than {LINE_BYTES_MAX} bytes", importer.line + 1);
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE", detail));
        }
    }
    importer.take(&left).await?;
    importer.flush().await?;
    Ok(axum::Json(importer.imported))
}
