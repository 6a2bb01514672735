//! The times in which a client on HTTP/1 must speak.
//!
//! The time of a head runs from its first byte, the time of an idle connection from its last answer, and while a request
//! is under way nobody is waiting for the client: a long poll may wait, and a stream may last. hyper has one time for the
//! first two, and no way to tell them apart.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::activity::Activity;

/// How long a client may take to say the head of a request, from its first byte.
pub(super) const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a client may say nothing: before the first request, and between an answer and the next.
pub(super) const IDLE_TIME_MAX: Duration = Duration::from_mins(1);

/// What a client is waited for, and since when.
#[derive(Debug, Clone, Copy)]
enum Waiting {
    /// For the next request.
    Idle(Instant),
    /// For the rest of a head.
    Head(Instant),
}

/// Done when a client is too late. It looks at what happened whenever the connection was polled, so it must be polled after
/// it, by the same task. Its timer may be set for a time that has been put off since, and is set anew only when it rings: a
/// connection that is used all the time never does.
pub(super) struct Late {
    activity: Arc<Activity>,
    /// How many requests had come, and how often something was heard and said, when the waiting began.
    begun: u32,
    heard: u32,
    said: u32,
    waiting: Waiting,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Late {
    /// For a client whose first byte came then.
    pub(super) fn new(activity: Arc<Activity>, first: Instant) -> Self {
        let (begun, heard, said) = (activity.begun(), activity.heard(), activity.said());
        Self { activity, begun, heard, said, waiting: Waiting::Head(first), timer: None }
    }

    fn is_idle(&mut self) {
        self.begun = self.activity.begun();
        self.heard = self.activity.heard();
        self.said = self.activity.said();
        self.waiting = Waiting::Idle(Instant::now());
    }

    /// Sees what has happened since.
    fn catch_up(&mut self) {
        if self.activity.begun() != self.begun {
            self.is_idle();
        } else if let Waiting::Idle(_) = self.waiting
            && self.activity.heard() != self.heard
        {
            self.waiting = Waiting::Head(Instant::now());
        }
    }

    fn deadline(&self) -> Instant {
        match self.waiting {
            Waiting::Idle(since) => since + IDLE_TIME_MAX,
            Waiting::Head(since) => since + HEAD_TIME_MAX,
        }
    }
}

impl Future for Late {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.activity.is_busy() {
            return Poll::Pending;
        }
        this.catch_up();
        loop {
            let deadline = this.deadline();
            let timer = this.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
            if timer.deadline() > deadline {
                timer.as_mut().reset(deadline);
            }
            ready!(timer.as_mut().poll(context));
            if timer.deadline() < deadline {
                timer.as_mut().reset(deadline);
            } else if matches!(this.waiting, Waiting::Idle(_)) && this.activity.said() != this.said {
                // Who reads the last answer slowly is not idle.
                this.is_idle();
            } else {
                return Poll::Ready(());
            }
        }
    }
}
