//! release: leased → ready | delayed, with the attempt refunded.

use std::collections::HashSet;

use redrive_core::lifecycle::Terms;
use redrive_core::time::Timestamp;
use redrive_store::{Batch, Now, ReleaseItem, Released, Settled};

use crate::error::Fault;
use crate::queue::Known;
use crate::reply::Reply;
use crate::settle::{Settlement, targeted};
use crate::store::Shared;
use crate::sweep::Seen;
use crate::words::read_consumer;

impl Shared {
    pub(crate) async fn release(
        &self,
        now: Now,
        batch: &Batch<ReleaseItem>,
    ) -> Result<Vec<Settled<Released>>, Fault> {
        let settlement = Settlement {
            verb: &self.link.scripts.release,
            words: 4,
            queue: |_| String::new(),
            kills: false,
            target: |item: &ReleaseItem| targeted(&item.target),
            item: &|args, _, item| {
                args.maybe(item.delay.map(redrive_core::time::Millis::get));
            },
        };
        let said = self.settle(now, batch, &settlement).await?;
        let mut outcomes = Vec::with_capacity(said.len());
        let mut left = HashSet::new();
        for (one, item) in said.into_iter().zip(batch.items()) {
            let (queue, message, _) = targeted(&item.target);
            outcomes.push(match one {
                Settled::Applied((known, at, from)) => {
                    let released = self.released(now, at, &known, from).await?;
                    if released.lapsed.as_ref().is_some_and(|lapsed| lapsed.moved_to.is_some()) {
                        left.insert((queue, message));
                    }
                    Settled::Applied(released)
                }
                Settled::NotFound => Settled::NotFound,
                // An earlier item has sent it to another queue since the script looked.
                Settled::LeaseLost if left.contains(&(queue, message)) => Settled::NotFound,
                Settled::LeaseLost => Settled::LeaseLost,
                Settled::Aborted => Settled::Aborted,
            });
        }
        Ok(outcomes)
    }

    /// Where a released message stands. With no delivery left nothing could ever be done with it.
    async fn released(
        &self,
        now: Now,
        at: Timestamp,
        known: &Known,
        mut from: Reply,
    ) -> Result<Released, Fault> {
        let (visible_at, consumer) = (from.time()?, read_consumer(&from.text()?)?);
        let mut lapsed = None;
        if let Some(seen) = Seen::read(&known.queue.name, from.reply()?)? {
            let progress = &seen.message.progress;
            let terms = Terms::new(&known.settings, seen.message.spec.max_attempts);
            if terms.spent(progress.attempts, progress.deliveries_counted()).is_some() {
                // It is released, whatever becomes of this: should it fail, the next lease puts it aside, and a sweeper finds it there.
                match self.lapse_seen(now, at, known, vec![seen], None).await {
                    Ok(mut judged) => lapsed = judged.pop(),
                    Err(fault) => {
                        tracing::warn!(?fault, queue = %known.queue.name, "a released message lapses later");
                    }
                }
            }
        }
        Ok(Released { visible_at, consumer, lapsed })
    }
}
