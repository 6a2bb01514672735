//! extend: leased → leased, with a later deadline.

use redrive_core::time::Timestamp;
use redrive_store::{Batch, ExtendItem, Now, Settled};

use crate::error::Fault;
use crate::settle::{Settlement, checkpoint, each, targeted};
use crate::store::Shared;

impl Shared {
    pub(crate) async fn extend(
        &self,
        now: Now,
        batch: &Batch<ExtendItem>,
    ) -> Result<Vec<Settled<Timestamp>>, Fault> {
        let settlement = Settlement {
            verb: &self.link.scripts.extend,
            words: 6,
            queue: |known| known.settings.max_lease.get().to_string(),
            kills: false,
            target: |item: &ExtendItem| targeted(&item.target),
            item: &|args, _, item| {
                args.number(item.time.get());
                checkpoint(args, item.checkpoint.as_ref());
            },
        };
        let said = self.settle(now, batch, &settlement).await?;
        each(batch, said, |_, (_, _, mut from)| from.time())
    }
}
