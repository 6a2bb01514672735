//! What a handler knows of its message, and what it can do about its lease.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::limits::{CHECKPOINT_BYTES_MAX, LEASE_TIME_MAX, millis};
use crate::message::Message;

/// Why a lease was not extended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NotExtended {
    /// The lease is lost.
    #[error("the lease is lost")]
    LeaseLost,
    /// The worker has ended.
    #[error("the worker has ended")]
    Ended,
    /// The checkpoint is too large.
    #[error("checkpoint: at most {CHECKPOINT_BYTES_MAX} bytes, not {0}")]
    CheckpointTooLarge(usize),
    /// The time is too long.
    #[error("time: at most seven days")]
    TooLong,
}

/// Somebody wants a lease to be extended.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) receipt: Arc<str>,
    pub(super) time: Option<Duration>,
    pub(super) checkpoint: Option<Bytes>,
    pub(super) answer: oneshot::Sender<Result<(), NotExtended>>,
}

/// What a handler knows of its message. Clones are of the same lease.
#[derive(Clone)]
pub struct Context(Arc<Known>);

struct Known {
    message: Message,
    receipt: Arc<str>,
    received: Instant,
    /// When the lease ends, in milliseconds after it was received.
    ends_ms: AtomicU64,
    cancelled: CancellationToken,
    lost: AtomicBool,
    wishes: mpsc::Sender<Wish>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("queue", &self.0.message.queue)
            .field("id", &self.0.message.id)
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}

impl Context {
    pub(super) fn new(
        message: Message,
        received: Instant,
        time: Duration,
        wishes: mpsc::Sender<Wish>,
    ) -> Self {
        let receipt = Arc::from(message.receipt.as_str());
        Self(Arc::new(Known {
            message,
            receipt,
            received,
            ends_ms: AtomicU64::new(millis(time)),
            cancelled: CancellationToken::new(),
            lost: AtomicBool::new(false),
            wishes,
        }))
    }

    /// The message.
    pub fn message(&self) -> &Message {
        &self.0.message
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.0.message.attempts
    }

    /// The fencing token: larger for every later lease of the message. Who writes somewhere else hands it over, and what
    /// is written there with a larger one is not overwritten.
    pub fn fencing_token(&self) -> u64 {
        self.0.message.lease_id
    }

    /// When the lease ends, unless it is extended; the worker does that by itself.
    pub fn deadline(&self) -> Instant {
        self.0.received + Duration::from_millis(self.0.ends_ms.load(Ordering::Relaxed))
    }

    /// Completes when the lease is lost, when the handler's time is up, or when the worker is told to end. Where the lease
    /// is lost or the time is up the handler is dropped, too: this is for what it has started elsewhere. When the worker ends, a
    /// handler still has the grace time.
    pub async fn cancelled(&self) {
        self.0.cancelled.cancelled().await;
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.is_cancelled()
    }

    /// The same as a token, for what takes one.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.0.cancelled
    }

    /// Whether the lease is lost: somebody else may work on the message.
    pub fn is_lease_lost(&self) -> bool {
        self.0.lost.load(Ordering::SeqCst)
    }

    /// Keeps where to go on from, for whoever tries next; at most 4 KiB. It is durable when this returns.
    pub async fn checkpoint(&self, bytes: impl Into<Bytes>) -> Result<(), NotExtended> {
        let bytes = bytes.into();
        if bytes.len() > CHECKPOINT_BYTES_MAX {
            return Err(NotExtended::CheckpointTooLarge(bytes.len()));
        }
        self.wish(None, Some(bytes)).await
    }

    /// Extends the lease to this much time from now. Nobody has to: the worker does it while the handler runs. It is for
    /// work that goes on where the worker cannot.
    pub async fn extend(&self, time: Duration) -> Result<(), NotExtended> {
        if time > LEASE_TIME_MAX {
            return Err(NotExtended::TooLong);
        }
        self.wish(Some(time), None).await
    }

    async fn wish(&self, time: Option<Duration>, checkpoint: Option<Bytes>) -> Result<(), NotExtended> {
        let (answer, answered) = oneshot::channel();
        let wish = Wish { receipt: Arc::clone(&self.0.receipt), time, checkpoint, answer };
        self.0.wishes.send(wish).await.map_err(|_| NotExtended::Ended)?;
        answered.await.unwrap_or(Err(NotExtended::Ended))
    }

    pub(super) fn receipt(&self) -> &Arc<str> {
        &self.0.receipt
    }

    pub(super) fn cancel(&self) {
        self.0.cancelled.cancel();
    }

    pub(super) fn lose(&self) {
        self.0.lost.store(true, Ordering::SeqCst);
        self.cancel();
    }

    pub(super) fn set_deadline(&self, deadline: Instant) {
        let ends = millis(deadline.saturating_duration_since(self.0.received));
        self.0.ends_ms.store(ends, Ordering::Relaxed);
    }
}
