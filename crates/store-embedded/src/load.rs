//! Messages as others see them: what is in memory over what is on the disk.
//!
//! Bodies are read when somebody asks. Messages that were enqueued together lie together, so what lies close is read
//! at once, and bodies are slices of what was read.

use bytes::Bytes;
use redrive_core::message::{
    Body, ContentType, FairnessKey, Headers, History, Message, MessageType, Progress, Source, Spec,
};
use redrive_core::queue::QueueName;

use crate::core::Core;
use crate::fault::Fault;
use crate::format::message::{Link, SpecView};
use crate::format::record::{ChangeRecord, Located, MessageRecord, Record};
use crate::format::{Malformed, Place};
use crate::journal::Journal;

/// Most bytes that are read at once: a body that is kept keeps all of what it was read with.
const READ_BYTES_MAX: u32 = 256 * 1024;
/// Most bytes between two messages that are read for nothing.
const GAP_BYTES_MAX: u32 = 4 * 1024;

/// A message as it stood at some moment, without what is on the disk.
#[derive(Debug, Clone)]
pub(crate) struct Shot {
    at: Place,
    length: u32,
    queue: QueueName,
    kind: MessageType,
    source: Source,
    key: FairnessKey,
    progress: Progress,
    moved: bool,
    link: Option<(Place, u32)>,
}

impl Core {
    /// A message as it stands now.
    pub(crate) fn shot(&self, slot: u32) -> Shot {
        let entry = self.messages.at(slot);
        let extra = self.messages.extra(slot);
        let (kind, source, key) = self.names_of(slot);
        Shot {
            at: entry.at,
            length: entry.length,
            queue: self.queue(entry.queue).queue.name.clone(),
            kind,
            source,
            key,
            progress: self.messages.progress(slot),
            moved: extra.is_some_and(|extra| extra.moved),
            link: extra.and_then(|extra| extra.link),
        }
    }

    /// What a message weighs when it is handed out or listed.
    pub(crate) fn load_of(&self, slot: u32) -> usize {
        let checkpoint = self.messages.extra(slot).map_or(0, |extra| extra.checkpoint);
        self.messages.at(slot).load as usize + checkpoint as usize
    }

    /// What happened to a message. Where the disk fails, the store stops.
    pub(crate) fn history(&mut self, slot: u32) -> History {
        let extra = self.messages.extra(slot);
        if extra.is_none_or(|extra| extra.link.is_none() && !extra.past) {
            return History::default();
        }
        match self.journal.load(vec![self.shot(slot)]) {
            Ok(mut messages) => messages.pop().map(|message| message.history).unwrap_or_default(),
            Err(fault) => {
                self.fault.get_or_insert(fault);
                History::default()
            }
        }
    }
}

impl Journal {
    /// Reads what is on the disk of messages, and puts it together with what was in memory.
    pub(crate) fn load(&self, shots: Vec<Shot>) -> Result<Vec<Message>, Fault> {
        let bases: Vec<(Place, u32)> = shots.iter().map(|shot| (shot.at, shot.length)).collect();
        let records = self.read_all(&bases)?;
        let newest: Vec<Option<(Place, u32)>> = shots.iter().map(|shot| shot.link).collect();
        let mut links = self.links(newest)?.into_iter();
        let mut content_type = ContentType::default();
        let mut messages = Vec::with_capacity(shots.len());
        for (shot, record) in shots.into_iter().zip(records) {
            let links = links.next().unwrap_or_default();
            messages.push(put_together(shot, &record, links, &mut content_type)?);
        }
        Ok(messages)
    }

    /// Follows the histories of several messages from their newest links, each to its end, the newest first. What was
    /// written together lies together, so the links of one age are read together.
    pub(crate) fn links(&self, mut next: Vec<Option<(Place, u32)>>) -> Result<Vec<Vec<Link>>, Fault> {
        let mut links: Vec<Vec<Link>> = Vec::new();
        links.resize_with(next.len(), Vec::new);
        loop {
            let some: Vec<(usize, (Place, u32))> =
                next.iter().enumerate().filter_map(|(at, next)| next.map(|next| (at, next))).collect();
            if some.is_empty() {
                return Ok(links);
            }
            let places: Vec<(Place, u32)> = some.iter().map(|(_, place)| *place).collect();
            for ((at, (place, _)), bytes) in some.into_iter().zip(self.read_all(&places)?) {
                let link = read_link(&bytes)
                    .map_err(|problem| Fault::new("reading a history", format!("{place}: {problem}")))?;
                next[at] = link.before;
                links[at].push(link);
            }
        }
    }

    /// Reads records; those that lie close are read at once.
    fn read_all(&self, places: &[(Place, u32)]) -> Result<Vec<Bytes>, Fault> {
        let mut order: Vec<usize> = (0..places.len()).collect();
        if !places.is_sorted() {
            order.sort_unstable_by_key(|at| places[*at]);
        }
        // What is in the frame that is being made is not in the file yet, however close it lies.
        let made = self.segments.back().map_or(Place::default(), |last| Place::new(last.number, last.used));
        let mut records = vec![Bytes::new(); places.len()];
        let mut start = 0;
        while start < order.len() {
            let end = together(places, &order, start, made);
            let (first, last) = (places[order[start]].0, places[order[end - 1]]);
            let bytes = Bytes::from(self.read(first, last.0.offset() - first.offset() + last.1)?);
            for at in &order[start..end] {
                let (place, length) = places[*at];
                let from = (place.offset() - first.offset()) as usize;
                records[*at] = bytes.slice(from..from + length as usize);
            }
            start = end;
        }
        Ok(records)
    }
}

/// What a link says.
fn read_link(bytes: &[u8]) -> Result<Link, Malformed> {
    match Located::whole(bytes)?.read(true)? {
        Record::Change(ChangeRecord { link: Some(link), .. }) => Ok(link),
        _ => Err(Malformed("the history of a message leads elsewhere")),
    }
}

fn put_together(
    shot: Shot,
    record: &Bytes,
    links: Vec<Link>,
    content_type: &mut ContentType,
) -> Result<Message, Fault> {
    let place = shot.at;
    let broken = |problem: Malformed| Fault::new("reading a message", format!("{place}: {problem}"));
    let base = read_base(record).map_err(broken)?;
    let rest = SpecView::take(base.spec).and_then(|view| view.rest().map(|rest| (view, rest)));
    let (view, rest) = rest.map_err(broken)?;
    if content_type.as_str() != rest.content_type {
        *content_type = rest.content_type.parse().map_err(|_| broken(Malformed("no content type")))?;
    }
    let (mut history, mut origin) = base.read_history().map_err(broken)?;
    links.into_iter().rev().for_each(|link| link.add_to(&mut history, &mut origin));
    let headers = Headers::new(rest.headers).map_err(|_| broken(Malformed("a header breaks its rule")))?;
    let spec = Spec {
        id: base.id,
        body: Body::within(record.slice_ref(rest.body), usize::MAX).expect("there is no limit"),
        content_type: content_type.clone(),
        headers,
        kind: shot.kind,
        source: shot.source,
        fairness_key: shot.key,
        dedup: rest.dedup.filter(|_| !shot.moved),
        lease_timeout: view.lease_timeout,
        max_attempts: view.max_attempts,
    };
    let (queue, progress) = (shot.queue, shot.progress);
    Ok(Message { queue, spec, created_at: base.created_at, progress, history, origin_queue: origin })
}

/// The message that a whole record is.
pub(crate) fn read_base(bytes: &[u8]) -> Result<MessageRecord<'_>, Malformed> {
    match Located::whole(bytes)?.read(true)? {
        Record::Message(message) => Ok(message),
        _ => Err(Malformed("this is not a message")),
    }
}

/// How far the records from `start` on lie close enough to be read at once.
fn together(places: &[(Place, u32)], order: &[usize], start: usize, made: Place) -> usize {
    let (first, length) = places[order[start]];
    let mut end = start + 1;
    let mut until = first.offset() + length;
    while let Some((next, next_length)) = order.get(end).map(|at| places[*at]) {
        let length = (next.offset() + next_length).saturating_sub(first.offset());
        let apart = next.segment() != first.segment() || next.offset().saturating_sub(until) > GAP_BYTES_MAX;
        let elsewhere = (first < made) != (next < made);
        if apart || elsewhere || length > READ_BYTES_MAX {
            break;
        }
        until = next.offset() + next_length;
        end += 1;
    }
    end
}
