//! The relay: how a message gets to a queue at another node of a cluster, where no script reaches both.
//!
//! It sets out (nobody hands it out from then on), arrives (where a token is left, so that to bring it again changes nothing), and is
//! taken away at the queue that it left. What dies in a queue whose dead go elsewhere is noted down in the step in which it dies.
//! Whoever does these steps may end in between: a sweeper finds what is on its way and goes on with it.

use std::collections::BTreeSet;

use redis::Value;
use redrive_core::message::MessageId;
use redrive_core::policy::Verdict;
use redrive_core::queue::QueueName;
use redrive_store::{Bulk, BulkRefusal, Judged, Now, Signal, StoreError};

use crate::enqueue::part_done;
use crate::error::{Fault, damaged};
use crate::link::Args;
use crate::queue::Known;
use crate::reply::Reply;
use crate::signal::NOBODY;
use crate::store::Shared;

/// Most messages on their way that one look at a queue goes on with.
const RESUMED_MAX: usize = 100;

/// How a message fared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fared {
    /// It is in the other queue.
    Arrived,
    /// Somebody touched it before it set out.
    Touched,
    /// It is not there any more.
    Gone,
    /// The other queue has a message of that id.
    Duplicate,
    /// The other queue has no room for its type and source.
    NoClass,
    /// The other queue is not there.
    NoQueue,
}

impl Shared {
    /// Brings a message to another queue. `line` is what was seen of it; without one it set out before, or is dead and travels on.
    pub(crate) async fn relay(
        &self,
        now: Now,
        from: &Known,
        id: MessageId,
        line: &str,
        target: &QueueName,
    ) -> Result<Fared, Fault> {
        let mut args = Args::default();
        args.push(self.time_arg(now)).number(id).push(target.as_str()).push(line);
        let mut set_out = Reply::of(self.link.run(&self.link.scripts.depart, &from.keys, &args).await?)?;
        match set_out.text()?.as_str() {
            "e" => {}
            "l" => return Ok(Fared::Touched),
            _ => return Ok(Fared::Gone),
        }
        // Whatever goes wrong from here on, it is on its way, and nobody is told that nothing happened.
        self.bring(now, from, id, target, set_out).await.map_err(|fault| part_done(fault, 1))
    }

    /// Brings a message that has set out to its queue, and takes it away where it was.
    async fn bring(
        &self,
        now: Now,
        from: &Known,
        id: MessageId,
        target: &QueueName,
        mut set_out: Reply,
    ) -> Result<Fared, Fault> {
        let way = set_out.text()?;
        let mut args = Args::default();
        args.push(self.time_arg(now))
            .number(id)
            .push(from.id.as_str())
            .number(self.options.limits.classes_per_queue)
            .push(way.as_str());
        while set_out.len() > 0 {
            match set_out.next() {
                Value::BulkString(bytes) => args.push(bytes),
                other => args.push(crate::reply::text(other)?),
            };
        }
        let fared = match self.look(target).await? {
            Some(to) => {
                let mut arrived =
                    Reply::of(self.link.run(&self.link.scripts.arrive, &to.keys, &args).await?)?;
                match arrived.text()?.as_str() {
                    "e" => Fared::Arrived,
                    "d" => Fared::Duplicate,
                    "c" => Fared::NoClass,
                    "gone" => Fared::NoQueue,
                    other => return Err(damaged("an answer", other).into()),
                }
            }
            None => Fared::NoQueue,
        };
        let mut args = Args::default();
        args.push(self.time_arg(now)).number(id).flag(fared == Fared::Arrived).push(way);
        self.link.run(&self.link.scripts.departed, &from.keys, &args).await?;
        Ok(fared)
    }

    /// Whether the dead can set out for a queue. One that cannot be looked for now may be there: if it is not, they come back.
    pub(crate) async fn may_be_there(&self, name: &QueueName) -> Result<bool, Fault> {
        match self.known(name).await {
            Ok(known) => Ok(known.is_some()),
            Err(Fault::Again(_)) => Ok(true),
            Err(fault) => Err(fault),
        }
    }

    /// Lets those travel on that have just died, where their queue wants that. What does not get there now does later.
    pub(crate) async fn travel_on(&self, now: Now, known: &Known, judged: &mut Judged) {
        let Some(target) = known.settings.dead_letter_to.as_ref().filter(|_| self.link.cluster) else {
            return;
        };
        if !matches!(judged.verdict, Verdict::Dead(_)) {
            return;
        }
        match self.relay(now, known, judged.message, "", target).await {
            Ok(Fared::Arrived) => judged.moved_to = Some(target.clone()),
            Ok(_) => {}
            Err(fault) => {
                tracing::debug!(?fault, message = %judged.message, "a dead letter travels on later");
            }
        }
    }

    /// Brings selected messages to another queue, one after the other.
    pub(crate) async fn relay_all(
        &self,
        now: Now,
        known: &Known,
        selected: Vec<(MessageId, String)>,
        target: &QueueName,
        bulk: &mut Bulk,
    ) -> Result<Vec<MessageId>, Fault> {
        let (mut touched, mut last) = (Vec::new(), None);
        let mut left = selected.len() as u64;
        for (id, line) in selected {
            let fared = match (self.relay(now, known, id, &line, target).await, last) {
                (Ok(fared), _) => fared,
                // Those that have arrived are told of; the next step begins with this one.
                (Err(fault), Some(last)) if touched.is_empty() => {
                    tracing::warn!(?fault, queue = %known.queue.name, "a move came no further for now");
                    bulk.matched -= left;
                    bulk.next = Some(last);
                    return Ok(touched);
                }
                (Err(fault), _) => return Err(fault),
            };
            (last, left) = (Some(id), left - 1);
            let refusal = match fared {
                Fared::Arrived => {
                    bulk.applied.push(id);
                    continue;
                }
                Fared::Touched => {
                    touched.push(id);
                    continue;
                }
                Fared::Gone | Fared::NoQueue => BulkRefusal::NotFound,
                Fared::Duplicate => BulkRefusal::Duplicate(id),
                Fared::NoClass => BulkRefusal::TooManyClasses { max: self.options.limits.classes_per_queue },
            };
            bulk.refused.push((id, refusal));
        }
        Ok(touched)
    }

    /// Goes on with what is on its way out of a queue. What does not get there waits for the next time, and holds nobody up.
    pub(crate) async fn resume_relays(&self, now: Now, known: &Known) {
        if !self.link.cluster {
            return;
        }
        let mut arrived = BTreeSet::new();
        let mut away: BTreeSet<QueueName> = BTreeSet::new();
        let waits = |fault: Fault| {
            tracing::warn!(?fault, queue = %known.queue.name, "what is on its way to another queue waits");
        };
        for (id, target) in self.on_their_way(known).await.map_err(waits).unwrap_or_default() {
            if away.contains(&target) {
                continue;
            }
            match self.relay(now, known, id, "", &target).await {
                Ok(Fared::Arrived) => drop(arrived.insert(target)),
                Ok(_) => {}
                Err(fault) => {
                    // What is wrong with one message holds no other one up; a node that is away or full does.
                    let is_there =
                        matches!(&fault, Fault::Refused(_) | Fault::Undone(StoreError::Damaged { .. }));
                    waits(fault);
                    if !is_there {
                        away.insert(target);
                    }
                }
            }
        }
        // Whoever waits there has not heard of it; nor has this instance, which hears what nobody has told.
        let signals: Vec<Signal> = arrived.into_iter().map(Signal::Ready).collect();
        if let Err(fault) = self.tell_as(NOBODY, &signals).await {
            tracing::warn!(?fault, "nobody hears of what has arrived");
        }
    }

    /// What is on its way out of a queue, and where to: some of it, by chance, where that is much.
    async fn on_their_way(&self, known: &Known) -> Result<Vec<(MessageId, QueueName)>, Fault> {
        let leaving = self.link.keys.of_queue(&known.id, "leaving");
        let mut command = redis::cmd("HRANDFIELD");
        command.arg(&leaving).arg(RESUMED_MAX).arg("WITHVALUES");
        let mut found = Reply::of(self.link.send(&leaving, &command, false).await?)?;
        let mut all = Vec::new();
        while found.len() > 0 {
            // A pair comes flat, or as a pair.
            let (id, target) = match found.next() {
                pair @ Value::Array(_) => {
                    let mut pair = Reply::of(pair)?;
                    (pair.id()?, pair.text()?)
                }
                id => (crate::reply::read_id(&crate::reply::text(id)?)?, found.text()?),
            };
            match QueueName::new(target.split(' ').next().unwrap_or_default()) {
                Ok(target) => all.push((id, target)),
                Err(error) => tracing::error!(%error, %id, "nobody knows where a message is on its way to"),
            }
        }
        Ok(all)
    }
}
