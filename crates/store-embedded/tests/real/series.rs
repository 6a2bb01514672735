//! One directory, many processes: each is killed, then the next must find what it left.

use std::path::PathBuf;
use std::sync::Arc;

use futures::executor::block_on;
use redrive_core::dice::Dice;
use redrive_core::message::State;
use redrive_core::queue::QueueName;
use redrive_store::{Filter, Now, Selection, Store, StoreError};
use redrive_store_embedded::disk::{Disk, RealDisk};
use redrive_store_embedded::{EmbeddedStore, verify};

use crate::caller::{Caller, QUEUES, create_queues, has_dedup};
use crate::history::{History, Looked};
use crate::line::{Grant, Verb};
use crate::look::{hold, look};
use crate::victim::{Plan, Victim};

/// From how many messages on a queue is emptied, so that a look stays cheap.
const PRESENT_MAX: u64 = 300;

/// One directory and what is known about it.
#[derive(Debug)]
pub(crate) struct Series {
    dir: PathBuf,
    plan: Plan,
    dice: Dice,
    pub(crate) history: History,
}

impl Series {
    pub(crate) fn new(dir: PathBuf, plan: Plan) -> Self {
        let dice = Dice::seeded(plan.seed);
        Self { dir, plan, dice, history: History::default() }
    }

    /// Lets a process work, and kills it after so many lines.
    pub(crate) fn live(&mut self, lines: u64) {
        self.plan.life += 1;
        let victim = Victim::start(&self.dir, &self.plan);
        for _ in 0..lines {
            match victim.line() {
                Some(line) => self.history.read(line),
                None => break,
            }
        }
        victim.kill().into_iter().for_each(|line| self.history.read(line));
    }

    /// How many lines to read before the kill: one in ten dies while it recovers, some soon after.
    pub(crate) fn lines(&mut self) -> u64 {
        match self.dice.between(0, 9) {
            0 => 1,
            1..=2 => self.dice.between(2, 40),
            _ => self.dice.between(40, 1_500),
        }
    }

    /// Verifies the directory, opens it, and looks.
    pub(crate) fn look(&mut self) -> Result<(EmbeddedStore, Looked), StoreError> {
        let disk = RealDisk::new(&self.dir).map_err(|error| StoreError::Unavailable(error.into()))?;
        let disk: Arc<dyn Disk> = Arc::new(disk);
        verify(&disk, &self.plan.options())?;
        drop(disk);
        let store = EmbeddedStore::open(&self.dir, self.plan.options())?;
        let looked = look(&store, &mut self.history);
        Ok((store, looked))
    }

    /// Looks, fails where anything was lost, and goes on with what the dead process held.
    pub(crate) fn survive(&mut self) {
        let what = format!("{:?} in {}", self.plan, self.dir.display());
        let (store, looked) = self.look().unwrap_or_else(|error| panic!("{what}: {error}"));
        hold(&what, &looked);
        self.inherit(&store, &looked);
        hold(&format!("{what}, with the receipts from before"), &look(&store, &mut self.history));
        if self.plan.life.is_multiple_of(2) {
            store.close().unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    }

    /// Receipts from before the kill work, those that were used do not, and dedup keys are held.
    fn inherit(&mut self, store: &EmbeddedStore, looked: &Looked) {
        create_queues(store).expect("the queues are there, or can be");
        let (dice, history, life) = (&mut self.dice, &mut self.history, self.plan.life);
        let mut caller = Caller::new(store, format!("{life}.heir"), dice.roll(), |line| history.read(line));
        for grant in &looked.held {
            match dice.between(0, 5) {
                0..=1 => caller.settle(Verb::Ack, grant),
                2 => caller.settle(Verb::Nack, grant),
                3 => caller.settle(Verb::Release, grant),
                4 => caller.settle(Verb::Extend, grant),
                _ => None,
            };
        }
        let used = |grant: &&Grant| grant.lease.bits().is_multiple_of(16);
        for grant in looked.ended.iter().filter(used).take(4) {
            caller.settle_again(Verb::Nack, grant);
        }
        for grant in looked.ended.iter().filter(|grant| has_dedup(grant.id)).take(2) {
            caller.enqueue_again(grant.id);
        }
        drop(caller);
        for queue in QUEUES {
            self.trim(store, &QueueName::new(queue).expect("a good name"));
        }
    }

    fn trim(&mut self, store: &EmbeddedStore, queue: &QueueName) {
        let stats = block_on(store.stats(Now::Store, queue)).expect("the store answers");
        if stats.states.all() < PRESENT_MAX {
            return;
        }
        let idle = vec![State::Ready, State::Delayed, State::Dead];
        let selection = Selection::new(queue.clone(), Filter { states: idle, ..Filter::default() });
        let bulk = block_on(store.discard(Now::Store, selection, false)).expect("the store answers");
        bulk.applied.into_iter().for_each(|id| self.history.discarded(id));
    }
}
