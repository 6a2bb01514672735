//! One lease that a worker holds, and what is known of it.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::context::{Context, NotExtended, Wish};
use super::outcome::Outcome;
use crate::settle::Settle;

/// How far a lease is.
#[derive(Debug)]
pub(super) enum Phase {
    /// Its handler has not started.
    Waiting,
    /// Its handler runs.
    Running(AbortHandle),
    /// Its handler has ended, and the broker has not confirmed what it said.
    Done(Outcome),
    /// It is lost, and its handler has not ended yet.
    Lost,
}

/// An extension that is to be asked for, or was.
#[derive(Debug, Default)]
pub(super) struct Extension {
    time: Option<Duration>,
    checkpoint: Option<Bytes>,
    answers: Vec<oneshot::Sender<Result<(), NotExtended>>>,
    /// When it was asked for.
    asked: Option<Instant>,
}

impl Extension {
    /// Two that were not asked for yet are one: the longer time, and the later checkpoint.
    fn join(&mut self, later: Self) {
        self.time = self.time.max(later.time);
        self.checkpoint = later.checkpoint.or(self.checkpoint.take());
        self.answers.extend(later.answers);
    }

    fn answer(self, what: Result<(), NotExtended>) {
        for answer in self.answers {
            // Whoever asked may have gone.
            answer.send(what).unwrap_or_default();
        }
    }
}

/// One lease.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) context: Context,
    pub(super) phase: Phase,
    /// On which line it was handed out.
    pub(super) line: u64,
    /// When it ends, by this machine's clock.
    pub(super) deadline: Instant,
    /// When it is to be extended.
    pub(super) extend_at: Instant,
    /// When it ends, by the broker's clock.
    broker_deadline_ms: u64,
    wished: Option<Extension>,
    asked: Option<Extension>,
}

impl Held {
    pub(super) fn new(context: Context, line: u64, now: Instant, lease: Duration) -> Self {
        Self {
            broker_deadline_ms: context.message().deadline_ms,
            context,
            phase: Phase::Waiting,
            line,
            deadline: now + lease,
            extend_at: now + lease / 3,
            wished: None,
            asked: None,
        }
    }

    /// Whether its end matters: somebody works on it, or will.
    pub(super) fn is_live(&self) -> bool {
        matches!(self.phase, Phase::Waiting | Phase::Running(_))
    }

    /// When something is to be done about it.
    pub(super) fn due(&self) -> Option<Instant> {
        self.is_live().then(|| self.extend_at.min(self.deadline))
    }

    /// Its third has passed: it is to be extended, unless that is under way.
    pub(super) fn third(&mut self, now: Instant, lease: Duration) {
        self.extend_at = now + lease / 3;
        if self.asked.is_none() && self.wished.is_none() {
            self.wished = Some(Extension::default());
        }
    }

    pub(super) fn wish(&mut self, wish: Wish) {
        let Wish { time, checkpoint, answer, .. } = wish;
        let wish = Extension { time, checkpoint, answers: vec![answer], asked: None };
        self.wished.get_or_insert_default().join(wish);
    }

    /// What is to be asked for now: one extension at a time.
    pub(super) fn ask(&mut self, now: Instant, lease: Duration) -> Option<Settle> {
        if self.asked.is_some() || !self.is_live() {
            return None;
        }
        let mut wish = self.wished.take()?;
        wish.asked = Some(now);
        let (time, checkpoint) = (wish.time.unwrap_or(lease).max(lease), wish.checkpoint.clone());
        wish.time = Some(time);
        self.asked = Some(wish);
        Some(Settle::Extend { receipt: self.context.receipt().to_string(), time, checkpoint })
    }

    /// It was extended: by as much as the broker's clock says, and no more than was asked for.
    pub(super) fn extended(&mut self, deadline_ms: u64) {
        let gained = Duration::from_millis(deadline_ms.saturating_sub(self.broker_deadline_ms));
        self.broker_deadline_ms = self.broker_deadline_ms.max(deadline_ms);
        if let Some(asked) = self.asked.take() {
            let latest = asked.asked.zip(asked.time).map(|(at, time)| at + time);
            let granted = self.deadline + gained;
            self.deadline = self.deadline.max(latest.map_or(granted, |latest| latest.min(granted)));
            self.context.set_deadline(self.deadline);
            asked.answer(Ok(()));
        }
    }

    /// The line on which something was asked is gone: it is asked again on the next.
    pub(super) fn ask_again(&mut self) {
        if let Some(mut asked) = self.asked.take() {
            if let Some(later) = self.wished.take() {
                asked.join(later);
            }
            self.wished = Some(asked);
        }
    }

    /// It is lost: whoever works on it is stopped. Says whether a handler has yet to end.
    pub(super) fn lose(&mut self) -> bool {
        self.context.lose();
        for extension in [self.asked.take(), self.wished.take()].into_iter().flatten() {
            extension.answer(Err(NotExtended::LeaseLost));
        }
        match std::mem::replace(&mut self.phase, Phase::Lost) {
            Phase::Running(handler) => {
                handler.abort();
                true
            }
            Phase::Lost => true,
            Phase::Waiting | Phase::Done(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::message::Message;

    const LEASE: Duration = Duration::from_secs(30);

    fn held() -> Held {
        let message = Message { receipt: "r".to_owned(), deadline_ms: 1_000_000, ..Message::default() };
        let context = Context::new(message, Instant::now(), LEASE, mpsc::channel(1).0);
        Held::new(context, 1, Instant::now(), LEASE)
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_as_long_as_both_clocks_say() {
        let mut held = held();
        let start = Instant::now();
        tokio::time::advance(LEASE / 3).await;
        held.third(Instant::now(), LEASE);
        assert!(held.ask(Instant::now(), LEASE).is_some());
        held.extended(1_010_000);
        assert_eq!(held.deadline - start, Duration::from_secs(40));
        // At its cap the broker gives less than was asked for.
        tokio::time::advance(LEASE / 3).await;
        held.third(Instant::now(), LEASE);
        assert!(held.ask(Instant::now(), LEASE).is_some());
        held.extended(1_013_000);
        assert_eq!(held.deadline - start, Duration::from_secs(43));
    }

    #[tokio::test(start_paused = true)]
    async fn one_extension_is_under_way_at_a_time() {
        let mut held = held();
        held.third(Instant::now(), LEASE);
        assert!(held.ask(Instant::now(), LEASE).is_some());
        let (answer, mut answered) = oneshot::channel();
        let checkpoint = Some(Bytes::from_static(b"half"));
        held.wish(Wish { receipt: "r".into(), time: None, checkpoint: checkpoint.clone(), answer });
        assert_eq!(held.ask(Instant::now(), LEASE), None);
        held.extended(1_000_000);
        assert!(
            matches!(held.ask(Instant::now(), LEASE), Some(Settle::Extend { checkpoint: asked, .. }) if asked == checkpoint)
        );
        assert!(answered.try_recv().is_err(), "nobody confirmed it yet");
        // The line is lost: it is asked once more on the next, and answered there.
        held.ask_again();
        assert!(held.ask(Instant::now(), LEASE).is_some());
        held.extended(1_000_000);
        assert_eq!(answered.try_recv(), Ok(Ok(())));
    }
}
