//! release: leased → ready | delayed, with the attempt refunded.

use std::sync::Arc;

use redrive_core::lifecycle::{self, Verb};
use redrive_store::{Batch, Now, ReleaseItem, Released, Settled};

use crate::error::Fault;
use crate::settle::{Held, Leased, finish};
use crate::store::Shared;
use crate::work::{BACK, Work};

impl Shared {
    pub(crate) async fn release(
        &self,
        now: Now,
        batch: &Batch<ReleaseItem>,
    ) -> Result<Vec<Settled<Released>>, Fault> {
        let mut work = Work::begin(self, now).await?;
        let targets = batch.items().iter().map(|item| (item.target.queue(), item.target.message()));
        let mut held = Held::read(&mut work, targets).await?;
        let mut outcomes = Vec::new();
        for item in batch.items() {
            outcomes.push(match held.take(&work, &item.target) {
                Ok(leased) => Settled::Applied(work.release_one(leased, item, &mut held).await?),
                Err(refused) => refused.into(),
            });
        }
        finish(work, held, batch.is_all_or_nothing(), outcomes).await
    }
}

impl Work<'_> {
    async fn release_one(
        &mut self,
        mut leased: Leased,
        item: &ReleaseItem,
        held: &mut Held,
    ) -> Result<Released, Fault> {
        let (known, consumer) = (Arc::clone(&leased.known), leased.lease.consumer.clone());
        let terms = Self::terms(&known, &leased.kept);
        let progress = &mut leased.kept.message.progress;
        lifecycle::release(progress, item.delay, BACK, self.now);
        let visible_at = progress.visible_at;
        let spent = terms.spent(progress.attempts, progress.deliveries_counted());
        self.tally(known.id).verb(Verb::Release, 1);
        // With no delivery left nothing could ever be done with it.
        let lapsed = match spent {
            Some(reason) => Some(self.lapse(&known, &mut leased.kept, reason).await?),
            None => None,
        };
        held.put(leased);
        Ok(Released { visible_at, consumer, lapsed })
    }
}
