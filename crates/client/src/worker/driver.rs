//! The one task of a worker: it hears, starts handlers, and says what became of them.
//!
//! While a line is open, it speaks when there is nothing to hear: all that has ended meanwhile goes into one message. Where
//! the line is lost, handlers go on, and what they say is kept for the next line; receipts are good on any.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Sleep};

use super::builder::Worker;
use super::context::Wish;
use super::running::{Told, WorkerError};
use super::table::Table;
use super::task::Finished;
use crate::backoff::Backoff;
use crate::error::LeaseError;
use crate::transport::{Ask, Heard, Line, Say, Transport};

/// The first wait before a line is opened again, and the longest.
const RECONNECT_WAITS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));
/// How long the broker may take to confirm what is given back at the end.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How often something may be heard before there is something to say that waits.
const HEARD_FIRST_MAX: u32 = 16;
/// How often others may run before something is said while handlers run: those that were started together may be about to
/// end, and what ends together is told together. It is a matter of microseconds, and a message to the broker saved.
const OTHERS_FIRST: u32 = 32;
/// How far away a timer is that is not needed.
const FAR: Duration = Duration::from_hours(24);
/// How many wishes of handlers may wait.
const WISHES_MAX: usize = 64;

type Hearing = BoxStream<'static, Result<Heard, LeaseError>>;

/// What comes from the broker.
enum Link {
    Opening(BoxFuture<'static, Result<Line, LeaseError>>),
    Open(Hearing),
}

/// Why the driver goes on.
enum Wake {
    Told(Told),
    Opened(Result<Line, LeaseError>),
    Heard(Option<Result<Heard, LeaseError>>),
    Finished,
    Wish(Wish),
    Due,
    MaySpeak,
}

/// The end of a worker.
struct Ending {
    grace: Instant,
    /// When it ends, whatever is still open.
    latest: Instant,
    stopped: bool,
}

/// The task of a worker.
pub(super) struct Driver {
    transport: Arc<dyn Transport>,
    table: Table,
    link: Link,
    say: Option<mpsc::Sender<Say>>,
    /// The credit that the broker knows of.
    credit: u32,
    /// Whether something was settled on this line that is not answered yet.
    unanswered: bool,
    backoff: Backoff,
    told: watch::Receiver<Told>,
    finished: mpsc::Receiver<Finished>,
    batch: Vec<Finished>,
    wishes: mpsc::Receiver<Wish>,
    timer: Pin<Box<Sleep>>,
    ending: Option<Ending>,
    heard_first: u32,
}

impl Driver {
    pub(super) fn new(worker: Worker, transport: Arc<dyn Transport>, told: watch::Receiver<Told>) -> Self {
        let concurrency = worker.settings.concurrency as usize;
        // As many as there are tasks: each tells of its end once.
        let (report, finished) = mpsc::channel(concurrency);
        let (wish, wishes) = mpsc::channel(WISHES_MAX);
        let mut driver = Self {
            transport,
            table: Table::new(worker, report, wish),
            link: Link::Opening(Box::pin(std::future::pending())),
            say: None,
            credit: 0,
            unanswered: false,
            backoff: Backoff::new(RECONNECT_WAITS.0, RECONNECT_WAITS.1),
            told,
            finished,
            batch: Vec::with_capacity(concurrency),
            wishes,
            timer: Box::pin(tokio::time::sleep_until(Instant::now() + FAR)),
            ending: None,
            heard_first: 0,
        };
        driver.open(None);
        driver
    }

    /// Works until it is told to end, or is refused.
    pub(super) async fn run(mut self) -> Result<(), WorkerError> {
        while !self.is_over() {
            self.set_timer();
            let wake = self.wait().await;
            self.heed(wake)?;
            match &self.ending {
                None => self.table.start(),
                Some(_) => self.table.give_back_waiting(),
            }
        }
        if !self.table.is_empty() {
            tracing::warn!(
                leases = self.table.len(),
                "a worker ended with leases that run out by themselves"
            );
        }
        Ok(())
    }

    async fn wait(&mut self) -> Wake {
        let speaks = self.has_something_to_say();
        let others_first = match (self.heard_first < HEARD_FIRST_MAX, self.table.is_busy()) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => OTHERS_FIRST,
        };
        let ends = self.ending.is_some();
        let Self { link, say, told, finished, batch, wishes, timer, .. } = self;
        tokio::select! {
            biased;
            what = hear_told(told, ends) => Wake::Told(what),
            wake = hear(link) => wake,
            _ = finished.recv_many(batch, usize::MAX) => Wake::Finished,
            Some(wish) = wishes.recv() => Wake::Wish(wish),
            () = timer.as_mut() => Wake::Due,
            () = may_speak(say.as_ref(), others_first), if speaks => Wake::MaySpeak,
        }
    }

    fn heed(&mut self, wake: Wake) -> Result<(), WorkerError> {
        let now = Instant::now();
        self.heard_first += 1;
        match wake {
            Wake::Told(told) => self.end(told, now),
            Wake::Opened(Ok(line)) => self.opened(line, now),
            Wake::Heard(Some(Ok(heard))) => self.heard(heard, now),
            Wake::Opened(Err(error)) | Wake::Heard(Some(Err(error))) => self.lost(Some(error))?,
            Wake::Heard(None) => self.lost(None)?,
            Wake::Finished => self.batch.drain(..).for_each(|finished| self.table.finish(finished)),
            Wake::Wish(wish) => self.table.wish(wish),
            Wake::Due => self.tick(now),
            Wake::MaySpeak => self.speak(now),
        }
        Ok(())
    }

    fn wanted_credit(&mut self) -> u32 {
        if self.ending.is_some() { 0 } else { self.table.credit() }
    }

    fn has_something_to_say(&mut self) -> bool {
        // A broker settles what comes on one line one after the other: what ends meanwhile is told together. Told apart it
        // would be handed out apart again, and stay so.
        (self.table.has_something_to_say() && !self.unanswered) || self.wanted_credit() != self.credit
    }

    /// Says one thing; there is room for it.
    fn speak(&mut self, now: Instant) {
        self.heard_first = 0;
        let credit = self.wanted_credit();
        let Some(say) = &self.say else { return };
        let words = if credit == self.credit {
            let settles = self.table.say(now);
            if settles.is_empty() {
                return;
            }
            self.unanswered = true;
            Say::Settle(settles)
        } else {
            self.credit = credit;
            Say::Credit(credit)
        };
        // Where the line is gone that is heard next, and what was said is said again.
        drop(say.try_send(words));
    }

    fn heard(&mut self, heard: Heard, now: Instant) {
        self.backoff.reset();
        self.unanswered &= heard.settled.is_empty();
        for settled in heard.settled {
            self.table.answered(&settled);
        }
        if !heard.messages.is_empty() {
            self.table.take(heard.messages, now);
        }
    }

    /// Opens a line, after a while where there is one to wait.
    fn open(&mut self, wait: Option<Duration>) {
        let at = wait.map(|wait| Instant::now() + wait);
        self.credit = self.wanted_credit();
        let settings = &self.table.worker().settings;
        let ask = Ask {
            queue: settings.queue.clone(),
            consumer: settings.consumer.clone(),
            credit: self.credit,
            lease_time: self.table.lease(),
            lane: settings.lane,
            types: settings.types.clone(),
            sources: settings.sources.clone(),
        };
        let transport = Arc::clone(&self.transport);
        self.link = Link::Opening(Box::pin(async move {
            if let Some(at) = at {
                tokio::time::sleep_until(at).await;
            }
            transport.consume(&ask).await
        }));
    }

    fn opened(&mut self, line: Line, now: Instant) {
        self.link = Link::Open(line.heard);
        self.say = Some(line.say);
        self.table.connected(now);
    }

    /// The line is lost, or was not opened.
    fn lost(&mut self, error: Option<LeaseError>) -> Result<(), WorkerError> {
        let closed_here = self.say.is_none() && matches!(self.link, Link::Open(_));
        self.say = None;
        self.unanswered = false;
        self.table.disconnected();
        if let Some(error) = error {
            if !(error.is_retryable() || error.is_outcome_unknown()) {
                return Err(error.into());
            }
            tracing::warn!(queue = %self.table.worker().settings.queue, %error, "a worker has no connection");
        }
        let wait = if closed_here { Duration::ZERO } else { self.backoff.next() };
        self.open(Some(wait));
        Ok(())
    }

    fn tick(&mut self, now: Instant) {
        self.table.tick(now, self.say.is_some());
        if let Some(ending) = &mut self.ending
            && ending.grace <= now
            && !ending.stopped
        {
            ending.stopped = true;
            self.table.stop_handlers();
        }
    }

    fn set_timer(&mut self) {
        let ending = self.ending.as_ref();
        let ending = ending.map(|ending| if ending.stopped { ending.latest } else { ending.grace });
        let due = self.table.due().into_iter().chain(ending).min();
        // One that is too early is harmless, and cheaper than one that is moved for every message.
        if self.timer.is_elapsed() {
            self.timer.as_mut().reset(due.unwrap_or_else(|| Instant::now() + FAR));
        } else if let Some(due) = due.filter(|due| *due < self.timer.deadline()) {
            self.timer.as_mut().reset(due);
        }
    }

    fn end(&mut self, told: Told, now: Instant) {
        let grace = self.table.worker().settings.grace;
        let grace = if told == Told::EndNow { Duration::ZERO } else { grace };
        let grace = self.ending.as_ref().map_or(now + grace, |ending| ending.grace.min(now + grace));
        let stopped = self.ending.as_ref().is_some_and(|ending| ending.stopped);
        self.ending = Some(Ending { grace, latest: grace + LAST_WORDS, stopped });
        self.table.cancel();
    }

    /// Whether a worker that ends has ended. What was pushed and not read must not be left behind: the line is closed on
    /// this side first, and read to its end.
    fn is_over(&mut self) -> bool {
        let Some(ending) = &self.ending else { return false };
        if ending.latest <= Instant::now() {
            return true;
        }
        if !self.table.is_empty() {
            return false;
        }
        match &self.link {
            // One that is asked for with credit may bring something.
            Link::Opening(_) => self.credit == 0,
            Link::Open(_) => {
                self.say = None;
                false
            }
        }
    }
}

/// What it is told next; where nobody can tell it anything any more, to end, once.
async fn hear_told(told: &mut watch::Receiver<Told>, ends: bool) -> Told {
    match told.changed().await {
        Ok(()) => *told.borrow_and_update(),
        Err(_) if ends => std::future::pending().await,
        Err(_) => Told::End,
    }
}

async fn hear(link: &mut Link) -> Wake {
    match link {
        Link::Opening(opening) => Wake::Opened(opening.await),
        Link::Open(hearing) => Wake::Heard(hearing.next().await),
    }
}

/// Returns when there is room to say something, and when whatever can run has run so often.
async fn may_speak(say: Option<&mpsc::Sender<Say>>, others_first: u32) {
    for _ in 0..others_first {
        tokio::task::yield_now().await;
    }
    let room = match say {
        Some(say) => say.reserve().await.is_ok(),
        None => false,
    };
    if !room {
        // That the line is gone is heard elsewhere.
        std::future::pending::<()>().await;
    }
}
