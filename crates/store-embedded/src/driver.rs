//! Who drives the engine: a thread of its own, or whoever calls.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Poll, Waker};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use redrive_store::StoreError;

use crate::Durability;
use crate::disk::File;
use crate::engine::{Command, Engine, sync};
use crate::fault::Fault;

/// Most commands that wait for the engine; who comes then waits until there is room.
const INBOX_MAX: usize = 4_096;
/// How long the writer looks out for the next command before it goes to sleep: waking up takes about as long.
const LINGER: Duration = Duration::from_micros(60);
/// How much longer for each of those it has just answered together: they ask again one after the other.
const LINGER_EACH: Duration = Duration::from_micros(3);
/// For how many frames nobody is waited for awake after they did not come.
const ALONE: u8 = 32;
/// How many that came during a sync are a crowd: more are on their way. The next sync may begin one sync later and serve all
/// of them, which takes them no longer than two syncs, one for the first and one for the rest.
const CROWD_MIN: usize = 2;
/// The longest sync that counts for that.
const NAP_MAX: Duration = Duration::from_millis(1);
/// How long at most.
const LINGER_MAX: Duration = Duration::from_micros(200);
/// Fewer records than this are read before the sync, not beside it: waking another thread takes longer.
const READ_BESIDE_MIN: usize = 200;

#[derive(Default)]
struct Waiting {
    commands: VecDeque<Box<dyn Command>>,
    /// Callers who found no room.
    outside: Vec<Waker>,
    closed: bool,
}

/// Where commands wait for the writer.
#[derive(Default)]
pub(crate) struct Inbox {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a command in, as soon as there is room.
    pub(crate) async fn submit(&self, command: Box<dyn Command>) {
        let mut command = Some(command);
        poll_fn(|context| {
            let mut waiting = self.lock();
            if waiting.closed {
                let closed = || Fault::new("asking", "the store is closed").stopped();
                command.take().into_iter().for_each(|command| command.refuse(closed()));
                return Poll::Ready(());
            }
            if waiting.commands.len() >= INBOX_MAX {
                waiting.outside.push(context.waker().clone());
                return Poll::Pending;
            }
            waiting.commands.extend(command.take());
            let first = waiting.commands.len() == 1;
            drop(waiting);
            if first {
                self.arrived.notify_one();
            }
            Poll::Ready(())
        })
        .await;
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }

    /// Takes everything that waits. Answers `false` when the inbox is closed and empty.
    fn take(&self, into: &mut VecDeque<Box<dyn Command>>, patience: Option<Duration>) -> bool {
        let mut waiting = self.lock();
        while waiting.commands.is_empty() && !waiting.closed {
            waiting = match patience {
                None => self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(patience) => {
                    let woken = self.arrived.wait_timeout(waiting, patience);
                    let (waiting, timeout) = woken.unwrap_or_else(PoisonError::into_inner);
                    if timeout.timed_out() {
                        return true;
                    }
                    waiting
                }
            };
        }
        let open = !waiting.closed || !waiting.commands.is_empty();
        into.append(&mut waiting.commands);
        let outside = std::mem::take(&mut waiting.outside);
        drop(waiting);
        outside.into_iter().for_each(Waker::wake);
        open
    }

    fn len(&self) -> usize {
        self.lock().commands.len()
    }

    /// Sleeps while more commands come.
    fn nap(&self, time: Duration) {
        let waiting = self.lock();
        if !waiting.closed {
            // Nobody is woken for a command that is not the first.
            drop(self.arrived.wait_timeout(waiting, time));
        }
    }
}

/// The end of the writer, however it comes: whoever waits, or comes later, must not wait for ever.
struct End(Arc<Inbox>);

impl Drop for End {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        waiting.closed = true;
        // Whoever sent them finds the answer gone, and takes the outcome for unknown.
        let commands = std::mem::take(&mut waiting.commands);
        let outside = std::mem::take(&mut waiting.outside);
        drop(waiting);
        drop(commands);
        outside.into_iter().for_each(Waker::wake);
    }
}

/// The writer: a thread that owns the engine, and one that syncs while the writer reads.
pub(crate) struct Writer {
    pub(crate) inbox: Arc<Inbox>,
    thread: Option<JoinHandle<Result<(), StoreError>>>,
}

impl Writer {
    pub(crate) fn spawn(engine: Engine) -> Result<Self, StoreError> {
        let inbox = Arc::new(Inbox::default());
        let theirs = Arc::clone(&inbox);
        let thread = thread::Builder::new()
            .name("redrive-writer".to_owned())
            .spawn(move || {
                let _end = End(Arc::clone(&theirs));
                Loop::new(engine, theirs).run()
            })
            .map_err(|error| StoreError::Unavailable(error.into()))?;
        Ok(Self { inbox, thread: Some(thread) })
    }

    /// Lets the writer finish what waits, and waits for its end.
    pub(crate) fn close(&mut self) -> Result<(), StoreError> {
        self.inbox.close();
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(closed)) => closed,
            Some(Err(_)) => Err(Fault::new("closing", "the writer panicked").stopped()),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Nobody is left who could be told.
        drop(self.close());
    }
}

type Files = Vec<Arc<dyn File>>;

/// The machine's time, for how long the writer waits: that is no business of the store's time.
#[expect(clippy::disallowed_methods, reason = "how long a thread waits decides nothing")]
fn start() -> Instant {
    Instant::now()
}

/// The loop of the writer.
struct Loop {
    engine: Engine,
    inbox: Arc<Inbox>,
    commands: VecDeque<Box<dyn Command>>,
    to_sync: mpsc::SyncSender<Files>,
    synced: mpsc::Receiver<Result<(), Fault>>,
    /// Under [`Durability::Interval`]: what was written and not synced, and since when.
    unsynced: Option<(Files, Instant)>,
    /// How long the last sync took.
    sync_time: Duration,
    /// For how many frames more nobody is waited for awake.
    alone: u8,
    /// Whether a sync that went on beside the reading is over so soon that it is worth staying awake for it.
    sync_is_soon: bool,
}

impl Loop {
    fn new(engine: Engine, inbox: Arc<Inbox>) -> Self {
        let (to_sync, files) = mpsc::sync_channel::<Files>(1);
        let (done, synced) = mpsc::sync_channel(1);
        thread::spawn(move || {
            for files in files {
                if done.send(sync(&files)).is_err() {
                    break;
                }
            }
        });
        Self {
            engine,
            inbox,
            commands: VecDeque::new(),
            to_sync,
            synced,
            unsynced: None,
            sync_time: Duration::ZERO,
            alone: 0,
            sync_is_soon: true,
        }
    }

    fn run(mut self) -> Result<(), StoreError> {
        let mut together = 0;
        loop {
            if self.commands.is_empty() {
                if self.inbox.len() == 0 {
                    self.engine.idle();
                }
                self.gather(together);
                let patience = self.patience();
                if !self.inbox.take(&mut self.commands, patience) {
                    return self.engine.close();
                }
            }
            self.sync_when_due();
            together = self.commands.len();
            self.frame();
            together -= self.commands.len();
        }
    }

    /// Waits a moment for those that were just answered together: they ask again together, and one sync serves all. Who calls
    /// in this process is back at once, and is waited for awake; who is elsewhere is not, and is waited for asleep, where
    /// others have come meanwhile.
    fn gather(&mut self, together: usize) {
        let came = self.inbox.len();
        let all = came + together;
        if together == 0 {
            return;
        }
        if self.alone > 0 {
            self.alone -= 1;
        } else if self.stay_awake(all) {
            return;
        } else {
            self.alone = ALONE;
        }
        if came >= CROWD_MIN {
            self.inbox.nap(self.sync_time);
        }
    }

    /// Looks out for so many; says whether they came.
    fn stay_awake(&self, all: usize) -> bool {
        let each = LINGER_EACH * u32::try_from(all).unwrap_or(u32::MAX);
        let (answered, linger) = (start(), (LINGER + each).min(LINGER_MAX));
        while answered.elapsed() < linger {
            if self.inbox.len() >= all {
                return true;
            }
            thread::yield_now();
        }
        false
    }

    /// One frame. Where much has to be read for the answers, the disk syncs meanwhile.
    fn frame(&mut self) {
        let Some(written) = self.engine.write(&mut self.commands) else { return };
        let files = written.files.len();
        let to_load: usize = written.replies.iter().map(|reply| reply.to_load()).sum();
        match self.engine.core.options.durability {
            Durability::Sync if files == 0 => {
                let replies = self.engine.load(written.replies);
                self.engine.finish(replies, 0, Ok(()));
            }
            Durability::Sync if to_load < READ_BESIDE_MIN => {
                let replies = self.engine.load(written.replies);
                let before = start();
                let synced = sync(&written.files);
                self.sync_time = before.elapsed().min(NAP_MAX);
                self.engine.finish(replies, files, synced);
            }
            Durability::Sync => {
                let lost = || Fault::new("syncing a frame", "the thread that syncs has ended");
                let sent = self.to_sync.send(written.files).map_err(|_| lost());
                let replies = self.engine.load(written.replies);
                let synced = sent.and_then(|()| self.wait_for_sync().unwrap_or_else(|_| Err(lost())));
                self.engine.finish(replies, files, synced);
            }
            Durability::Interval(_) | Durability::None => {
                let replies = self.engine.load(written.replies);
                self.remember_unsynced(written.files);
                self.engine.finish(replies, files, Ok(()));
            }
        }
    }

    /// Waits for the thread that syncs, awake where it is mostly done by now.
    fn wait_for_sync(&mut self) -> Result<Result<(), Fault>, mpsc::RecvError> {
        let read = start();
        let mut synced = Err(mpsc::TryRecvError::Empty);
        while self.sync_is_soon && read.elapsed() < LINGER_MAX {
            synced = self.synced.try_recv();
            match synced {
                Err(mpsc::TryRecvError::Empty) => thread::yield_now(),
                _ => break,
            }
        }
        let synced = match synced {
            Ok(synced) => Ok(synced),
            Err(_) => self.synced.recv(),
        };
        self.sync_is_soon = read.elapsed() < LINGER_MAX;
        synced
    }

    fn remember_unsynced(&mut self, files: Files) {
        let (unsynced, _) = self.unsynced.get_or_insert_with(|| (Vec::new(), start()));
        for file in files {
            if !unsynced.iter().any(|other| Arc::ptr_eq(other, &file)) {
                unsynced.push(file);
            }
        }
    }

    fn patience(&self) -> Option<Duration> {
        match (self.engine.core.options.durability, &self.unsynced) {
            (Durability::Interval(interval), Some((_, since))) => {
                Some(Duration::from_millis(interval.get()).saturating_sub(since.elapsed()))
            }
            _ => None,
        }
    }

    fn sync_when_due(&mut self) {
        if self.patience() == Some(Duration::ZERO)
            && let Some((files, _)) = self.unsynced.take()
        {
            self.engine.finish(Vec::new(), 0, sync(&files));
        }
    }
}

/// Whoever calls drives the engine: no thread, and every run the same.
pub(crate) struct Stepped {
    pub(crate) engine: Engine,
    pub(crate) commands: VecDeque<Box<dyn Command>>,
    /// Whether commands wait for a step.
    pub(crate) hold: bool,
}

impl Stepped {
    pub(crate) fn submit(&mut self, command: Box<dyn Command>) {
        self.commands.push_back(command);
        if !self.hold {
            self.step();
        }
    }

    /// Runs what waits, as few frames as it takes, and idles.
    pub(crate) fn step(&mut self) {
        while !self.commands.is_empty() {
            self.engine.step(&mut self.commands);
        }
        self.engine.idle();
    }
}
