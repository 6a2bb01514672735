//! A disk that is really full: enqueues are refused, everything else goes on, and service returns by itself.

use std::fs::{self, File};

use futures::executor::block_on;
use libtest_mimic::Failed;
use redrive_core::message::MessageId;
use redrive_core::time::Timestamp;
use redrive_store_embedded::{Durability, EmbeddedStore};
use redrive_test_servers::LoopFs;
use rustix::fs::{FallocateFlags, fallocate};

use crate::caller::{Caller, QUEUES, create_queues, is_large};
use crate::history::History;
use crate::line::{Grant, Verb};
use crate::look::{hold, look};
use crate::victim::Plan;

/// The size of the disk, and of a file beside the store that can make room.
const DISK_MIB: u64 = 28;
const FILLER_MIB: u64 = 8;
/// Small and large messages of one enqueue; about 300 KiB.
const SMALL: usize = 20;
const LARGE: usize = 4;
/// Enqueues after which a store that takes none counts as full for ever.
const TRIES_MAX: usize = 2_000;

/// A store on a small disk.
struct Tight<'a> {
    store: &'a EmbeddedStore,
    history: &'a mut History,
    calls: u64,
    ids: u64,
}

pub(crate) fn a_full_disk_refuses_enqueues_only_and_recovers_by_itself() -> Result<(), Failed> {
    let fs = LoopFs::new(DISK_MIB)?;
    let beside = fs.root().join("filler");
    fallocate(File::create(&beside)?, FallocateFlags::empty(), 0, FILLER_MIB << 20)?;
    let plan = Plan { seed: 41, life: 0, segment_bytes: 512 * 1024, durability: Durability::Sync };
    let dir = fs.root().join("store");
    let store = EmbeddedStore::open(&dir, plan.options())?;
    create_queues(&store)?;
    let mut history = History::default();
    let mut tight = Tight { store: &store, history: &mut history, calls: 0, ids: 0 };

    let filled = tight.fill()?;
    tight.work_goes_on("with the disk full")?;
    fs::remove_file(&beside)?;
    tight.service_returns("after a file beside the store is gone")?;

    let refilled = tight.fill()?;
    tight.work_goes_on("with the disk full again")?;
    let acked = tight.drain();
    tight.service_returns("after the messages were acked")?;

    let told = tight.history.told;
    println!(
        "full after {filled} batches, again after {refilled}; {acked} acks made room; {told} answers hold"
    );
    hold("while it is open", &look(&store, &mut history));
    store.close()?;
    let store = EmbeddedStore::open(&dir, plan.options())?;
    hold("after it was opened again", &look(&store, &mut history));
    Ok(())
}

impl Tight<'_> {
    fn caller(&mut self) -> Caller<'_> {
        self.calls += 1;
        let history = &mut *self.history;
        Caller::new(self.store, format!("tight.{}", self.calls), self.calls, |line| history.read(line))
    }

    fn enqueue(&mut self) -> bool {
        let (mut small, mut large) = (Vec::new(), Vec::new());
        while small.len() < SMALL || large.len() < LARGE {
            self.ids += 1;
            let id = MessageId::new(Timestamp::from_millis(1_800_000_000_000), u128::from(self.ids));
            if is_large(id) { large.push(id) } else { small.push(id) }
        }
        small.truncate(SMALL);
        large.truncate(LARGE);
        self.caller().enqueue(&[small, large].concat())
    }

    /// Enqueues until the disk is full; how many batches that took.
    fn fill(&mut self) -> Result<usize, Failed> {
        let taken = (0..TRIES_MAX).take_while(|_| self.enqueue()).count();
        if taken == TRIES_MAX {
            return Err("the disk does not get full".into());
        }
        assert!(block_on(self.store.usage())?.full, "the store does not say that it is full");
        Ok(taken)
    }

    /// Everything but enqueues works, many times over. Whether an enqueue does is up to cleaning.
    fn work_goes_on(&mut self, when: &str) -> Result<(), Failed> {
        let mut caller = self.caller();
        let mut settled = 0;
        for round in 0..60 {
            let grants = caller.lease(QUEUES[round % 2], 5);
            for (n, grant) in grants.iter().enumerate() {
                let verb = [Verb::Extend, Verb::Nack, Verb::Release, Verb::Bury, Verb::Extend][n];
                settled += usize::from(caller.settle(verb, grant).is_some());
            }
        }
        drop(caller);
        if settled < 200 {
            return Err(format!("{when}: only {settled} leases could be settled").into());
        }
        hold(when, &look(self.store, self.history));
        Ok(())
    }

    /// Leases and acks what there is.
    fn drain(&mut self) -> usize {
        let mut acked = 0;
        for queue in QUEUES {
            loop {
                let mut caller = self.caller();
                let grants: Vec<Grant> = caller.lease(queue, 500);
                for grant in &grants {
                    caller.settle(Verb::Ack, grant);
                }
                if grants.is_empty() {
                    break;
                }
                acked += grants.len();
            }
        }
        acked
    }

    fn service_returns(&mut self, when: &str) -> Result<(), Failed> {
        match (0..TRIES_MAX).find(|_| self.enqueue()) {
            Some(tries) => {
                println!("{when}: {tries} enqueues were refused before one was taken");
                Ok(())
            }
            None => Err(format!("{when}: the store stays full").into()),
        }
    }
}
