//! What follows from the messages that were read: ids, lines, times. It is made once, when everything has been read, so
//! that nothing is made for messages that are gone by then.

use redrive_store::StoreError;

use crate::SEGMENTS;
use crate::core::Core;
use crate::fault::damaged;
use crate::format::segment;
use crate::recover::Reading;

impl Core {
    pub(crate) fn derive(&mut self, reading: &Reading) -> Result<(), StoreError> {
        self.drop_gone(reading);
        let now = self.time.floor;
        let slots = self.slots_by_id(reading);
        let mut left = slots.as_slice();
        while let Some(first) = left.first() {
            let number = self.messages.at(*first).queue;
            let count = left.partition_point(|slot| self.messages.at(*slot).queue == number);
            let (some, rest) = left.split_at(count);
            left = rest;
            let (queue, messages) = self.parts(number);
            if let Err(twice) = queue.derive(messages, some, now) {
                let at = self.messages.at(twice).at;
                let name = segment::name(at.segment(), SEGMENTS);
                let disk = self.journal.disk.as_ref();
                return Err(damaged(disk, &name, u64::from(at.offset()), "a message is there twice"));
            }
        }
        self.queues.values_mut().for_each(|queue| queue.reading = false);
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

    /// The messages in the order of their queues and ids.
    fn slots_by_id(&self, reading: &Reading) -> Vec<u32> {
        let key = |slot: u32| {
            let entry = self.messages.at(slot);
            (entry.queue, entry.id())
        };
        let there = reading.bases().filter(|(at, slot)| self.messages.at(*slot).at == *at);
        let (mut slots, mut in_order, mut last) = (Vec::new(), true, (0, 0));
        for (_, slot) in there {
            let this = key(slot);
            in_order &= last <= this;
            last = this;
            slots.push(slot);
        }
        if !in_order {
            slots.sort_by_cached_key(|slot| key(*slot));
        }
        slots
    }
}
