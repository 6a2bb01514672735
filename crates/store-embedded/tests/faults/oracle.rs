//! What must be there: the reference store follows every answer, and after a crash it says what may have been lost.
//!
//! A call whose answer was "unknown" may have happened or not, and so may an opening that failed. Both are kept
//! aside; when the store is open again, one way of taking them must explain everything that can be seen.

use std::collections::BTreeMap;

use futures::FutureExt;
use redrive_core::lease::LeaseId;
use redrive_core::message::{Message, MessageId};
use redrive_core::queue::QueueName;
use redrive_core::receipt::{Claim, ReceiptKey};
use redrive_core::time::Timestamp;
use redrive_store::{
    AckItem, Batch, BuryItem, EntryKey, Expect, ExtendItem, Item, LeaseRequest, LeaseTarget, Leased,
    NackItem, Now, ReleaseItem, Store, Write, WriteOutcome, Writes,
};
use redrive_store_embedded::Options;
use redrive_store_memory::MemoryStore;

use crate::command::{Answer, Command, Outcome};
use crate::compare::{compare, leased_messages, plain, same};
use crate::logs::Logs;

/// `Err` says which promise was broken.
pub(crate) type Checked<T = ()> = Result<T, String>;

/// What the store under test chose for itself, beside what the reference chose.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    /// The reference's lease id for each of the store's.
    pub(crate) leases: BTreeMap<LeaseId, LeaseId>,
    /// The version of each queue: the store's and the reference's.
    pub(crate) queues: BTreeMap<QueueName, (u64, u64)>,
    /// The same for entries of the registry.
    pub(crate) entries: BTreeMap<EntryKey, (u64, u64)>,
}

/// The reference, and what is not known about it.
#[derive(Debug)]
pub(crate) struct Oracle {
    reference: MemoryStore,
    known: Known,
    logs: Logs,
    /// The frame whose outcome is unknown: all of it happened, or nothing.
    unsure: Option<(Timestamp, Vec<Command>)>,
    /// Openings that failed; each may have been written down.
    openings: Vec<Timestamp>,
    /// The largest lease id that was ever told.
    largest: Option<LeaseId>,
}

impl Oracle {
    pub(crate) fn new(options: &Options) -> Self {
        let reference = MemoryStore::new(redrive_store_memory::Options {
            defaults: options.defaults.clone(),
            limits: options.limits,
            first_epoch: options.first_epoch,
            restart_grace: options.restart_grace,
            ..redrive_store_memory::Options::new(ReceiptKey::new([42; 32]))
        });
        Self {
            reference,
            known: Known::default(),
            logs: Logs::default(),
            unsure: None,
            openings: Vec::new(),
            largest: None,
        }
    }

    /// The store decided a call: the reference must decide the same.
    pub(crate) fn follow(&mut self, now: Timestamp, command: &Command, told: &Outcome) -> Checked {
        if let Some(followed) = self.logs.follow(now, command, told) {
            return followed;
        }
        let theirs = match (command, told) {
            (Command::Lease(request), Ok(Answer::Leased(leased))) => {
                return self.follow_lease(now, request, leased);
            }
            (Command::Lease(request), _) => {
                let followed = self.reference.follow_lease(Now::At(now), request, (&[], true))?;
                followed.map(Answer::Leased).map_err(Into::into)
            }
            _ => answered(&self.reference, now, self.translated(command)),
        };
        let plainly = |outcome: &Outcome| outcome.clone().map(Answer::plain);
        same("an answer", &plainly(told), &plainly(&theirs))?;
        self.learn(command, told, &theirs);
        Ok(())
    }

    fn follow_lease(&mut self, now: Timestamp, request: &LeaseRequest, ours: &Leased) -> Checked {
        let picked: Vec<MessageId> = ours.messages.iter().map(Message::id).collect();
        let theirs = self.reference.follow_lease(Now::At(now), request, (&picked, ours.more))?;
        let theirs = theirs.map_err(|error| format!("the reference refuses the lease: {error}"))?;
        same("the time of a lease", &ours.at, &theirs.at)?;
        same("what the lease call swept", &ours.swept, &theirs.swept)?;
        for (ours, theirs) in ours.messages.iter().zip(&theirs.messages) {
            same("a leased message", &plain(ours.clone()), &plain(theirs.clone()))?;
            self.pair(ours, theirs)?;
        }
        Ok(())
    }

    /// Remembers which lease of the reference is which of the store's; ids only ever grow.
    fn pair(&mut self, ours: &Message, theirs: &Message) -> Checked {
        let id = ours.id();
        let (Some(ours), Some(theirs)) = (ours.lease(), theirs.lease()) else {
            return Err(format!("{id} was handed out without a lease"));
        };
        if self.largest.is_some_and(|largest| largest >= ours.id) {
            return Err(format!("{id}: lease id {} was given out before, or a larger one", ours.id));
        }
        self.largest = Some(ours.id);
        self.known.leases.insert(ours.id, theirs.id);
        Ok(())
    }

    fn learn(&mut self, command: &Command, ours: &Outcome, theirs: &Outcome) {
        match (command, ours, theirs) {
            (_, Ok(Answer::Queue(ours)), Ok(Answer::Queue(theirs))) => {
                self.known.queues.insert(ours.name.clone(), (ours.version, theirs.version));
            }
            (
                Command::Register(writes),
                Ok(Answer::Wrote(WriteOutcome::Committed(ours))),
                Ok(Answer::Wrote(WriteOutcome::Committed(theirs))),
            ) => {
                for (write, versions) in writes.items().iter().zip(ours.iter().zip(theirs)) {
                    match versions {
                        (Some(ours), Some(theirs)) => {
                            self.known.entries.insert(write.key.clone(), (*ours, *theirs));
                        }
                        _ => drop(self.known.entries.remove(&write.key)),
                    }
                }
            }
            _ => {}
        }
    }

    /// The store does not know what became of these calls, which were to be one frame.
    pub(crate) fn unsure(&mut self, now: Timestamp, commands: Vec<Command>) -> Checked {
        if self.unsure.replace((now, commands)).is_some() {
            return Err("two frames have an unknown outcome, though the first stopped the store".to_owned());
        }
        Ok(())
    }

    /// An opening failed, and may have been written down.
    pub(crate) fn opening_failed(&mut self, at: Timestamp) {
        self.openings.push(at);
    }

    /// Finds out what happened from what is there, or says that nothing can explain it. Answers the messages that
    /// were leased by calls whose answer was lost.
    pub(crate) fn resolve(&mut self, subject: &dyn Store, opened: Timestamp) -> Checked<Vec<Message>> {
        self.logs.resolve(subject, self.unsure.as_ref())?;
        let without = match self.explain(subject, opened) {
            Ok(()) => {
                self.unsure = None;
                return Ok(Vec::new());
            }
            Err(reason) => reason,
        };
        let Some((now, commands)) = self.unsure.take() else {
            return Err(without);
        };
        let found = self.happened(subject, opened, now, &commands)?;
        match self.explain(subject, opened) {
            Ok(()) => Ok(found),
            Err(with) => Err(format!(
                "neither with nor without the frame whose outcome is unknown\n{commands:?}\nwithout: {without}\nwith: {with}"
            )),
        }
    }

    /// Whether everything is as it must be if the store was opened at that time. Changes nothing.
    pub(crate) fn check(&self, subject: &dyn Store, opened: Timestamp) -> Checked {
        let reopened = self.reference.reopen(opened).map_err(|error| error.to_string())?;
        self.logs.clone().check(subject)?;
        compare(subject, &reopened, opened, &self.known).map(|_| ())
    }

    /// Whether everything is as it must be right now.
    pub(crate) fn check_now(&self, subject: &dyn Store, now: Timestamp) -> Checked {
        self.logs.clone().check(subject)?;
        compare(subject, &self.reference, now, &self.known).map(|_| ())
    }

    /// Tries every way of taking the openings that failed.
    fn explain(&mut self, subject: &dyn Store, opened: Timestamp) -> Checked {
        let mut reasons = Vec::new();
        for taken in 0..1_u32 << self.openings.len() {
            let mut reopened: Option<MemoryStore> = None;
            let happened = self.openings.iter().enumerate().filter(|(n, _)| taken & (1 << n) != 0);
            for at in happened.map(|(_, at)| *at).chain([opened]) {
                let next = reopened.as_ref().unwrap_or(&self.reference).reopen(at);
                reopened = Some(next.map_err(|error| error.to_string())?);
            }
            let Some(reopened) = reopened else { continue };
            match compare(subject, &reopened, opened, &self.known) {
                Ok(known) => {
                    (self.reference, self.known) = (reopened, known);
                    self.openings.clear();
                    return Ok(());
                }
                Err(reason) => reasons.push(reason),
            }
        }
        Err(reasons.join("\nor: "))
    }

    /// Takes the frame whose outcome is unknown as happened. Whom a lease went to is read from what is there.
    fn happened(
        &mut self,
        subject: &dyn Store,
        opened: Timestamp,
        now: Timestamp,
        commands: &[Command],
    ) -> Checked<Vec<Message>> {
        let leased = leased_messages(subject, opened)?;
        let mut found = Vec::new();
        for command in commands {
            let Command::Lease(request) = command else {
                drop(answered(&self.reference, now, self.translated(command)));
                continue;
            };
            let holds =
                |message: &&Message| message.lease().is_some_and(|lease| lease.consumer == request.consumer);
            let ours: Vec<&Message> = leased.iter().filter(holds).collect();
            let picked: Vec<MessageId> = ours.iter().map(|message| message.id()).collect();
            let theirs = self.reference.follow_lease(Now::At(now), request, (&picked, true))?;
            // A call that was refused changed nothing, and nobody has a lease of it.
            let theirs = theirs.map(|leased| leased.messages).unwrap_or_default();
            for (ours, theirs) in ours.into_iter().zip(theirs) {
                self.pair(ours, &theirs)?;
                found.push(ours.clone());
            }
        }
        Ok(found)
    }

    /// The same call with the reference's lease ids and versions.
    fn translated(&self, command: &Command) -> Command {
        match command.clone() {
            Command::Ack(batch) => {
                Command::Ack(each(batch, |item| AckItem { claim: self.claim(item.claim) }))
            }
            Command::Nack(batch, seed) => {
                let nack = |item: NackItem| NackItem { claim: self.claim(item.claim), ..item };
                Command::Nack(each(batch, nack), seed)
            }
            Command::Extend(batch) => {
                Command::Extend(each(batch, |item| ExtendItem { target: self.target(item.target), ..item }))
            }
            Command::Release(batch) => {
                Command::Release(each(batch, |item| ReleaseItem { target: self.target(item.target), ..item }))
            }
            Command::Bury(batch) => {
                Command::Bury(each(batch, |item| BuryItem { claim: self.claim(item.claim), ..item }))
            }
            Command::Register(writes) => {
                let writes = writes.into_items().into_iter().map(|write| self.write(write)).collect();
                Command::Register(Writes::new(writes).expect("they were distinct before"))
            }
            other => other,
        }
    }

    fn claim(&self, claim: Claim) -> Claim {
        let lease = self.known.leases.get(&claim.lease).copied();
        Claim { lease: lease.unwrap_or(LeaseId::from_bits(0)), ..claim }
    }

    fn target(&self, target: LeaseTarget) -> LeaseTarget {
        match target {
            LeaseTarget::Claim(claim) => LeaseTarget::Claim(self.claim(claim)),
            other @ (LeaseTarget::Current { .. } | LeaseTarget::Seen { .. }) => other,
        }
    }

    fn write(&self, write: Write) -> Write {
        let Expect::Version(version) = write.expect else {
            return write;
        };
        let known = self.known.entries.get(&write.key).filter(|known| known.0 == version);
        Write { expect: Expect::Version(known.map_or(u64::MAX, |known| known.1)), ..write }
    }
}

fn each<T: Item + Clone>(batch: Batch<T>, change: impl FnMut(T) -> T) -> Batch<T> {
    let together = batch.is_all_or_nothing();
    let items = batch.into_items().into_iter().map(change).collect();
    let batch = if together { Batch::all_or_nothing(items) } else { Batch::each(items) };
    batch.expect("it was a good batch before")
}

/// The reference answers at once.
fn answered(reference: &MemoryStore, now: Timestamp, command: Command) -> Outcome {
    command.ask(reference, Now::At(now)).now_or_never().expect("the reference waits for nothing")
}
