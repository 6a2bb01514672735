//! nack: leased → delayed | ready | dead.

use redrive_core::dice::Dice;
use redrive_core::lifecycle::Terms;
use redrive_core::policy::{Failure, Sentence};
use redrive_store::{Batch, Judged, NackItem, Now, Settled};

use crate::enqueue::part_done;
use crate::error::Fault;
use crate::link::Args;
use crate::queue::Known;
use crate::settle::{Settlement, checkpoint, claimed, each};
use crate::store::Shared;
use crate::sweep::{cause_of, judged, sentence_args};
use crate::words::cause_word;

impl Shared {
    pub(crate) async fn nack(
        &self,
        now: Now,
        batch: &Batch<NackItem>,
        seed: u64,
    ) -> Result<Vec<Settled<Judged>>, Fault> {
        let Some(items) = self.one_by_one(batch, |item| item.claim.message) else {
            return self.nack_all(now, batch, seed).await;
        };
        let mut outcomes = Vec::with_capacity(items.len());
        for (done, item) in items.into_iter().enumerate() {
            let one = self.nack_all(now, &Batch::one(item)?, seed).await;
            outcomes.extend(one.map_err(|fault| part_done(fault, done))?);
        }
        Ok(outcomes)
    }

    async fn nack_all(
        &self,
        now: Now,
        batch: &Batch<NackItem>,
        seed: u64,
    ) -> Result<Vec<Settled<Judged>>, Fault> {
        let classes = self.options.limits.classes_per_queue;
        let item = |args: &mut Args, known: &Known, item: &NackItem| {
            sentence_args(args, nacked(known, item, seed), &item.error);
            checkpoint(args, item.checkpoint.as_ref());
            args.push(cause_word(cause_of(false))).number(classes);
        };
        let settlement = Settlement {
            verb: &self.link.scripts.nack,
            words: 12,
            queue: |_| String::new(),
            kills: true,
            target: |item: &NackItem| claimed(&item.claim),
            item: &item,
        };
        let said = self.settle(now, batch, &settlement).await?;
        let outcomes = each(batch, said, |item, (known, at, mut from)| {
            let terms = Terms::new(&known.settings, item.claim.max_attempts);
            let about = (&item.claim.queue, item.claim.message, at);
            let sentence = nacked(&known, item, seed);
            let judged = judged(&mut from, about, &terms, (item.error.clone(), sentence))?;
            Ok((known, judged))
        })?;
        Ok(self.travelled(now, outcomes).await)
    }
}

/// What the judge says of a nack. The same claim is judged the same however often it is asked.
fn nacked(known: &Known, item: &NackItem, seed: u64) -> Sentence {
    let claim = &item.claim;
    let terms = Terms::new(&known.settings, claim.max_attempts);
    let mut dice = Dice::for_attempt(seed, claim.message, claim.attempts);
    terms.sentence(claim.attempts, claim.deliveries, Failure::Nack(item.asked), &mut dice)
}
