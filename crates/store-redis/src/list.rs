//! get and list: a look that takes no lease; and the way over the messages of a queue that all verbs for many go.

use redrive_core::limits::BATCH_BYTES_MAX;
use redrive_core::message::{Message, MessageId, State};
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{Filter, ListRequest, Now, Page, QueueError};

use crate::error::Fault;
use crate::lease::{message, seen};
use crate::link::Args;
use crate::queue::Known;
use crate::reply::Reply;
use crate::store::Shared;
use crate::sweep::Seen;
use crate::words::Words;

/// How many messages are looked at in one step.
const STEP: usize = 500;
/// Most messages that one call looks at; then it says where it was.
const LOOKED_MAX: usize = 20_000;
/// Most leased, dead or done messages that are read at once and sorted here, instead of looking at all messages.
const APART_MAX: usize = 2_000;

/// Messages that match, and where to go on.
pub(crate) struct Matching {
    pub(crate) seen: Vec<Seen>,
    /// Where the next look starts, where there is more.
    pub(crate) next: Option<MessageId>,
}

/// Which messages somebody looks for.
pub(crate) struct Search<'a> {
    pub(crate) filter: &'a Filter,
    pub(crate) after: Option<MessageId>,
    pub(crate) until: Option<MessageId>,
    pub(crate) newest_first: bool,
    pub(crate) limit: usize,
}

impl Shared {
    /// The next messages of a queue by id, after one and up to another.
    pub(crate) async fn page(
        &self,
        known: &Known,
        after: Option<MessageId>,
        until: Option<MessageId>,
        newest_first: bool,
    ) -> Result<Vec<Seen>, Fault> {
        let beyond = |id: MessageId| format!("({id}");
        let (from, to) = if newest_first {
            ("-".to_owned(), after.map_or_else(|| "+".to_owned(), beyond))
        } else {
            let to = until.map_or_else(|| "+".to_owned(), |until| format!("[{until}"));
            (after.map_or_else(|| "-".to_owned(), beyond), to)
        };
        let mut args = Args::default();
        args.push("0").push("range").push(from).push(to).flag(newest_first).number(STEP);
        Ok(self.pages(known, &args).await?.unwrap_or_default())
    }

    /// Messages by a page; nothing where there are too many to be answered at once.
    async fn pages(&self, known: &Known, args: &Args) -> Result<Option<Vec<Seen>>, Fault> {
        let mut answer = Reply::of(self.link.run(&self.link.scripts.page, &known.keys, args).await?)?;
        match answer.text()?.as_str() {
            "ok" => {
                let _now = answer.time()?;
                Ok(Some(seen(&known.queue.name, answer.replies()?)?))
            }
            "many" => Ok(None),
            _ => {
                self.forget(&known.queue.name);
                Err(redrive_store::QueueNotFound(known.queue.name.clone()).into())
            }
        }
    }

    /// The messages that can match and are known apart, in the order that is wanted; nothing where all must be looked at.
    async fn apart(&self, known: &Known, search: &Search<'_>) -> Result<Option<Vec<Seen>>, Fault> {
        let mut args = Args::default();
        args.push("0");
        if search.filter.ids.is_empty() {
            let name = |state: &State| match state {
                State::Leased => Some("deadlines"),
                State::Dead => Some("dead"),
                State::Done => Some("done"),
                State::Delayed | State::Ready => None,
            };
            let names: Option<Vec<&str>> = search.filter.states.iter().map(name).collect();
            let Some(mut names) = names.filter(|names| !names.is_empty()) else { return Ok(None) };
            names.sort_unstable();
            names.dedup();
            args.push("states").number(APART_MAX);
            for name in names {
                args.push(name);
            }
        } else {
            args.push("ids");
            for id in &search.filter.ids {
                args.number(id);
            }
        }
        let Some(mut found) = self.pages(known, &args).await? else { return Ok(None) };
        found.sort_by_key(|seen| seen.message.id());
        found.dedup_by_key(|seen| seen.message.id());
        if search.newest_first {
            found.reverse();
        }
        let wanted = |seen: &Seen| {
            let id = seen.message.id();
            let beyond = |after: MessageId| if search.newest_first { id < after } else { id > after };
            search.after.is_none_or(beyond) && search.until.is_none_or(|until| id <= until)
        };
        found.retain(wanted);
        Ok(Some(found))
    }

    /// Messages that match a filter and start in the right state, one more than the limit where there are more.
    pub(crate) async fn search(
        &self,
        known: &Known,
        search: &Search<'_>,
        now: Timestamp,
        starts: impl Fn(&Message) -> bool,
    ) -> Result<Matching, Fault> {
        let fits = |seen: &Seen| search.filter.matches(&seen.message, now) && starts(&seen.message);
        if let Some(found) = self.apart(known, search).await? {
            let seen: Vec<Seen> = found.into_iter().filter(fits).take(search.limit + 1).collect();
            return Ok(limited(seen, search.limit));
        }
        let (mut seen, mut after, mut looked) = (Vec::new(), search.after, 0);
        loop {
            let page = self.page(known, after, search.until, search.newest_first).await?;
            looked += page.len();
            let Some(last) = page.last().map(|seen| seen.message.id()) else {
                return Ok(limited(seen, search.limit));
            };
            after = Some(last);
            seen.extend(page.into_iter().filter(fits));
            if seen.len() > search.limit {
                return Ok(limited(seen, search.limit));
            }
            if looked >= LOOKED_MAX {
                return Ok(Matching { seen, next: after });
            }
        }
    }

    /// Whole messages, those that are still there.
    pub(crate) async fn read(&self, known: &Known, ids: &[MessageId]) -> Result<Vec<Message>, Fault> {
        let mut args = Args::default();
        args.push("0");
        for id in ids {
            args.number(id);
        }
        let mut answer = Reply::of(self.link.run(&self.link.scripts.read, &known.keys, &args).await?)?;
        if answer.text()? != "ok" {
            self.forget(&known.queue.name);
            return Ok(Vec::new());
        }
        let _now = answer.time()?;
        let replies = answer.replies()?;
        replies.into_iter().map(|from| message(&known.queue.name, from).map_err(Fault::from)).collect()
    }

    pub(crate) async fn get(&self, queue: &QueueName, id: MessageId) -> Result<Option<Message>, Fault> {
        for _ in 0..2 {
            let Some(known) = self.known(queue).await? else { return Ok(None) };
            if let Some(message) = self.read(&known, &[id]).await?.pop() {
                return Ok(Some(message));
            }
            // It is not there, or the queue is another one by now.
            self.forget(queue);
        }
        Ok(None)
    }

    pub(crate) async fn list(&self, now: Now, request: &ListRequest) -> Result<Page, Fault> {
        request.check()?;
        let known = self.look(&request.queue).await?;
        let known =
            known.ok_or_else(|| QueueError::from(redrive_store::QueueNotFound(request.queue.clone())))?;
        let at = self.queue_clock(now, &known).await?;
        let search = Search {
            filter: &request.filter,
            after: request.after,
            until: None,
            newest_first: request.newest_first,
            limit: request.limit.get(),
        };
        let found = self.search(&known, &search, at, |_| true).await?;
        let (mut ids, mut bytes, mut next) = (Vec::new(), 0, found.next);
        for seen in &found.seen {
            bytes += Words::read(&seen.line)?.load;
            if bytes > BATCH_BYTES_MAX && !ids.is_empty() {
                next = ids.last().copied();
                break;
            }
            ids.push(seen.message.id());
        }
        let mut messages = self.read(&known, &ids).await?;
        // What has changed since it was found may match no more.
        messages.retain(|message| request.filter.matches(message, at));
        Ok(Page { at, messages, next })
    }
}

/// At most so many, and where to go on where there were more.
fn limited(mut seen: Vec<Seen>, limit: usize) -> Matching {
    let more = seen.len() > limit;
    seen.truncate(limit);
    let next = seen.last().map(|seen| seen.message.id()).filter(|_| more);
    Matching { seen, next }
}
