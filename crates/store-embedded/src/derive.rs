//! What follows from the messages that were read: ids, lines, times. It is made once, when everything has been read, so
//! that nothing is made for messages that are gone by then.

use redrive_core::time::Timestamp;
use redrive_store::StoreError;

use crate::SEGMENTS;
use crate::core::Core;
use crate::fault::damaged;
use crate::format::segment;
use crate::recover::Reading;
use crate::state::entry::Stage;

impl Core {
    pub(crate) fn derive(&mut self, reading: &Reading) -> Result<(), StoreError> {
        self.drop_gone(reading);
        self.queues.values_mut().for_each(|queue| queue.reading = false);
        let now = self.time.floor;
        let mut waiting = Vec::new();
        let (mut in_order, mut last) = (true, (Timestamp::EPOCH, 0));
        for (at, slot) in reading.bases() {
            let entry = self.messages.at(slot);
            if entry.at != at {
                continue;
            }
            let queue = self.queues.get_mut(&entry.queue).expect("a message is in a queue that is there");
            if !queue.ids.insert(entry.id(), slot) {
                let name = segment::name(at.segment(), SEGMENTS);
                let disk = self.journal.disk.as_ref();
                return Err(damaged(disk, &name, u64::from(at.offset()), "a message is there twice"));
            }
            match entry.stage {
                Stage::Leased => {}
                Stage::Dead | Stage::Done => queue.index(&mut self.messages, slot, now),
                Stage::Delayed | Stage::Line | Stage::Stray | Stage::Aside => {
                    in_order &= last <= entry.place();
                    last = entry.place();
                    waiting.push(slot);
                }
            }
        }
        // Who joins a line in order joins it at the back.
        if !in_order {
            waiting.sort_by_cached_key(|slot| self.messages.at(*slot).place());
        }
        for slot in waiting {
            let (queue, messages) = self.parts(self.messages.at(slot).queue);
            queue.index(messages, slot, now);
        }
        Ok(())
    }

    /// Drops queues that are gone, with what was in them.
    fn drop_gone(&mut self, reading: &Reading) {
        if reading.gone.is_empty() {
            return;
        }
        for (at, slot) in reading.bases() {
            let entry = self.messages.at(slot);
            if entry.at == at && reading.gone.contains(&entry.queue) {
                self.detach(slot);
            }
        }
        reading.gone.iter().for_each(|number| self.apply_queue_gone(*number));
    }
}
