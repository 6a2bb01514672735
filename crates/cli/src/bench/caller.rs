//! One who uses the server over gRPC: enqueues on one connection, consumes and acks on another.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use redrive_wire::v1;
use redrive_wire::v1::consume_request::Request;
use redrive_wire::v1::redrive_client::RedriveClient;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Streaming};

use super::measure::{Latencies, Stopwatch};

/// Larger than the largest answer.
const ANSWER_BYTES_MAX: usize = 512 << 20;
/// What may be under way to this client, on a stream and in all.
const WINDOW_BYTES: u32 = 4 << 20;
/// The largest piece in which an answer may come: a batch in one.
const FRAME_BYTES_MAX: u32 = 1 << 20;
/// How long a server may need for an answer before a bench gives up.
const PATIENCE: Duration = Duration::from_mins(1);

/// A caller with a queue of its own.
#[derive(Debug)]
pub(crate) struct Caller {
    client: RedriveClient<Channel>,
    requests: mpsc::Sender<v1::ConsumeRequest>,
    answers: Streaming<v1::ConsumeResponse>,
    queue: String,
    body: Vec<u8>,
    pub(crate) latencies: Steps,
}

/// How long each step took.
#[derive(Debug)]
pub(crate) struct Steps {
    /// From the enqueue call to its answer.
    pub(crate) enqueue: Latencies,
    /// From the enqueue call to the delivery of its last message.
    pub(crate) deliver: Latencies,
    /// From the ack to its answer.
    pub(crate) ack: Latencies,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self { enqueue: Latencies::new(), deliver: Latencies::new(), ack: Latencies::new() }
    }

    pub(crate) fn join(&mut self, other: &Self) {
        self.enqueue.join(&other.enqueue);
        self.deliver.join(&other.deliver);
        self.ack.join(&other.ack);
    }

    /// As figures of a row.
    pub(crate) fn figures(&self) -> [(&'static str, f64); 6] {
        [
            ("enqueue p50 ms", self.enqueue.percentile_ms(50.0)),
            ("enqueue p99 ms", self.enqueue.percentile_ms(99.0)),
            ("deliver p50 ms", self.deliver.percentile_ms(50.0)),
            ("deliver p99 ms", self.deliver.percentile_ms(99.0)),
            ("ack p50 ms", self.ack.percentile_ms(50.0)),
            ("ack p99 ms", self.ack.percentile_ms(99.0)),
        ]
    }
}

/// A connection with room for large answers.
pub(crate) async fn connect(url: &str) -> anyhow::Result<RedriveClient<Channel>> {
    let endpoint = Endpoint::from_shared(url.to_owned())
        .context("--url")?
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES_MAX);
    let channel = endpoint.connect().await.with_context(|| format!("connecting to {url}"))?;
    Ok(RedriveClient::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX))
}

impl Caller {
    /// Connects, makes the queue where it is not there, and opens a stream with credit for a batch.
    pub(crate) async fn connect(
        url: &str,
        queue: String,
        batch: usize,
        body_bytes: usize,
    ) -> anyhow::Result<Self> {
        let mut client = connect(url).await?;
        match client.create_queue(v1::CreateQueueRequest { name: queue.clone(), config: None }).await {
            Err(status) if status.code() != Code::AlreadyExists => bail!("creating `{queue}`: {status}"),
            _ => {}
        }
        let (requests, receiver) = mpsc::channel(4);
        let start = v1::ConsumeStart {
            queue: queue.clone(),
            credit: u32::try_from(batch).unwrap_or(u32::MAX),
            consumer: "redrive-bench".to_owned(),
            ..v1::ConsumeStart::default()
        };
        requests.send(v1::ConsumeRequest { request: Some(Request::Start(start)) }).await?;
        let mut consumer = connect(url).await?;
        let answers = consumer.consume(ReceiverStream::new(receiver)).await?.into_inner();
        let body = (0..body_bytes).map(|at| b'a' + u8::try_from(at % 26).unwrap_or(0)).collect();
        Ok(Self { client, requests, answers, queue, body, latencies: Steps::new() })
    }

    /// Enqueues so many messages, takes them from the stream, and acks them there.
    pub(crate) async fn life_cycle(&mut self, count: usize) -> anyhow::Result<()> {
        let message = || v1::NewMessage {
            body: self.body.clone().into(),
            r#type: "invoice.paid".to_owned(),
            source: "bench".to_owned(),
            ..v1::NewMessage::default()
        };
        let messages = (0..count).map(|_| message()).collect();
        let request = v1::EnqueueRequest { queue: self.queue.clone(), messages, all_or_nothing: false };
        let watch = Stopwatch::start();
        let client = &mut self.client;
        let enqueue = async {
            let answer = tokio::time::timeout(PATIENCE, client.enqueue(request)).await;
            let results = answer.context("no answer to an enqueue")??.into_inner().results;
            match results.iter().find(|result| !result.code.is_empty()) {
                Some(refused) => Err(anyhow!("not enqueued: {}: {}", refused.code, refused.detail)),
                None => Ok(watch.elapsed()),
            }
        };
        let answers = &mut self.answers;
        let receive = async {
            let mut acks = Vec::with_capacity(count);
            while acks.len() < count {
                let answer = tokio::time::timeout(PATIENCE, answers.message()).await;
                let answer = answer.context("nothing is delivered")??.context("the stream has ended")?;
                acks.extend(answer.messages.into_iter().map(|message| v1::Ack { receipt: message.receipt }));
            }
            anyhow::Ok((acks, watch.elapsed()))
        };
        let (enqueued, (acks, delivered)) = tokio::try_join!(enqueue, receive)?;
        self.latencies.enqueue.add(enqueued);
        self.latencies.deliver.add(delivered);
        let watch = Stopwatch::start();
        self.ack(acks).await?;
        self.latencies.ack.add(watch.elapsed());
        Ok(())
    }

    async fn ack(&mut self, acks: Vec<v1::Ack>) -> anyhow::Result<()> {
        let mut open = acks.len();
        let settle = v1::ConsumeSettle { acks, ..v1::ConsumeSettle::default() };
        self.requests.send(v1::ConsumeRequest { request: Some(Request::Settle(settle)) }).await?;
        while open > 0 {
            let answer = tokio::time::timeout(PATIENCE, self.answers.message()).await;
            let answer = answer.context("nothing is settled")??.context("the stream has ended")?;
            if let Some(refused) = answer.settled.iter().find(|settled| !settled.code.is_empty()) {
                bail!("not acked: {}", refused.code);
            }
            open = open.saturating_sub(answer.settled.len());
        }
        Ok(())
    }
}
