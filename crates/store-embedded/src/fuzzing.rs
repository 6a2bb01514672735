//! What the fuzz targets may call: the decoders of the format, which are nobody else's.
//!
//! Each of them answers what it said, so that the search knows whether an input led somewhere new.

use redrive_core::time::Timestamp;

use crate::format::bytes::Put;
use crate::format::message::{self, SpecView};
use crate::format::record::{self, Located, MessageParts, MessageRecord, Record, Records};
use crate::format::{Malformed, frame, segment};

/// What separates the frames of [`journal`].
pub const FRAME: &[u8; 4] = b"RDR1";

/// Decodes a frame of that segment. What it holds makes the same frame again.
pub fn frame(bytes: &[u8], segment: u32) -> Result<(), String> {
    let (header, records) = frame::decode(bytes, segment).map_err(said)?;
    assert!(header.span() <= frame::aligned(bytes.len()), "a frame is longer than what it was read from");
    assert_eq!(frame::find(bytes, segment), Some(0));
    let mut again = Vec::new();
    frame::start(&mut again);
    again.put(records);
    frame::finish(&mut again, segment, header.sequence, header.time);
    let (decoded, same) = frame::decode(&again, segment).map_err(said)?;
    assert_eq!((decoded.sequence, decoded.time, same), (header.sequence, header.time, records));
    Ok(())
}

/// Decodes the header of a segment. It is encoded as the same.
pub fn segment_header(bytes: &[u8]) -> Result<(), String> {
    let header = segment::Header::decode(bytes).map_err(said)?;
    assert_eq!(segment::Header::decode(&header.encode()), Ok(header));
    Ok(())
}

/// Decodes the records of a frame, each with its own checksum made right. What was read is written, read, and written
/// as the same.
pub fn records(bytes: &[u8]) -> Result<(), String> {
    let mut bytes = bytes.to_vec();
    mend(&mut bytes);
    for located in Records::new(&bytes, 0) {
        let written = written(located.map_err(said)?)?;
        let read = Located::whole(&written).map_err(said);
        let again = read.and_then(self::written);
        assert_eq!(again.as_ref(), Ok(&written), "what was written is not read, or not as the same");
    }
    Ok(())
}

fn said(problem: Malformed) -> String {
    problem.to_string()
}

/// Reads a record and writes what was read.
fn written(located: Located<'_>) -> Result<Vec<u8>, String> {
    let record = located.read(true).map_err(said)?;
    let mut out = Vec::new();
    match &record {
        Record::Store(store) => {
            record::put_store(&mut out, store);
        }
        Record::Queue(number, queue, counters) => {
            record::put_queue(&mut out, *number, queue, counters);
        }
        Record::QueueGone(number) => record::put_queue_gone(&mut out, *number),
        Record::Counts(number, base, counters) => record::put_counts(&mut out, *number, *base, counters),
        Record::Message(message) => put_message(&mut out, message)?,
        Record::Leases(leases) => {
            record::put_leases(&mut out, &leases.consumer, leases.leased_at, leases.first, leases.items());
        }
        Record::Gone(bases) => record::put_gone(&mut out, bases.iter().copied()),
        Record::Change(change) => {
            record::put_change(&mut out, change);
        }
        Record::Hold(key, id, until, base) => {
            record::put_hold(&mut out, *key, *id, *until, *base);
        }
        Record::Entry(key, version, value) => {
            record::put_entry(&mut out, key, *version, value);
        }
        Record::EntryGone(key, base) => record::put_entry_gone(&mut out, key, *base),
        Record::Log(name, last, horizon) => {
            record::put_log(&mut out, name, *last, *horizon);
        }
        Record::Kept(first) => record::put_kept(&mut out, *first),
        Record::Grace(overdue, granted) => record::put_grace(&mut out, *overdue, *granted),
        Record::Logged(name, number, at, value) => {
            record::put_log_record(&mut out, name, *number, *at, value);
        }
    }
    Ok(out)
}

/// The same for a message, with all that is only read when somebody asks for it.
fn put_message(out: &mut Vec<u8>, read: &MessageRecord<'_>) -> Result<(), String> {
    let view = SpecView::take(read.spec).map_err(said)?;
    view.rest().map_err(said)?;
    if let Some(without) = message::without_dedup(read.spec).map_err(said)? {
        let again = SpecView::take(&without).map_err(said)?;
        assert_eq!((again.kind, again.source, again.key), (view.kind, view.source, view.key));
        again.rest().map_err(said)?;
    }
    let (history, origin) = read.read_history().map_err(said)?;
    let parts = MessageParts {
        id: read.id,
        queue: read.queue,
        created_at: read.created_at,
        load: read.load,
        replaces: read.replaces,
        progress: &read.progress,
        hold: read.hold,
    };
    let spec = |out: &mut Vec<u8>| out.put(read.spec);
    record::put_message(out, &parts, spec, |out| {
        if read.history.is_some() {
            message::put_history(out, &history, origin.as_ref());
        }
    });
    Ok(())
}

/// Makes a segment of the bodies of its frames, which [`FRAME`] separates: numbers, sequences and checksums are right,
/// whatever the bodies are, as if the engine had written them.
pub fn journal(bytes: &[u8], number: u32) -> Vec<u8> {
    let mut frames = Vec::new();
    let mut made = Vec::new();
    let header = segment::HEADER_BYTES as usize;
    let mut rest = Some(bytes);
    let mut sequence = 1;
    while let Some(left) = rest {
        let end = left.windows(FRAME.len()).position(|window| window == FRAME);
        let (body, after) = end.map_or((left, None), |end| (&left[..end], Some(&left[end + FRAME.len()..])));
        let mut body = body.to_vec();
        mend(&mut body);
        frame::start(&mut made);
        made.put(&body);
        frame::finish(&mut made, number, sequence, Timestamp::from_millis(1_800_000_000_000));
        frames.extend_from_slice(&made);
        (rest, sequence) = (after, sequence + 1);
    }
    let size = u32::try_from(header + frames.len()).expect("an input is far below 4 GiB");
    let mut segment = segment::Header { number, first_sequence: 1, size }.encode();
    segment.extend_from_slice(&frames);
    segment
}

/// Makes the checksums right that records have of their own.
fn mend(records: &mut [u8]) {
    const MESSAGE: u8 = 5;
    const CHANGE: u8 = 8;
    const MESSAGE_AGAIN: u8 = 16;
    let mut at = 0;
    while let Some([tag, length @ ..]) = records.get(at..at + record::HEADER_BYTES) {
        let tag = *tag;
        let length = u32::from_le_bytes(length.try_into().expect("four bytes follow the tag")) as usize;
        let body = at + record::HEADER_BYTES;
        let Some(body) = records.get_mut(body..body.saturating_add(length)) else { return };
        let checked = match tag {
            MESSAGE | CHANGE => Some(body),
            MESSAGE_AGAIN => body.get_mut(8..),
            _ => None,
        };
        if let Some((sum, covered)) = checked.and_then(<[u8]>::split_first_chunk_mut::<4>) {
            *sum = crc32c::crc32c(covered).to_le_bytes();
        }
        at += record::HEADER_BYTES + length;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use redrive_core::lifecycle::{Draft, When, enqueue};
    use redrive_core::message::{
        Body, ContentType, FairnessKey, Headers, Message, MessageId, Priority, Spec,
    };
    use redrive_core::queue::QueueName;

    use super::*;
    use crate::clock::MachineClock;
    use crate::disk::{Disk, SimulatedDisk};
    use crate::format::record::StoreRecord;
    use crate::{EmbeddedStore, Options};

    fn message() -> Message {
        let spec = Spec {
            id: MessageId::MIN,
            body: Body::new("work").unwrap(),
            content_type: ContentType::default(),
            headers: Headers::default(),
            kind: "invoice.paid".parse().unwrap(),
            source: "shop".parse().unwrap(),
            fairness_key: FairnessKey::new("tenant").unwrap(),
            dedup: None,
            lease_timeout: None,
            max_attempts: None,
        };
        let draft = Draft { spec, priority: Priority::default(), visible: When::Now, expires: None };
        enqueue(draft, QueueName::new("orders").unwrap(), 1, Timestamp::EPOCH)
    }

    /// The only frame of a store that has one message, which says it is in that queue.
    fn frame_with_message(queue: u32) -> Vec<u8> {
        let mut frame = Vec::new();
        let store =
            StoreRecord { receipt_key: [0; 32], epoch: 1, leases: 0, sequence: 1, version: 1, queues: 1 };
        record::put_store(&mut frame, &store);
        let message = message();
        let parts = MessageParts {
            id: message.spec.id,
            queue,
            created_at: message.created_at,
            load: 4,
            replaces: None,
            progress: &message.progress,
            hold: None,
        };
        record::put_message(&mut frame, &parts, |out| message::put_spec(out, &message.spec), |_| {});
        frame
    }

    fn refusal(frame: &[u8]) -> String {
        let segment = journal(frame, 1);
        let disk = SimulatedDisk::new(1);
        let file = disk.create(&segment::name(1, crate::SEGMENTS), segment.len() as u64).unwrap();
        file.write_at(&segment, 0).unwrap();
        let opened = EmbeddedStore::stepped(Arc::new(disk), Arc::new(MachineClock), Options::default());
        opened.map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn a_message_of_a_queue_that_no_store_has_is_damage() {
        assert!(refusal(&frame_with_message(0)).contains("queue 0 is named and is not there"));
        assert!(refusal(&frame_with_message(7)).contains("queue 7 is named and is not there"));
    }

    #[test]
    fn a_name_in_a_record_that_breaks_its_rule_is_damage() {
        for name in [&b"invoice.paid"[..], b"shop", b"tenant"] {
            let mut frame = frame_with_message(1);
            let at = frame.windows(name.len()).position(|window| window == name).unwrap();
            frame[at] = 7;
            assert!(refusal(&frame).contains("breaks its rule"), "{name:?}");
        }
    }
}
