//! A store on a simulated disk, the oracle beside it, and the steps of a history.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::executor::block_on;
use futures::future::BoxFuture;
use futures::task::{Context, Poll, noop_waker_ref};
use redrive_core::dice::Dice;
use redrive_core::lifecycle::Verb;
use redrive_core::receipt::ReceiptKey;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{Limit, Now, Store, StoreError};
use redrive_store_embedded::disk::{Call, Disk, SimulatedDisk};
use redrive_store_embedded::{Clock, EmbeddedStore, Options, Stepper, verify};

use crate::clock::TestClock;
use crate::command::{Command, Failure, Outcome, Sureness, sureness};
use crate::oracle::{Checked, Oracle};
use crate::workload::Workload;

/// What a store is given for a disk: the disk itself, or one that does something wrong.
pub(crate) type Dress = fn(SimulatedDisk) -> Arc<dyn Disk>;

/// The disk itself.
pub(crate) fn honest(disk: SimulatedDisk) -> Arc<dyn Disk> {
    Arc::new(disk)
}

/// A store on a simulated disk, and everything that is known about it.
pub(crate) struct World {
    pub(crate) disk: SimulatedDisk,
    pub(crate) workload: Workload,
    pub(crate) oracle: Oracle,
    pub(crate) options: Options,
    pub(crate) tally: Tally,
    dress: Dress,
    clock: Arc<TestClock>,
    open: Option<(EmbeddedStore, Stepper)>,
    receipt_key: Option<ReceiptKey>,
    stopped: bool,
}

/// How much happened, so that a run that tests nothing is noticed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(crate) seeds: u64,
    pub(crate) commands: u64,
    pub(crate) frames: u64,
    pub(crate) openings: u64,
    pub(crate) unknown: u64,
    pub(crate) refused: u64,
    pub(crate) cleaned: u64,
    pub(crate) full: u64,
    /// To how many messages each verb was applied, in queues that were there in the end.
    pub(crate) applied: BTreeMap<Verb, u64>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.commands += other.commands;
        self.frames += other.frames;
        self.openings += other.openings;
        self.unknown += other.unknown;
        self.refused += other.refused;
        self.cleaned += other.cleaned;
        self.full += other.full;
        for (verb, messages) in &other.applied {
            *self.applied.entry(*verb).or_default() += messages;
        }
    }
}

impl World {
    /// An empty disk and no store yet.
    pub(crate) fn new(seed: u64, dress: Dress) -> Self {
        let mut dice = Dice::seeded(seed);
        let segment_bytes = (16 * 1024) << dice.between(0, 2);
        let options = Options {
            segment_bytes: u32::try_from(segment_bytes).expect("small"),
            restart_grace: Millis::new(500),
            ..Options::default()
        };
        Self {
            disk: SimulatedDisk::new(dice.roll()),
            workload: Workload::new(Dice::seeded(dice.roll())),
            oracle: Oracle::new(&options),
            options,
            tally: Tally { seeds: 1, ..Tally::default() },
            dress,
            clock: Arc::new(TestClock::default()),
            open: None,
            receipt_key: None,
            stopped: false,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.wall()
    }

    pub(crate) fn advance(&mut self, span: Millis) {
        self.clock.advance(span);
    }

    /// Whether the store answers nothing but errors any more.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped || self.disk.is_off()
    }

    pub(crate) fn store(&self) -> Checked<&EmbeddedStore> {
        self.open.as_ref().map(|(store, _)| store).ok_or_else(|| "no store is open".to_owned())
    }

    /// Opens a store on a disk; another one than that of this world leaves this world as it is.
    pub(crate) fn open_on(&self, disk: SimulatedDisk) -> Result<(EmbeddedStore, Stepper), StoreError> {
        let clock: Arc<dyn Clock> = self.clock.clone();
        EmbeddedStore::stepped((self.dress)(disk), clock, self.options.clone())
    }

    /// Opens the store, or notes that it could not be.
    pub(crate) fn try_open(&mut self) -> Result<(), StoreError> {
        self.tally.openings += 1;
        match self.open_on(self.disk.clone()) {
            Ok(open) => {
                self.open = Some(open);
                self.stopped = false;
                Ok(())
            }
            Err(error) => {
                self.oracle.opening_failed(self.now());
                Err(error)
            }
        }
    }

    /// Checks a store that was just opened: nothing is lost, nothing is there twice, and the directory is sound.
    pub(crate) fn check_opened(&mut self) -> Checked {
        let (store, _) = self.open.as_ref().ok_or("no store is open")?;
        let found = self.oracle.resolve(store, self.clock.wall())?;
        for message in &found {
            self.workload.found(message);
        }
        let key = block_on(store.receipt_key()).map_err(|error| error.to_string())?;
        if self.receipt_key.get_or_insert_with(|| key.clone()) != &key {
            return Err("receipts that were given out are worthless: there is another key".to_owned());
        }
        self.verify()
    }

    /// Opens the store, which must work.
    pub(crate) fn open(&mut self) -> Checked {
        self.try_open().map_err(|error| format!("it does not open: {error}"))?;
        self.check_opened()
    }

    /// The directory as it is now passes `verify`.
    pub(crate) fn verify(&self) -> Checked {
        let disk = (self.dress)(self.disk.kill());
        verify(&disk, &self.options).map(|_| ()).map_err(|error| format!("verify: {error}"))
    }

    /// Ends the process; what its disk would be after that is for the caller to say.
    pub(crate) fn end(&mut self, disk: SimulatedDisk) {
        self.look_at_usage();
        self.open = None;
        self.disk = disk;
    }

    fn look_at_usage(&mut self) {
        if let Some((store, _)) = &self.open
            && let Ok(usage) = block_on(store.usage())
        {
            self.tally.frames += usage.frames;
            self.tally.cleaned += usage.cleaned_segments;
        }
    }

    /// How much happened.
    pub(crate) fn finish(mut self) -> Checked<Tally> {
        self.look_at_usage();
        let (store, now) = (self.store()?, Now::At(self.now()));
        let mut applied = BTreeMap::new();
        for queue in block_on(store.list_queues(None, Limit::MAX)).map_err(|error| error.to_string())? {
            let stats = block_on(store.stats(now, &queue.name)).map_err(|error| error.to_string())?;
            for verb in Verb::ALL {
                *applied.entry(verb).or_default() += stats.totals.of(verb);
            }
        }
        self.tally.applied = applied;
        Ok(self.tally)
    }

    /// Creates the queues.
    pub(crate) fn set_up(&mut self) -> Checked {
        for command in self.workload.first() {
            if !self.is_stopped() {
                self.frame(vec![command])?;
            }
        }
        Ok(())
    }

    /// Something happens: time passes, and one call or several in one frame.
    pub(crate) fn step(&mut self) -> Checked {
        let now = self.now();
        if self.workload.chance(30) {
            let span = self.workload.span();
            self.advance(span);
            return Ok(());
        }
        // Where what a lease answers cannot be read, others of its frame are answered all the same; alone it says more.
        if self.workload.chance(15) && !self.disk.awaits(Call::Read) {
            let many = self.workload.dice.between(2, 5);
            let commands = (0..many).map(|_| self.workload.next_of_many(now)).collect();
            return self.frame(commands).map(|_| ());
        }
        let command = self.workload.next(now);
        self.frame(vec![command]).map(|_| ())
    }

    /// Steps until there were so many, or the store has stopped.
    pub(crate) fn steps(&mut self, count: u64) -> Checked {
        for _ in 0..count {
            if self.is_stopped() {
                break;
            }
            self.step()?;
        }
        Ok(())
    }

    /// Makes calls that are one frame, and lets the oracle follow the answers.
    pub(crate) fn frame(&mut self, commands: Vec<Command>) -> Checked<Vec<Outcome>> {
        let now = self.now();
        let (store, stepper) = self.open.as_ref().ok_or("no store is open")?;
        let asked = commands.iter().map(|command| command.clone().ask(store, Now::At(now))).collect();
        let outcomes = if commands.len() == 1 { polled(asked, None) } else { polled(asked, Some(stepper)) }?;
        let mut unsure = Vec::new();
        for (command, outcome) in commands.into_iter().zip(&outcomes) {
            self.tally.commands += 1;
            self.workload.learn(&command, outcome);
            match sureness(outcome) {
                Sureness::Decided if unsure.is_empty() => {
                    let followed = self.oracle.follow(now, &command, outcome);
                    followed.map_err(|reason| format!("{command:?}: {reason}"))?;
                }
                Sureness::Decided => {
                    return Err(format!("{command:?} was answered after a call whose outcome is unknown"));
                }
                Sureness::Nothing => self.refused(&command, outcome)?,
                Sureness::Stopped if self.disk.fired().is_some() => self.stopped = true,
                Sureness::Stopped => return Err(format!("nothing failed, and yet {outcome:?}")),
                Sureness::Unknown => unsure.push(command),
            }
        }
        if !unsure.is_empty() {
            self.tally.unknown += 1;
            self.stopped = true;
            self.oracle.unsure(now, unsure)?;
        }
        Ok(outcomes)
    }

    /// A call failed and says that nothing happened: that must be the disk's fault, or a disk that is full.
    fn refused(&mut self, command: &Command, outcome: &Outcome) -> Checked {
        self.tally.refused += 1;
        match outcome {
            Err(Failure::Store("STORAGE_FULL", _)) if command.goes_on_when_full() => {
                Err(format!("a full disk does not take {command:?}"))
            }
            Err(Failure::Store("STORAGE_FULL", _)) => {
                self.tally.full += 1;
                Ok(())
            }
            _ if self.disk.fired().is_some() => Ok(()),
            other => Err(format!("nothing failed, and yet {command:?} was answered {other:?}")),
        }
    }

    /// A store that has stopped says so, and nothing else, to whatever it is asked.
    pub(crate) fn is_silent(&mut self) -> Checked {
        let now = self.now();
        for _ in 0..3 {
            let command = self.workload.next(now);
            let store = self.store()?;
            let outcome = polled(vec![command.clone().ask(store, Now::At(now))], None)?;
            if !matches!(outcome.first(), Some(Err(Failure::Store(..)))) {
                return Err(format!("the store has stopped, and yet answers {command:?} with {outcome:?}"));
            }
        }
        match block_on(self.store()?.list_queues(None, Limit::MAX)) {
            Err(_) => Ok(()),
            Ok(_) => Err("the store has stopped, and yet shows what it may have lost".to_owned()),
        }
    }
}

/// Polls calls until they are answered: one is answered at once, several wait for the stepper.
fn polled(mut asked: Vec<BoxFuture<'_, Outcome>>, stepper: Option<&Stepper>) -> Checked<Vec<Outcome>> {
    let mut context = Context::from_waker(noop_waker_ref());
    let mut answers: Vec<Option<Outcome>> = vec![None; asked.len()];
    let mut poll = |answers: &mut Vec<Option<Outcome>>| {
        for (future, answer) in asked.iter_mut().zip(answers) {
            if answer.is_none()
                && let Poll::Ready(outcome) = future.as_mut().poll(&mut context)
            {
                *answer = Some(outcome);
            }
        }
    };
    if let Some(stepper) = stepper {
        stepper.hold(true);
        poll(&mut answers);
        stepper.step();
        stepper.hold(false);
    }
    poll(&mut answers);
    answers.into_iter().collect::<Option<_>>().ok_or_else(|| "a call is never answered".to_owned())
}
