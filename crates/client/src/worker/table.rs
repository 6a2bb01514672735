//! Everything that a worker holds.
//!
//! One message is never run twice at once here: where it is handed out again while an old handler still runs, the old
//! lease is lost, and the new one waits for the end of its handler.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::{HashMap, HashSet};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::builder::Worker;
use super::context::{Context, Wish};
use super::held::{Held, Phase};
use super::outcome::{Failure, Outcome, settle};
use super::task::{self, Finished};
use crate::limits::BATCH_ITEMS_MAX;
use crate::message::Message;
use crate::settle::{Refusal, Settle, Settled};

/// Everything that a worker holds.
pub(super) struct Table {
    worker: Worker,
    held: HashMap<Arc<str>, Held>,
    /// Those whose handlers have not started, in the order in which they came.
    waiting: VecDeque<Arc<str>>,
    /// Those that wait for the end of another handler of the same message.
    blocked: Vec<Arc<str>>,
    /// The messages whose handlers run, and under which receipt.
    busy: HashMap<String, Arc<str>>,
    /// Those about which there is something to say.
    settles: Vec<Arc<str>>,
    extends: Vec<Arc<str>>,
    /// The line on which messages come now.
    line: u64,
    /// Whether something of an earlier line is held.
    has_foreign: bool,
    /// When something is due at the earliest.
    due: Option<Instant>,
    report: mpsc::Sender<Finished>,
    wishes: mpsc::Sender<Wish>,
}

impl Table {
    pub(super) fn new(worker: Worker, report: mpsc::Sender<Finished>, wishes: mpsc::Sender<Wish>) -> Self {
        Self {
            worker,
            held: HashMap::new(),
            waiting: VecDeque::new(),
            blocked: Vec::new(),
            busy: HashMap::new(),
            settles: Vec::new(),
            extends: Vec::new(),
            line: 0,
            has_foreign: false,
            due: None,
            report,
            wishes,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether handlers run.
    pub(super) fn is_busy(&self) -> bool {
        !self.busy.is_empty()
    }

    pub(super) fn has_something_to_say(&self) -> bool {
        !self.settles.is_empty() || !self.extends.is_empty()
    }

    /// When something is due at the earliest; it may turn out that nothing is.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// How many messages of this line may be unsettled: what is held from earlier ones counts as well.
    pub(super) fn credit(&mut self) -> u32 {
        let concurrency = self.worker.settings.concurrency;
        if !self.has_foreign {
            return concurrency;
        }
        let foreign = |held: &&Held| held.line != self.line && !matches!(held.phase, Phase::Lost);
        let foreign = self.held.values().filter(foreign).count();
        self.has_foreign = foreign > 0;
        concurrency.saturating_sub(u32::try_from(foreign).unwrap_or(u32::MAX))
    }

    /// Messages were handed out.
    pub(super) fn take(&mut self, messages: Vec<Message>, now: Instant) {
        let lease = self.worker.settings.lease_time;
        for message in messages {
            let context = Context::new(message, now, lease, self.wishes.clone());
            let receipt = Arc::clone(context.receipt());
            self.held.insert(Arc::clone(&receipt), Held::new(context, self.line, now, lease));
            self.waiting.push_back(receipt);
        }
        self.due_by(now + lease / 3);
    }

    /// Starts as many handlers as may run.
    pub(super) fn start(&mut self) {
        let most = self.worker.settings.concurrency as usize;
        while self.busy.len() < most {
            let Some(receipt) = self.waiting.pop_front() else { return };
            let Some(held) = self.held.get_mut(&receipt) else { continue };
            if !matches!(held.phase, Phase::Waiting) {
                continue;
            }
            let id = held.context.message().id.clone();
            if let Some(earlier) = self.busy.get(&id).cloned() {
                self.blocked.push(receipt);
                self.lose(&earlier);
                continue;
            }
            let time = self.worker.settings.timeout;
            let handler = task::start(&self.worker.run, &held.context, time, self.report.clone());
            held.phase = Phase::Running(handler);
            self.busy.insert(id, receipt);
        }
    }

    /// A handler has ended.
    pub(super) fn finish(&mut self, finished: Finished) {
        let Finished { receipt, outcome } = finished;
        let Some(held) = self.held.get_mut(&receipt) else { return };
        self.busy.remove(&held.context.message().id);
        self.waiting.extend(self.blocked.drain(..));
        if matches!(held.phase, Phase::Lost) {
            self.held.remove(&receipt);
            return;
        }
        // One that was dropped while its lease was current was dropped because the worker ends.
        self.done(receipt, outcome.unwrap_or(Err(Failure::Release(None))));
    }

    fn done(&mut self, receipt: Arc<str>, outcome: Outcome) {
        if let Some(held) = self.held.get_mut(&receipt) {
            held.phase = Phase::Done(outcome);
            self.settles.push(receipt);
        }
    }

    /// The broker has answered.
    pub(super) fn answered(&mut self, settled: &Settled) {
        let Some(held) = self.held.get_mut(settled.receipt.as_str()) else { return };
        match (settled.refusal, settled.deadline_ms) {
            (None, Some(deadline_ms)) => {
                held.extended(deadline_ms);
                let receipt = Arc::clone(held.context.receipt());
                self.extends.push(receipt);
            }
            (None, None) => drop(self.held.remove(settled.receipt.as_str())),
            (Some(refusal), _) => self.refused(&settled.receipt, refusal),
        }
    }

    fn refused(&mut self, receipt: &str, refusal: Refusal) {
        if let Some(held) = self.held.get(receipt) {
            let message = held.context.message();
            tracing::debug!(queue = %message.queue, message_id = %message.id, ?refusal, "a lease is not held any more");
        }
        self.lose(receipt);
    }

    /// A lease is not this worker's any more.
    fn lose(&mut self, receipt: &str) {
        if let Some(held) = self.held.get_mut(receipt)
            && !held.lose()
        {
            self.held.remove(receipt);
        }
    }

    /// A handler wants its lease to be extended. Where it is not held any more, the wish is dropped, which answers it.
    pub(super) fn wish(&mut self, wish: Wish) {
        let receipt = Arc::clone(&wish.receipt);
        if let Some(held) = self.held.get_mut(&receipt).filter(|held| held.is_live()) {
            held.wish(wish);
            self.extends.push(receipt);
        }
    }

    /// Time has passed: leases that have run out are lost, those whose third has passed are to be extended, where there
    /// is a line to say it on.
    pub(super) fn tick(&mut self, now: Instant, connected: bool) {
        let lease = self.worker.settings.lease_time;
        let (mut due, mut lost) = (None, Vec::new());
        for (receipt, held) in &mut self.held {
            if !held.is_live() {
                continue;
            }
            if held.deadline <= now {
                lost.push(Arc::clone(receipt));
                continue;
            }
            if held.extend_at <= now && connected {
                held.third(now, lease);
                self.extends.push(Arc::clone(receipt));
            }
            // What cannot be said now is said when there is a line again, and until then only the end counts.
            let next = if connected { held.due() } else { Some(held.deadline) };
            due = next.into_iter().chain(due).min();
        }
        self.due = due;
        for receipt in lost {
            if let Some(held) = self.held.get(&receipt) {
                let message = held.context.message();
                tracing::warn!(queue = %message.queue, message_id = %message.id, "a lease ran out and could not be extended");
            }
            self.lose(&receipt);
        }
    }

    fn due_by(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// As much as can be said in one go.
    pub(super) fn say(&mut self, now: Instant) -> Vec<Settle> {
        let lease = self.worker.settings.lease_time;
        let mut said = Vec::with_capacity(self.settles.len().min(BATCH_ITEMS_MAX));
        let most = self.settles.len().min(BATCH_ITEMS_MAX);
        for receipt in self.settles.drain(..most) {
            if let Some(Held { phase: Phase::Done(outcome), .. }) = self.held.get(&receipt) {
                said.push(settle(outcome.clone(), receipt.to_string()));
            }
        }
        let most = self.extends.len().min(BATCH_ITEMS_MAX - said.len());
        for receipt in self.extends.drain(..most) {
            said.extend(self.held.get_mut(&receipt).and_then(|held| held.ask(now, lease)));
        }
        said
    }

    /// A new line is open.
    pub(super) fn connected(&mut self, now: Instant) {
        // Whatever was due while there was no line.
        self.due = Some(now);
    }

    /// The line is gone: what was said on it and not answered is said again on the next. What is held counts against the credit of
    /// the next line, which does not know of it.
    pub(super) fn disconnected(&mut self) {
        self.line += 1;
        self.has_foreign = !self.held.is_empty();
        (self.settles, self.extends) = (Vec::new(), Vec::new());
        for (receipt, held) in &mut self.held {
            held.ask_again();
            match held.phase {
                Phase::Done(_) => self.settles.push(Arc::clone(receipt)),
                _ => self.extends.push(Arc::clone(receipt)),
            }
        }
    }

    /// The worker ends: handlers are told, and what has not started is given back.
    pub(super) fn give_back_waiting(&mut self) {
        let given: HashSet<Arc<str>> = self.waiting.drain(..).chain(self.blocked.drain(..)).collect();
        for receipt in given {
            if self.held.get(&receipt).is_some_and(|held| matches!(held.phase, Phase::Waiting)) {
                self.done(receipt, Err(Failure::Release(None)));
            }
        }
    }

    /// The worker ends: handlers hear of it.
    pub(super) fn cancel(&self) {
        self.held.values().for_each(|held| held.context.cancel());
    }

    /// The worker ends now: handlers are dropped. Their messages are given back when they are really gone.
    pub(super) fn stop_handlers(&self) {
        for held in self.held.values() {
            if let Phase::Running(handler) = &held.phase {
                held.context.cancel();
                handler.abort();
            }
        }
    }

    /// How long a lease is.
    pub(super) fn lease(&self) -> Duration {
        self.worker.settings.lease_time
    }

    /// How it works.
    pub(super) fn worker(&self) -> &Worker {
        &self.worker
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // A worker that is gone extends nothing: its handlers must not go on.
        self.stop_handlers();
    }
}
