//! Who waits for a message: long polls and streams, woken when something becomes ready.
//!
//! Waiters that would take the same messages form a group and are woken in the order in which they came, one for each
//! message. A wake-up that nobody has used yet is kept, and one whose waiter goes away is passed on, so none is lost
//! between a look into an empty queue and the wait. Who finds more than it may take wakes the next.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive_core::message::{Lane, MessageType, Source};
use redrive_store::{ClassFilter, LaneChoice};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// What a waiter would take.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Interest {
    pub(crate) lane: LaneChoice,
    pub(crate) filter: ClassFilter,
}

/// What has become ready.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ready<'a> {
    /// A message of that type and source that nobody was handed before.
    Fresh(&'a MessageType, &'a Source),
    /// Something; nobody knows what, or how much.
    Something,
}

#[derive(Debug)]
struct Group {
    interest: Interest,
    woken: Notify,
    waiting: AtomicUsize,
}

impl Group {
    fn takes(&self, ready: Ready<'_>) -> bool {
        match ready {
            Ready::Something => true,
            Ready::Fresh(kind, source) => {
                self.interest.lane != LaneChoice::Only(Lane::Retry)
                    && self.interest.filter.takes(kind, source)
            }
        }
    }
}

/// Who waits for messages of one queue.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    groups: Mutex<Vec<Arc<Group>>>,
}

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Group>>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins those who wait; what becomes ready from now on is not missed.
    pub(crate) fn join(self: &Arc<Self>, interest: Interest) -> Waiter {
        let mut groups = self.lock();
        let known = groups.iter().find(|group| group.interest == interest).map(Arc::clone);
        let group = known.unwrap_or_else(|| {
            let group = Arc::new(Group { interest, woken: Notify::new(), waiting: AtomicUsize::new(0) });
            groups.push(Arc::clone(&group));
            group
        });
        group.waiting.fetch_add(1, Ordering::Relaxed);
        Waiter { waiters: Arc::clone(self), group }
    }

    /// Wakes one waiter of each group that may take what has become ready.
    pub(crate) fn wake(&self, ready: Ready<'_>) {
        for group in self.lock().iter().filter(|group| group.takes(ready)) {
            group.woken.notify_one();
        }
    }

    /// Wakes everybody: the queue is gone, or the broker ends.
    pub(crate) fn wake_all(&self) {
        for group in self.lock().iter() {
            group.woken.notify_waiters();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

/// One who waits.
#[derive(Debug)]
pub(crate) struct Waiter {
    waiters: Arc<Waiters>,
    group: Arc<Group>,
}

impl Waiter {
    /// Completes when something may have become ready since this was first polled or enabled.
    pub(crate) fn woken(&self) -> Notified<'_> {
        self.group.woken.notified()
    }

    /// There is more than this one took: the next of its group may look.
    pub(crate) fn pass_on(&self) {
        if self.group.waiting.load(Ordering::Relaxed) > 1 {
            self.group.woken.notify_one();
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut groups = self.waiters.lock();
        if self.group.waiting.fetch_sub(1, Ordering::Relaxed) == 1 {
            groups.retain(|group| !Arc::ptr_eq(group, &self.group));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn kind(name: &str) -> MessageType {
        MessageType::new(name).unwrap()
    }

    #[test]
    fn a_wake_up_before_the_wait_is_not_lost() {
        let waiters = Arc::new(Waiters::default());
        let waiter = waiters.join(Interest::default());
        waiters.wake(Ready::Something);
        assert!(waiter.woken().now_or_never().is_some());
        assert!(waiter.woken().now_or_never().is_none(), "it was used");
    }

    #[test]
    fn one_message_wakes_one_of_those_who_would_take_the_same() {
        let waiters = Arc::new(Waiters::default());
        let (first, second) = (waiters.join(Interest::default()), waiters.join(Interest::default()));
        let (mut a, mut b) = (Box::pin(first.woken()), Box::pin(second.woken()));
        assert!(a.as_mut().now_or_never().is_none() && b.as_mut().now_or_never().is_none());
        waiters.wake(Ready::Something);
        assert!(a.as_mut().now_or_never().is_some(), "who came first");
        assert!(b.as_mut().now_or_never().is_none());
        first.pass_on();
        assert!(b.as_mut().now_or_never().is_some());
    }

    #[test]
    fn a_wake_up_whose_waiter_goes_is_passed_on() {
        let waiters = Arc::new(Waiters::default());
        let (first, second) = (waiters.join(Interest::default()), waiters.join(Interest::default()));
        let (mut a, mut b) = (Box::pin(first.woken()), Box::pin(second.woken()));
        assert!(a.as_mut().now_or_never().is_none() && b.as_mut().now_or_never().is_none());
        waiters.wake(Ready::Something);
        drop(a);
        assert!(b.as_mut().now_or_never().is_some());
    }

    #[test]
    fn who_would_not_take_it_is_not_woken() {
        let waiters = Arc::new(Waiters::default());
        let only = |name: &str| ClassFilter { kinds: vec![kind(name)], sources: Vec::new() };
        let paid = waiters.join(Interest { filter: only("paid"), ..Interest::default() });
        let retries = waiters.join(Interest { lane: LaneChoice::Only(Lane::Retry), ..Interest::default() });
        waiters.wake(Ready::Fresh(&kind("sent"), &Source::default()));
        assert!(paid.woken().now_or_never().is_none() && retries.woken().now_or_never().is_none());
        waiters.wake(Ready::Fresh(&kind("paid"), &Source::default()));
        assert!(paid.woken().now_or_never().is_some() && retries.woken().now_or_never().is_none());
        drop((paid, retries));
        assert!(waiters.is_empty());
    }
}
