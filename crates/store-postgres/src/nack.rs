//! nack: leased → delayed | ready | dead.

use std::sync::Arc;

use redrive_core::dice::Dice;
use redrive_core::lifecycle::{self, Verb};
use redrive_store::{Batch, Judged, LeaseTarget, NackItem, Now, Settled};

use crate::error::Fault;
use crate::settle::{Held, Leased, finish};
use crate::store::Shared;
use crate::work::{BACK, Work};

impl Shared {
    pub(crate) async fn nack(
        &self,
        now: Now,
        batch: &Batch<NackItem>,
        seed: u64,
    ) -> Result<Vec<Settled<Judged>>, Fault> {
        let mut work = Work::begin(self, now).await?;
        let targets = batch.items().iter().map(|item| (&item.claim.queue, item.claim.message));
        let mut held = Held::read(&mut work, targets).await?;
        let mut outcomes = Vec::new();
        for item in batch.items() {
            outcomes.push(match held.take(&work, &LeaseTarget::Claim(item.claim.clone())) {
                Ok(leased) => Settled::Applied(work.nack_one(leased, item, seed, &mut held).await?),
                Err(refused) => refused.into(),
            });
        }
        finish(work, held, batch.is_all_or_nothing(), outcomes).await
    }
}

impl Work<'_> {
    async fn nack_one(
        &mut self,
        mut leased: Leased,
        item: &NackItem,
        seed: u64,
        held: &mut Held,
    ) -> Result<Judged, Fault> {
        let known = Arc::clone(&leased.known);
        let terms = Self::terms(&known, &leased.kept);
        if item.checkpoint.is_some() {
            leased.kept.message.history.checkpoint.clone_from(&item.checkpoint);
        }
        let id = leased.kept.message.id();
        let progress = &mut leased.kept.message.progress;
        let mut dice = Dice::for_attempt(seed, id, progress.attempts);
        let failure = (item.asked, item.error.clone());
        let ended =
            lifecycle::nack(progress, leased.lease.clone(), &terms, failure, BACK, self.now, &mut dice);
        let judged = self.ended(&known, Verb::Nack, &mut leased.kept, ended).await?;
        held.put(leased);
        Ok(judged)
    }
}
