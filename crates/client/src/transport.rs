//! What a worker needs of a broker: a line on which messages come and settlements go.
//!
//! A worker knows nothing else of where its messages come from, so that the same one runs over gRPC and over a broker in
//! its own process.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use tokio::sync::mpsc;

use crate::error::LeaseError;
use crate::message::{Lane, Message};
use crate::settle::{Settle, Settled};

/// Where a worker's messages come from.
#[async_trait]
pub trait Transport: fmt::Debug + Send + Sync {
    /// Opens a line. Leases that were taken on one line can be settled on another.
    async fn consume(&self, ask: &Ask) -> Result<Line, LeaseError>;
}

/// What a line is opened for.
#[derive(Debug, Clone)]
pub struct Ask {
    /// From which queue.
    pub queue: String,
    /// Who asks.
    pub consumer: String,
    /// How many messages of this line may be unsettled at a time; 0 is none for now.
    pub credit: u32,
    /// How long each is leased.
    pub lease_time: Duration,
    /// From which lane.
    pub lane: Lane,
    /// Only these types; all where there are none.
    pub types: Vec<String>,
    /// Only these sources; all where there are none.
    pub sources: Vec<String>,
}

/// An open line. It ends when `say` is dropped.
pub struct Line {
    /// To the broker.
    pub say: mpsc::Sender<Say>,
    /// From the broker; the end of it, or an error, is the end of the line.
    pub heard: BoxStream<'static, Result<Heard, LeaseError>>,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("say", &self.say).finish_non_exhaustive()
    }
}

/// What a worker says.
#[derive(Debug, Clone)]
pub enum Say {
    /// Another number of messages that may be unsettled at a time.
    Credit(u32),
    /// What became of messages, at most a thousand.
    Settle(Vec<Settle>),
}

/// What a worker hears.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    /// Messages that were handed out.
    pub messages: Vec<Message>,
    /// What became of settlements.
    pub settled: Vec<Settled>,
}
