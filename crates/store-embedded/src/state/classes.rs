//! The types and sources of a queue's messages, each pair kept once.

use hashbrown::HashMap;
use redrive_core::message::{MessageType, Source};
use redrive_store::ClassFilter;

#[derive(Debug, Clone)]
struct Class {
    kind: MessageType,
    source: Source,
    messages: u64,
}

/// The pairs of type and source of a queue.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    all: Vec<Class>,
    free: Vec<u16>,
    numbers: HashMap<(MessageType, Source), u16, std::hash::RandomState>,
    /// The pair that was looked up last: mostly it is asked for again.
    last: Option<u16>,
}

impl Classes {
    /// The number of a pair, if any message has it.
    pub(crate) fn find(&self, kind: &str, source: &str) -> Option<u16> {
        let is = |class: &Class| class.kind.as_str() == kind && class.source.as_str() == source;
        if let Some(last) = self.last.filter(|last| is(&self.all[usize::from(*last)])) {
            return Some(last);
        }
        let key = (MessageType::new(kind).ok()?, Source::new(source).ok()?);
        self.numbers.get(&key).copied()
    }

    /// How many pairs there are.
    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The number of a pair; one more message has it.
    pub(crate) fn join(&mut self, kind: &str, source: &str) -> u16 {
        let number = match self.find(kind, source) {
            Some(number) => number,
            None => self.add(kind, source),
        };
        self.join_number(number);
        self.last = Some(number);
        number
    }

    /// One more message has that pair.
    pub(crate) fn join_number(&mut self, number: u16) {
        self.all[usize::from(number)].messages += 1;
    }

    /// The pair that was looked up last, if it is still there.
    pub(crate) fn last(&self) -> Option<u16> {
        self.last
    }

    fn add(&mut self, kind: &str, source: &str) -> u16 {
        let kind = MessageType::new(kind).expect("a type in a record was checked when it was read");
        let source = Source::new(source).expect("a source in a record was checked when it was read");
        let class = Class { kind: kind.clone(), source: source.clone(), messages: 0 };
        let number = if let Some(number) = self.free.pop() {
            self.all[usize::from(number)] = class;
            number
        } else {
            self.all.push(class);
            u16::try_from(self.all.len() - 1).expect("a queue has few pairs of type and source")
        };
        self.numbers.insert((kind, source), number);
        number
    }

    /// One message less has that pair; a pair that no message has is forgotten.
    pub(crate) fn leave(&mut self, number: u16) {
        let class = &mut self.all[usize::from(number)];
        class.messages -= 1;
        if class.messages == 0 {
            self.numbers.remove(&(class.kind.clone(), class.source.clone()));
            self.free.push(number);
            self.last = None;
        }
    }

    pub(crate) fn get(&self, number: u16) -> (&MessageType, &Source) {
        let class = &self.all[usize::from(number)];
        (&class.kind, &class.source)
    }

    /// Which pairs a filter takes, by number; `None` where it takes all.
    pub(crate) fn taken_by(&self, filter: &ClassFilter) -> Option<Vec<bool>> {
        if filter.kinds.is_empty() && filter.sources.is_empty() {
            return None;
        }
        Some(self.all.iter().map(|class| filter.takes(&class.kind, &class.source)).collect())
    }
}
