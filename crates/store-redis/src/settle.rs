//! ack and bury, and what all settlements have in common.

use std::sync::Arc;

use redrive_core::lease::Lease;
use redrive_core::lifecycle::Terms;
use redrive_core::message::{Checkpoint, MessageId};
use redrive_core::policy::Sentence;
use redrive_core::queue::QueueName;
use redrive_core::receipt::Claim;
use redrive_core::time::Timestamp;
use redrive_store::{AckItem, Acked, Batch, BuryItem, Judged, LeaseTarget, Now, Settled, StoreError};

use crate::enqueue::part_done;
use crate::error::{Fault, damaged, unavailable};
use crate::link::Args;
use crate::queue::Known;
use crate::reply::Reply;
use crate::script::Verb;
use crate::store::{LOOKS, Shared};
use crate::sweep::{cause_of, judged, sentence_args};
use crate::words::{Words, cause_word, lease_word, read_pair};

/// A settlement, as far as all of them are alike.
pub(crate) struct Settlement<'a, T> {
    /// Its script.
    pub(crate) verb: &'a Verb,
    /// How many words an item has, the three that all have included.
    pub(crate) words: usize,
    /// The word that the script reads of a queue.
    pub(crate) queue: fn(&Known) -> String,
    /// Whether the dead of a queue may go to another one.
    pub(crate) kills: bool,
    /// Which lease an item is about.
    pub(crate) target: fn(&T) -> (&QueueName, MessageId, String),
    /// The words of an item behind those.
    pub(crate) item: &'a (dyn Fn(&mut Args, &Known, &T) + Sync),
}

/// What became of an item: what the script says of it, and the queue as it was known.
pub(crate) type Said = Settled<(Arc<Known>, Timestamp, Reply)>;

pub(crate) fn claimed(claim: &Claim) -> (&QueueName, MessageId, String) {
    (&claim.queue, claim.message, lease_word(claim.lease))
}

pub(crate) fn targeted(target: &LeaseTarget) -> (&QueueName, MessageId, String) {
    (target.queue(), target.message(), target.lease().map_or_else(String::new, lease_word))
}

pub(crate) fn checkpoint(args: &mut Args, checkpoint: Option<&Checkpoint>) {
    args.flag(checkpoint.is_some());
    args.push(checkpoint.map_or_else(Vec::new, |point| point.bytes().to_vec()));
}

impl Shared {
    pub(crate) async fn settle<T>(
        &self,
        now: Now,
        batch: &Batch<T>,
        settlement: &Settlement<'_, T>,
    ) -> Result<Vec<Said>, Fault> {
        let mut names: Vec<&QueueName> = Vec::new();
        for item in batch.items() {
            let (name, ..) = (settlement.target)(item);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let mut said: Vec<Option<Said>> = batch.items().iter().map(|_| None).collect();
        if !self.link.cluster {
            self.settle_in(now, batch, settlement, &names, &mut said).await?;
        } else if batch.is_all_or_nothing() && names.len() > 1 {
            return Err(self.spans_queues().into());
        } else {
            for (done, name) in names.iter().enumerate() {
                let one = self.settle_in(now, batch, settlement, &[*name], &mut said).await;
                one.map_err(|fault| part_done(fault, done))?;
            }
        }
        let missing = || damaged("an answer", "an outcome is missing").into();
        said.into_iter().map(|said| said.ok_or_else(missing)).collect()
    }

    /// Settles what is in these queues, in one step.
    async fn settle_in<T>(
        &self,
        now: Now,
        batch: &Batch<T>,
        settlement: &Settlement<'_, T>,
        names: &[&QueueName],
        said: &mut [Option<Said>],
    ) -> Result<(), Fault> {
        for _ in 0..LOOKS {
            let mut queues: Vec<(QueueName, Arc<Known>)> = Vec::new();
            for name in names {
                if let Some(known) = self.known(name).await? {
                    queues.push(((*name).clone(), known));
                }
            }
            let all = match (batch.is_all_or_nothing(), queues.len() < names.len()) {
                (false, _) => "0",
                (true, false) => "1",
                (true, true) => "2",
            };
            // Queues that the dead go to come behind those of the batch.
            let own = queues.len();
            let mut targets: Vec<String> = vec![String::new(); own];
            if settlement.kills {
                for at in 0..own {
                    let Some((_, known)) = queues.get(at) else { break };
                    let Some(name) = known.settings.dead_letter_to.clone() else { continue };
                    if self.link.cluster {
                        let there = self.may_be_there(&name).await?;
                        if let Some(target) = targets.get_mut(at).filter(|_| there) {
                            *target = format!("@{name}");
                        }
                        continue;
                    }
                    let there = queues.iter().position(|(known, _)| *known == name);
                    let place = match there {
                        Some(place) => Some(place),
                        None => self.known(&name).await?.map(|known| {
                            queues.push((name, known));
                            queues.len() - 1
                        }),
                    };
                    if let (Some(target), Some(place)) = (targets.get_mut(at), place) {
                        *target = (place + 1).to_string();
                    }
                }
            }
            let mut args = Args::default();
            args.push(self.time_arg(now)).push(all).number(settlement.words).number(queues.len());
            let mut keys = Vec::with_capacity(2 * queues.len());
            for (at, (_, known)) in queues.iter().enumerate() {
                let own_word = || {
                    if settlement.kills { targets.get(at).cloned() } else { Some((settlement.queue)(known)) }
                };
                args.push(if at < own { known.stamp.as_str() } else { "*" })
                    .push(own_word().unwrap_or_default());
                keys.extend(known.keys.iter().cloned());
            }
            let mut sent = Vec::new();
            for (at, item) in batch.items().iter().enumerate() {
                let (name, message, lease) = (settlement.target)(item);
                if !names.contains(&name) {
                    continue;
                }
                let Some(queue) = queues.iter().take(own).position(|(known, _)| known == name) else {
                    put(said, at, Settled::NotFound);
                    continue;
                };
                let Some((_, known)) = queues.get(queue) else { continue };
                args.number(queue + 1).number(message).push(lease);
                (settlement.item)(&mut args, known, item);
                sent.push((at, Arc::clone(known)));
            }
            if sent.is_empty() {
                return Ok(());
            }
            let mut answer = Reply::of(self.link.run(settlement.verb, &keys, &args).await?)?;
            if answer.text()? != "ok" {
                let changed = usize::try_from(answer.number()?).unwrap_or_default();
                if let Some((name, _)) = queues.get(changed.wrapping_sub(1)) {
                    self.forget(name);
                }
                continue;
            }
            let now = answer.time()?;
            let (mut items, mut classes) = (answer.reply()?, answer.reply()?);
            for (at, known) in sent {
                let mut from = Reply::of_item(items.next(), classes.next())?;
                let one = match from.text()?.as_str() {
                    "e" => Settled::Applied((known, now, from)),
                    "n" => Settled::NotFound,
                    "l" => Settled::LeaseLost,
                    "a" => Settled::Aborted,
                    other => return Err(damaged("an answer", other).into()),
                };
                put(said, at, one);
            }
            return Ok(());
        }
        Err(Fault::Again(unavailable("the queue is changed all the time")))
    }

    pub(crate) async fn ack(&self, now: Now, batch: &Batch<AckItem>) -> Result<Vec<Settled<Acked>>, Fault> {
        let settlement = Settlement {
            verb: &self.link.scripts.ack,
            words: 3,
            queue: |known| u8::from(known.settings.retain_done.is_some()).to_string(),
            kills: false,
            target: |item: &AckItem| claimed(&item.claim),
            item: &|_, _, _| (),
        };
        let said = self.settle(now, batch, &settlement).await?;
        each(batch, said, |item, (_, _, mut from)| {
            let (kind, _) = read_pair(&from.text()?)?;
            let line = from.text()?;
            let attempt = Words::read(&line)?.attempt().ok_or_else(|| damaged("a lease", line))?;
            let (attempts, Lease { consumer, leased_at, .. }) = attempt;
            Ok(Acked { message: item.claim.message, kind, attempts, leased_at, consumer })
        })
    }

    /// The items of a batch that must be settled one by one: in a cluster a message that died is still there until it has
    /// travelled on, and what an item finds that is about the same message should be what it would find anywhere.
    pub(crate) fn one_by_one<T: Clone>(
        &self,
        batch: &Batch<T>,
        message: impl Fn(&T) -> MessageId,
    ) -> Option<Vec<T>> {
        let mut messages: Vec<MessageId> = batch.items().iter().map(message).collect();
        messages.sort_unstable();
        let twice = messages.windows(2).any(|pair| pair.first() == pair.last());
        (self.link.cluster && twice && !batch.is_all_or_nothing()).then(|| batch.items().to_vec())
    }

    pub(crate) async fn bury(
        &self,
        now: Now,
        batch: &Batch<BuryItem>,
    ) -> Result<Vec<Settled<Judged>>, Fault> {
        let Some(items) = self.one_by_one(batch, |item| item.claim.message) else {
            return self.bury_all(now, batch).await;
        };
        let mut outcomes = Vec::with_capacity(items.len());
        for (done, item) in items.into_iter().enumerate() {
            let one = self.bury_all(now, &Batch::one(item)?).await;
            outcomes.extend(one.map_err(|fault| part_done(fault, done))?);
        }
        Ok(outcomes)
    }

    async fn bury_all(&self, now: Now, batch: &Batch<BuryItem>) -> Result<Vec<Settled<Judged>>, Fault> {
        let classes = self.options.limits.classes_per_queue;
        let item = |args: &mut Args, _: &Known, item: &BuryItem| {
            sentence_args(args, Sentence::Dead(item.reason), &item.error);
            checkpoint(args, None);
            args.push(cause_word(cause_of(true))).number(classes);
        };
        let settlement = Settlement {
            verb: &self.link.scripts.nack,
            words: 12,
            queue: |_| String::new(),
            kills: true,
            target: |item: &BuryItem| claimed(&item.claim),
            item: &item,
        };
        let said = self.settle(now, batch, &settlement).await?;
        let outcomes = each(batch, said, |item, (known, at, mut from)| {
            let terms = Terms::new(&known.settings, item.claim.max_attempts);
            let about = (&item.claim.queue, item.claim.message, at);
            let judged = judged(&mut from, about, &terms, (item.error.clone(), Sentence::Dead(item.reason)))?;
            Ok((known, judged))
        })?;
        Ok(self.travelled(now, outcomes).await)
    }

    /// The outcomes, after those that died have travelled on where they are to.
    pub(crate) async fn travelled(
        &self,
        now: Now,
        outcomes: Vec<Settled<(Arc<Known>, Judged)>>,
    ) -> Vec<Settled<Judged>> {
        let mut all = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            all.push(match outcome {
                Settled::Applied((known, mut judged)) => {
                    self.travel_on(now, &known, &mut judged).await;
                    Settled::Applied(judged)
                }
                Settled::NotFound => Settled::NotFound,
                Settled::LeaseLost => Settled::LeaseLost,
                Settled::Aborted => Settled::Aborted,
            });
        }
        all
    }
}

fn put<T>(said: &mut [Option<T>], at: usize, one: T) {
    if let Some(place) = said.get_mut(at) {
        *place = Some(one);
    }
}

/// The outcome of each item.
pub(crate) fn each<T, O>(
    batch: &Batch<T>,
    said: Vec<Said>,
    read: impl Fn(&T, (Arc<Known>, Timestamp, Reply)) -> Result<O, StoreError>,
) -> Result<Vec<Settled<O>>, Fault> {
    let one = |(item, said): (&T, Said)| {
        Ok(match said {
            Settled::Applied(applied) => Settled::Applied(read(item, applied)?),
            Settled::NotFound => Settled::NotFound,
            Settled::LeaseLost => Settled::LeaseLost,
            Settled::Aborted => Settled::Aborted,
        })
    };
    batch.items().iter().zip(said).map(one).collect()
}
