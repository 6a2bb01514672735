//! Events as they happen.

use std::time::Duration;

use redrive_wire::v1;
use tonic::Streaming;

use crate::backoff::Backoff;
use crate::client::Client;
use crate::error::CallError;

/// The first wait before the connection is made again, and the longest.
const RECONNECT_WAITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number; larger for every later one.
    pub offset: u64,
    /// `enqueue`, `lease`, `ack`, `nack`, `requeue`, `move_to_dlq`, `breaker` or `queue`; `lagged` where events were
    /// missed.
    pub kind: String,
    /// When, in milliseconds since the Unix epoch.
    pub timestamp_ms: u64,
    /// In which queue.
    pub queue: String,
    /// How often.
    pub count: u64,
    /// How many of them are dead letters now.
    pub dlq_count: u64,
    /// Who caused it: `consumer`, `operator`, `scheduler` and so on.
    pub triggered_by: String,
}

impl From<v1::Event> for Event {
    fn from(event: v1::Event) -> Self {
        Self {
            offset: event.offset,
            kind: event.r#type,
            timestamp_ms: event.timestamp_ms,
            queue: event.queue,
            count: event.count,
            dlq_count: event.dlq_count,
            triggered_by: event.triggered_by,
        }
    }
}

/// Events of one queue, or of all.
#[derive(Debug)]
pub struct Events {
    client: Client,
    queue: String,
    after: Option<u64>,
    stream: Option<Streaming<v1::Event>>,
    backoff: Backoff,
}

impl Events {
    pub(crate) fn new(client: Client, queue: String) -> Self {
        let backoff = Backoff::new(RECONNECT_WAITS.0, RECONNECT_WAITS.1);
        Self { client, queue, after: None, stream: None, backoff }
    }

    /// Goes on behind an event that was seen before.
    #[must_use]
    pub fn after(self, offset: u64) -> Self {
        Self { after: Some(offset), ..self }
    }

    /// The next event. Fails only where another try does not help; may be dropped and called again.
    pub async fn next(&mut self) -> Result<Event, CallError> {
        loop {
            let Some(stream) = &mut self.stream else {
                self.connect().await?;
                continue;
            };
            match stream.message().await {
                Ok(Some(event)) => {
                    self.backoff.reset();
                    self.after = Some(event.offset);
                    return Ok(event.into());
                }
                Ok(None) => self.lose().await,
                Err(status) => {
                    let error = CallError::from(status);
                    if !(error.is_retryable() || error.is_outcome_unknown()) {
                        return Err(error);
                    }
                    self.lose().await;
                }
            }
        }
    }

    async fn lose(&mut self) {
        self.stream = None;
        self.backoff.wait().await;
    }

    /// Begins to listen, so that nothing is missed that happens after this returns.
    pub async fn connect(&mut self) -> Result<(), CallError> {
        let mut api = self.client.api();
        let request = v1::WatchEventsRequest { queue: self.queue.clone(), after: self.after };
        match api.watch_events(request).await {
            Ok(stream) => {
                self.stream = Some(stream.into_inner());
                Ok(())
            }
            Err(status) => {
                let error = CallError::from(status);
                if !(error.is_retryable() || error.is_outcome_unknown()) {
                    return Err(error);
                }
                self.lose().await;
                Ok(())
            }
        }
    }
}
