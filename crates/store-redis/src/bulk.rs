//! What redrive, discard, move and reschedule have in common. Messages are looked for, and each is changed
//! if it is still as it was seen; who was touched meanwhile is looked at again.

use redrive_core::message::{Message, MessageId};
use redrive_store::{Bulk, BulkRefusal, Now, QueueNotFound, Selection};

use crate::enqueue::part_done;
use crate::error::{Fault, unavailable};
use crate::link::Args;
use crate::list::Search;
use crate::queue::Known;
use crate::reply::Reply;
use crate::script::Verb;
use crate::store::{LOOKS, Shared};

/// How a verb changes many messages.
pub(crate) struct Change<'a> {
    /// Its script.
    pub(crate) verb: &'a Verb,
    /// Another queue that it is about.
    pub(crate) target: Option<&'a Known>,
    /// The words of the verb.
    pub(crate) words: Vec<String>,
}

impl Shared {
    pub(crate) async fn bulk(
        &self,
        now: Now,
        selection: &Selection,
        starts: impl Fn(&Message) -> bool,
        change: Change<'_>,
    ) -> Result<Bulk, Fault> {
        selection.check()?;
        let known =
            self.look(&selection.queue).await?.ok_or_else(|| QueueNotFound(selection.queue.clone()))?;
        let at = self.queue_clock(now, &known).await?;
        let search = Search {
            filter: &selection.filter,
            after: selection.after,
            until: selection.until,
            newest_first: false,
            limit: selection.limit.get(),
        };
        let found = self.search(&known, &search, at, &starts).await?;
        let mut bulk = Bulk { matched: found.seen.len() as u64, next: found.next, ..Bulk::default() };
        if selection.dry_run || found.seen.is_empty() {
            return Ok(bulk);
        }
        let mut left: Vec<(MessageId, String)> =
            found.seen.into_iter().map(|seen| (seen.message.id(), seen.line)).collect();
        // Whoever is told that nothing happened does all of it again, and counts what was done by then as somebody else's.
        let done = |bulk: &Bulk| bulk.applied.len() + bulk.refused.len();
        for _ in 0..LOOKS {
            let step = self.step(now, &known, &change, &left, &mut bulk).await;
            let touched = step.map_err(|fault| part_done(fault, done(&bulk)))?;
            if touched.is_empty() {
                return Ok(bulk);
            }
            // Somebody was at them in between: what they are now decides.
            let ids = redrive_store::Filter { ids: touched, ..selection.filter.clone() };
            let again =
                Search { filter: &ids, after: None, until: None, newest_first: false, limit: left.len() };
            let found = self.search(&known, &again, at, &starts).await;
            let found = found.map_err(|fault| part_done(fault, done(&bulk)))?;
            let still: Vec<(MessageId, String)> =
                found.seen.into_iter().map(|seen| (seen.message.id(), seen.line)).collect();
            bulk.matched -= (ids.ids.len() - still.len()) as u64;
            left = still;
        }
        let busy = Fault::Again(unavailable("others were at the same messages all the time"));
        Err(part_done(busy, done(&bulk)))
    }

    /// Changes those that are as they were seen; answers who is not.
    async fn step(
        &self,
        now: Now,
        known: &Known,
        change: &Change<'_>,
        left: &[(MessageId, String)],
        bulk: &mut Bulk,
    ) -> Result<Vec<MessageId>, Fault> {
        if let Some(target) = change.target.filter(|_| self.link.cluster) {
            return self.relay_all(now, known, left.to_vec(), &target.queue.name, bulk).await;
        }
        let others = change.target.iter().flat_map(|target| &target.keys);
        let keys: Vec<String> = known.keys.iter().chain(others).cloned().collect();
        let mut args = Args::default();
        args.push(self.time_arg(now)).number(2).number(change.words.len());
        for word in &change.words {
            args.push(word.as_str());
        }
        for (id, line) in left {
            args.number(id).push(line.as_str());
        }
        let mut answer = Reply::of(self.link.run(change.verb, &keys, &args).await?)?;
        if answer.text()? != "ok" {
            return Err(Fault::Again(unavailable("the queue was deleted at this moment")));
        }
        let _now = answer.time()?;
        let mut touched = Vec::new();
        for ((id, _), mut from) in left.iter().zip(answer.replies()?) {
            match from.text()?.as_str() {
                "e" => bulk.applied.push(*id),
                "n" => bulk.refused.push((*id, BulkRefusal::NotFound)),
                "d" => bulk.refused.push((*id, BulkRefusal::Duplicate(from.id()?))),
                "c" => {
                    let max = self.options.limits.classes_per_queue;
                    bulk.refused.push((*id, BulkRefusal::TooManyClasses { max }));
                }
                "k" => {
                    let max = self.options.limits.dedup_keys_per_queue;
                    bulk.refused.push((*id, BulkRefusal::TooManyDedupKeys { max }));
                }
                _ => touched.push(*id),
            }
        }
        Ok(touched)
    }
}
