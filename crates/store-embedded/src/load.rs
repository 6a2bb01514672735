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
use crate::format::message::SpecView;
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
        let mut order: Vec<usize> = (0..shots.len()).collect();
        if !shots.is_sorted_by_key(|shot| shot.at) {
            order.sort_unstable_by_key(|at| shots[*at].at);
        }
        let mut messages: Vec<Option<Message>> = Vec::new();
        messages.resize_with(shots.len(), || None);
        let mut shots: Vec<Option<Shot>> = shots.into_iter().map(Some).collect();
        let mut content_type = ContentType::default();
        let mut start = 0;
        while start < order.len() {
            let end = together(&shots, &order, start);
            let chunk = &order[start..end];
            let (first, last) = (place(&shots, chunk[0]), place(&shots, chunk[chunk.len() - 1]));
            let bytes = Bytes::from(self.read(first.0, last.0.offset() - first.0.offset() + last.1)?);
            for at in chunk {
                let shot = shots[*at].take().expect("each message is read once");
                let from = (shot.at.offset() - first.0.offset()) as usize;
                let record = bytes.slice(from..from + shot.length as usize);
                messages[*at] = Some(self.put_together(shot, &record, &mut content_type)?);
            }
            start = end;
        }
        Ok(messages.into_iter().flatten().collect())
    }

    fn put_together(
        &self,
        shot: Shot,
        record: &Bytes,
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
        let mut links = Vec::new();
        let mut next = shot.link;
        while let Some((place, length)) = next {
            let bytes = self.read(place, length)?;
            let record = Located::whole(&bytes).and_then(|record| record.read(true)).map_err(broken)?;
            let Record::Change(ChangeRecord { link: Some(link), .. }) = record else {
                return Err(broken(Malformed("the history of a message leads elsewhere")));
            };
            next = link.before;
            links.push(link);
        }
        links.into_iter().rev().for_each(|link| link.add_to(&mut history, &mut origin));
        let headers =
            Headers::new(rest.headers).map_err(|_| broken(Malformed("a header breaks its rule")))?;
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
}

/// The message that a whole record is.
pub(crate) fn read_base(bytes: &[u8]) -> Result<MessageRecord<'_>, Malformed> {
    match Located::whole(bytes)?.read(true)? {
        Record::Message(message) => Ok(message),
        _ => Err(Malformed("this is not a message")),
    }
}

fn place(shots: &[Option<Shot>], at: usize) -> (Place, u32) {
    shots[at].as_ref().map_or((Place::default(), 0), |shot| (shot.at, shot.length))
}

/// How far the messages from `start` on lie close enough to be read at once.
fn together(shots: &[Option<Shot>], order: &[usize], start: usize) -> usize {
    let (first, mut length) = place(shots, order[start]);
    let mut end = start + 1;
    let mut until = first.offset() + length;
    while let Some((next, next_length)) = order.get(end).map(|at| place(shots, *at)) {
        length = (next.offset() + next_length).saturating_sub(first.offset());
        let apart = next.segment() != first.segment() || next.offset().saturating_sub(until) > GAP_BYTES_MAX;
        if apart || length > READ_BYTES_MAX {
            break;
        }
        until = next.offset() + next_length;
        end += 1;
    }
    end
}
