//! The client: one method for each call of the API.

use std::time::Duration;

use redrive_wire::v1;
use tokio::time::Instant;
use tonic::{Response, Status};

use crate::backoff::Backoff;
use crate::connect::{Api, ClientBuilder};
use crate::error::{CallError, EnqueueError, LeaseError, QueueError, Rejected, SettleError};
use crate::events::Events;
use crate::limits::millis;
use crate::message::{Lane, Message, NewMessage};
use crate::queue::{Queue, QueueSettings, Stats};
use crate::settle::{self, Refusal, Settled, Verdict};
use crate::transport::Transport;
use crate::worker::{Running, Worker};

/// The first wait before a call is tried again, and the longest.
const RETRY_WAITS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// A client of a server. Clones share the connection.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use redrive_client::{Client, NewMessage};
///
/// let client = Client::builder("http://127.0.0.1:7400").build()?;
/// let enqueued = client.enqueue("emails", NewMessage::json("hello")?).await?;
/// println!("{}", enqueued.id);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    api: Api,
    patience: Duration,
}

/// A message that is in its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enqueued {
    /// Its id; that of the first one where it is a duplicate.
    pub id: String,
    /// Whether there was one with its dedup key or its id already.
    pub duplicate: bool,
}

/// How messages are leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseOptions {
    /// How many at most, 1 to 1000.
    pub limit: u32,
    /// Who asks.
    pub consumer: String,
    /// How long each is leased; as long as message or queue say, where nothing is said.
    pub lease_time: Option<Duration>,
    /// How long to wait where nothing is ready.
    pub wait: Duration,
    /// From which lane.
    pub lane: Lane,
}

impl Default for LeaseOptions {
    fn default() -> Self {
        let consumer = "redrive-client".to_owned();
        Self { limit: 1, consumer, lease_time: None, wait: Duration::ZERO, lane: Lane::Shared }
    }
}

/// What may be done after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeat {
    /// Also where it may have happened: twice is once.
    Always,
    /// Only where nothing happened.
    IfNothingHappened,
}

impl Client {
    /// A client of the server at this address.
    pub fn builder(url: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(url)
    }

    pub(crate) fn new(api: Api, patience: Duration) -> Self {
        Self { api, patience }
    }

    pub(crate) fn api(&self) -> Api {
        self.api.clone()
    }

    /// Calls until there is an answer, or an error that another try does not mend, or patience has ended. Answers also
    /// whether the call was repeated after it may have happened.
    async fn call<T, F>(&self, repeat: Repeat, call: impl Fn(Api) -> F) -> Result<(T, bool), Status>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let end = Instant::now() + self.patience;
        let mut backoff = Backoff::new(RETRY_WAITS.0, RETRY_WAITS.1);
        let mut doubtful = false;
        loop {
            let status = match call(self.api()).await {
                Ok(answer) => return Ok((answer.into_inner(), doubtful)),
                Err(status) => status,
            };
            let error = CallError::from(status.clone());
            let again = error.is_retryable() || (repeat == Repeat::Always && error.is_outcome_unknown());
            doubtful |= error.is_outcome_unknown();
            let next = Instant::now() + backoff.next();
            if !again || next > end {
                return Err(status);
            }
            tokio::time::sleep_until(next).await;
        }
    }

    /// Hands a message over. It is durable, as far as the server promises, when this returns.
    pub async fn enqueue(&self, queue: &str, message: NewMessage) -> Result<Enqueued, EnqueueError> {
        let mut results = self.enqueue_all(queue, vec![message]).await?;
        let lost = || EnqueueError::Call(Status::internal("an answer without a result").into());
        results.pop().ok_or_else(lost)?.map_err(Into::into)
    }

    /// Hands messages over, up to a thousand, each with an outcome of its own.
    pub async fn enqueue_all(
        &self,
        queue: &str,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Result<Enqueued, Rejected>>, EnqueueError> {
        let named = |message: NewMessage| {
            let id = message.id.clone().unwrap_or_else(new_id);
            v1::NewMessage { id, ..message.into() }
        };
        let messages: Vec<v1::NewMessage> = messages.into_iter().map(named).collect();
        let request = v1::EnqueueRequest { queue: queue.to_owned(), messages, all_or_nothing: false };
        let call = |mut api: Api| {
            let request = request.clone();
            async move { api.enqueue(request).await }
        };
        // Who repeats the enqueue of a message that has an id is told that it is there.
        let named = request.messages.iter().all(|message| !message.id.is_empty());
        let repeat = if named { Repeat::Always } else { Repeat::IfNothingHappened };
        let (answer, doubtful) = self.call(repeat, call).await?;
        let ids = request.messages.iter().map(|message| &message.id);
        let one = |(result, id): (v1::EnqueueResult, &String)| {
            if result.code.is_empty() {
                let own = doubtful && result.id == *id;
                return Ok(Enqueued { duplicate: result.duplicate && !own, id: result.id });
            }
            Err(Rejected { code: result.code, detail: result.detail, retryable: result.retryable })
        };
        Ok(answer.results.into_iter().zip(ids).map(one).collect())
    }

    /// Takes messages. Each is settled with its receipt before its lease runs out, or it is handed out again.
    pub async fn lease(&self, queue: &str, options: LeaseOptions) -> Result<Vec<Message>, LeaseError> {
        let request = v1::LeaseRequest {
            queue: queue.to_owned(),
            limit: options.limit,
            consumer: options.consumer,
            lease_ms: options.lease_time.map(millis),
            wait_ms: millis(options.wait),
            lane: v1::Lane::from(options.lane).into(),
            ..v1::LeaseRequest::default()
        };
        // Messages that were handed out in an answer that was lost stay leased: another call would take more.
        let call = |mut api: Api| {
            let request = request.clone();
            async move { api.lease(request).await }
        };
        let (answer, _) = self.call(Repeat::IfNothingHappened, call).await?;
        Ok(answer.messages.into_iter().map(Message::from).collect())
    }

    async fn settle<F>(&self, call: impl Fn(Api) -> F) -> Result<(Settled, bool), SettleError>
    where
        F: Future<Output = Result<Response<v1::SettleResponse>, Status>>,
    {
        // A receipt settles once.
        let (answer, doubtful) = self.call(Repeat::Always, call).await?;
        let result = answer.results.into_iter().next();
        let result = result.ok_or_else(|| Status::internal("an answer without a result"))?;
        Ok((result.into(), doubtful))
    }

    /// The work is done. That it was done before is no error where the first answer was lost.
    pub async fn ack(&self, receipt: &str) -> Result<(), SettleError> {
        let call = |mut api: Api| {
            let items = vec![v1::Ack { receipt: receipt.to_owned() }];
            async move { api.ack(v1::AckRequest { items }).await }
        };
        let (settled, doubtful) = self.settle(call).await?;
        match settled.refusal {
            None => Ok(()),
            Some(Refusal::NotFound) if doubtful => Ok(()),
            Some(refusal) => Err(refusal.into()),
        }
    }

    /// The work failed: the queue's policy judges what becomes of it, not before `delay` where one is given.
    pub async fn nack(
        &self,
        receipt: &str,
        error: &str,
        delay: Option<Duration>,
    ) -> Result<Verdict, SettleError> {
        let call = |mut api: Api| {
            let items = vec![settle::nack(receipt.to_owned(), error.to_owned(), delay)];
            async move { api.nack(v1::NackRequest { items }).await }
        };
        verdict(self.settle(call).await?.0)
    }

    /// The work takes longer: the lease ends `time` from now, and not before it would have. Answers the new deadline in
    /// milliseconds since the Unix epoch.
    pub async fn extend(&self, receipt: &str, time: Duration) -> Result<u64, SettleError> {
        let call = |mut api: Api| {
            let lease_ms = Some(millis(time));
            let items = vec![v1::Extend { receipt: receipt.to_owned(), lease_ms, checkpoint: None }];
            async move { api.extend(v1::ExtendRequest { items }).await }
        };
        let (settled, _) = self.settle(call).await?;
        match settled.refusal {
            None => Ok(settled.deadline_ms.unwrap_or_default()),
            Some(refusal) => Err(refusal.into()),
        }
    }

    /// The message goes back unharmed, with its attempt refunded.
    pub async fn release(&self, receipt: &str, delay: Option<Duration>) -> Result<Verdict, SettleError> {
        let call = |mut api: Api| {
            let items = vec![settle::release(receipt.to_owned(), delay)];
            async move { api.release(v1::ReleaseRequest { items }).await }
        };
        verdict(self.settle(call).await?.0)
    }

    /// The work must never be tried again.
    pub async fn bury(&self, receipt: &str, reason: &str) -> Result<Verdict, SettleError> {
        let call = |mut api: Api| {
            let items = vec![v1::Bury { receipt: receipt.to_owned(), error: reason.to_owned() }];
            async move { api.bury(v1::BuryRequest { items }).await }
        };
        verdict(self.settle(call).await?.0)
    }

    /// Makes a queue.
    pub async fn create_queue(&self, name: &str, settings: QueueSettings) -> Result<Queue, QueueError> {
        let call = |mut api: Api| {
            let config = Some(settings.clone().into());
            let request = v1::CreateQueueRequest { name: name.to_owned(), config };
            async move { api.create_queue(request).await }
        };
        Ok(self.call(Repeat::IfNothingHappened, call).await?.0.into())
    }

    /// Changes the settings of a queue: what is not set follows the defaults again.
    pub async fn update_queue(&self, name: &str, settings: QueueSettings) -> Result<Queue, QueueError> {
        let call = |mut api: Api| {
            let config = Some(settings.clone().into());
            let request = v1::UpdateQueueRequest { name: name.to_owned(), config, expected_version: None };
            async move { api.update_queue(request).await }
        };
        Ok(self.call(Repeat::Always, call).await?.0.into())
    }

    /// A queue.
    pub async fn queue(&self, name: &str) -> Result<Queue, QueueError> {
        let call = |mut api: Api| {
            let request = v1::GetQueueRequest { name: name.to_owned() };
            async move { api.get_queue(request).await }
        };
        Ok(self.call(Repeat::Always, call).await?.0.into())
    }

    /// Queues by name, after the one given, up to a thousand.
    pub async fn queues(&self, after: &str, limit: u32) -> Result<Vec<Queue>, QueueError> {
        let call = |mut api: Api| {
            let request = v1::ListQueuesRequest { after: after.to_owned(), limit };
            async move { api.list_queues(request).await }
        };
        Ok(self.call(Repeat::Always, call).await?.0.queues.into_iter().map(Queue::from).collect())
    }

    /// Deletes a queue; by force, its messages with it.
    pub async fn delete_queue(&self, name: &str, force: bool) -> Result<(), QueueError> {
        let call = |mut api: Api| {
            let request = v1::DeleteQueueRequest { name: name.to_owned(), force };
            async move { api.delete_queue(request).await }
        };
        self.call(Repeat::IfNothingHappened, call).await?;
        Ok(())
    }

    /// Hands nothing more out of a queue, until it is resumed.
    pub async fn pause_queue(&self, name: &str) -> Result<Queue, QueueError> {
        let call = |mut api: Api| {
            let request = v1::PauseQueueRequest { name: name.to_owned(), key: None, until_ms: None };
            async move { api.pause_queue(request).await }
        };
        Ok(self.call(Repeat::Always, call).await?.0.into())
    }

    /// Ends a pause.
    pub async fn resume_queue(&self, name: &str) -> Result<Queue, QueueError> {
        let call = |mut api: Api| {
            let request = v1::ResumeQueueRequest { name: name.to_owned(), key: None };
            async move { api.resume_queue(request).await }
        };
        Ok(self.call(Repeat::Always, call).await?.0.into())
    }

    /// What is in a queue.
    pub async fn stats(&self, queue: &str) -> Result<Stats, QueueError> {
        let call = |mut api: Api| {
            let request = v1::QueueStatsRequest { name: queue.to_owned() };
            async move { api.queue_stats(request).await }
        };
        Ok(self.call(Repeat::Always, call).await?.0.into())
    }

    /// Events as they happen, of one queue or of all. The connection is made again where it is lost, and goes on where it
    /// was.
    pub fn events(&self, queue: Option<&str>) -> Events {
        Events::new(self.clone(), queue.unwrap_or_default().to_owned())
    }

    /// Starts a worker on this server.
    pub fn run(&self, worker: Worker) -> Running {
        worker.start(std::sync::Arc::new(self.clone()) as std::sync::Arc<dyn Transport>)
    }
}

fn verdict(settled: Settled) -> Result<Verdict, SettleError> {
    match settled.refusal {
        None => Ok(settled.verdict),
        Some(refusal) => Err(refusal.into()),
    }
}

/// An id for a message that has none: without one, an enqueue could not be repeated.
#[expect(clippy::disallowed_methods, reason = "a UUIDv7 begins with the time at which it was made")]
fn new_id() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let mut random = [0; 10];
    if getrandom::fill(&mut random).is_err() {
        // The server makes one; the call is not repeated then.
        return String::new();
    }
    uuid::Builder::from_unix_timestamp_millis(millis(now), &random).into_uuid().to_string()
}
