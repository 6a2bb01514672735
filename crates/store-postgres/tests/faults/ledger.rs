//! What clients were told, and whether all of it can be true.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use redrive_core::message::{Message, MessageId};
use redrive_core::receipt::Claim;
use redrive_store::{Acked, EnqueueOutcome, Settled, StoreError};
use tokio::sync::watch;

/// How long anything may take on a machine that does a lot else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(50);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    Yes,
    No,
    Unknown,
}

impl Told {
    fn of(error: &StoreError) -> Self {
        match error {
            StoreError::OutcomeUnknown(_) => Self::Unknown,
            _ => Self::No,
        }
    }
}

#[derive(Debug, Default)]
struct Book {
    sent: BTreeMap<MessageId, Told>,
    delivered: BTreeSet<MessageId>,
    acked: BTreeMap<MessageId, Vec<Told>>,
    /// Those that were not there when they were acknowledged.
    missing: BTreeSet<MessageId>,
    epochs: BTreeSet<u16>,
    wrong: Vec<String>,
}

/// What clients were told.
#[derive(Debug)]
pub(crate) struct Ledger {
    book: Mutex<Book>,
    /// How many acks were answered with yes.
    acks: watch::Sender<usize>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self { book: Mutex::default(), acks: watch::Sender::new(0) }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }

    pub(crate) fn sent(&self, ids: &[MessageId], answer: &Result<Vec<EnqueueOutcome>, StoreError>) {
        let mut book = self.book();
        match answer {
            Ok(outcomes) => {
                for (id, outcome) in ids.iter().zip(outcomes) {
                    // Ids are never sent twice: a duplicate is one that the store made.
                    if !matches!(outcome, EnqueueOutcome::Enqueued { id: told, .. } if told == id) {
                        book.wrong.push(format!("{id} was enqueued once and answered with {outcome:?}"));
                    }
                    book.sent.insert(*id, Told::Yes);
                }
            }
            Err(error) => book.sent.extend(ids.iter().map(|id| (*id, Told::of(error)))),
        }
    }

    pub(crate) fn delivered(&self, messages: &[Message]) {
        let mut book = self.book();
        for message in messages {
            let id = message.id();
            if book.acked.get(&id).is_some_and(|told| told.contains(&Told::Yes)) {
                book.wrong.push(format!("{id} was acknowledged, and handed out after that"));
            }
            book.delivered.insert(id);
            book.epochs.extend(message.lease().map(|lease| lease.id.epoch()));
        }
    }

    pub(crate) fn acked(&self, claims: &[Claim], answer: &Result<Vec<Settled<Acked>>, StoreError>) {
        let mut book = self.book();
        let mut yes = 0;
        for (nth, claim) in claims.iter().enumerate() {
            let id = claim.message;
            let told = match answer {
                Ok(outcomes) => match &outcomes[nth] {
                    Settled::Applied(_) => Told::Yes,
                    Settled::NotFound => {
                        book.missing.insert(id);
                        Told::No
                    }
                    Settled::LeaseLost | Settled::Aborted => Told::No,
                },
                Err(error) => Told::of(error),
            };
            yes += usize::from(told == Told::Yes);
            book.acked.entry(id).or_default().push(told);
        }
        drop(book);
        self.acks.send_modify(|acks| *acks += yes);
    }

    /// Waits until so many more acks are answered with yes.
    pub(crate) async fn goes_on(&self, acks: usize) {
        let mut heard = self.acks.subscribe();
        let enough = *heard.borrow() + acks;
        let goes_on = tokio::time::timeout(PATIENCE, heard.wait_for(|acks| *acks >= enough)).await;
        assert!(goes_on.is_ok(), "the service does not go on: {} acks", *self.acks.borrow());
    }

    /// The epochs of all leases.
    pub(crate) fn epochs(&self) -> BTreeSet<u16> {
        self.book().epochs.clone()
    }

    /// How many enqueues nobody knows about.
    pub(crate) fn unknown(&self) -> usize {
        self.book().sent.values().filter(|told| **told == Told::Unknown).count()
    }

    /// Whether all that was told can be true, once the queue is empty.
    pub(crate) fn check(&self) {
        let book = self.book();
        let mut wrong = book.wrong.clone();
        for (id, told) in &book.sent {
            let acks = book.acked.get(id).map(Vec::as_slice).unwrap_or_default();
            let may_be_acked = acks.iter().any(|told| *told != Told::No);
            match told {
                Told::Yes if !may_be_acked => wrong.push(format!("{id} was accepted, and is lost")),
                Told::No if book.delivered.contains(id) => {
                    wrong.push(format!("{id} was not accepted, and handed out"));
                }
                _ => {}
            }
            if acks.iter().filter(|told| **told == Told::Yes).count() > 1 {
                wrong.push(format!("{id} was acknowledged twice"));
            }
            if book.missing.contains(id) && !may_be_acked {
                wrong.push(format!("{id} was gone before anybody acknowledged it"));
            }
        }
        assert!(wrong.is_empty(), "{} wrong: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
    }
}
