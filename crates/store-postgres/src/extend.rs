//! extend: leased → leased, with a later deadline.

use redrive_core::lifecycle::{self, Verb};
use redrive_core::message::Phase;
use redrive_core::time::Timestamp;
use redrive_store::{Batch, ExtendItem, Now, Settled};

use crate::error::Fault;
use crate::settle::{Held, Leased, finish, settled};
use crate::store::Shared;
use crate::work::Work;

impl Shared {
    pub(crate) async fn extend(
        &self,
        now: Now,
        batch: &Batch<ExtendItem>,
    ) -> Result<Vec<Settled<Timestamp>>, Fault> {
        let mut work = Work::begin(self, now).await?;
        let targets = batch.items().iter().map(|item| (item.target.queue(), item.target.message()));
        let mut held = Held::read(&mut work, targets).await?;
        let mut outcomes = Vec::new();
        for item in batch.items() {
            outcomes.push(settled(
                held.take(&work, &item.target).map(|leased| work.extend_one(leased, item, &mut held)),
            ));
        }
        finish(work, held, batch.is_all_or_nothing(), outcomes).await
    }
}

impl Work<'_> {
    fn extend_one(&mut self, mut leased: Leased, item: &ExtendItem, held: &mut Held) -> Timestamp {
        let deadline =
            lifecycle::extend(&mut leased.lease, item.time, leased.known.settings.max_lease, self.now);
        leased.kept.message.progress.phase = Phase::Leased(leased.lease.clone());
        if item.checkpoint.is_some() {
            leased.kept.message.history.checkpoint.clone_from(&item.checkpoint);
            self.remember(&mut leased.kept);
        }
        self.tally(leased.known.id).verb(Verb::Extend, 1);
        held.put(leased);
        deadline
    }
}
