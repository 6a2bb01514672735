//! Patterns by their segments, so that a topic finds its subscriptions without looking at the others.
//!
//! A node is a prefix of patterns. Matching walks the segments of the topic and keeps every node that the segments so far lead
//! to; a `**` is a node that leads to itself by any segment, so once reached it stays. No node is kept twice: however many
//! `**` there are, a step costs no more than there are nodes.

use hashbrown::{HashMap, HashSet};
use redrive_core::topic::{Topic, TopicPattern};
use smallvec::SmallVec;

const ONE: &str = "*";
const ANY: &str = "**";
const ROOT: u32 = 0;

/// The nodes that a topic's segments lead to; few, nearly always.
type Places = SmallVec<[u32; 16]>;

/// The nodes of `**` that were reached. Only these can be reached twice: by what leads to them, and by staying.
#[derive(Default)]
struct Staying {
    few: Places,
    many: HashSet<u32>,
}

impl Staying {
    /// Notes a node; says whether it is new.
    fn add(&mut self, at: u32) -> bool {
        const FEW: usize = 16;
        let known = self.few.contains(&at) || !self.many.is_empty() && self.many.contains(&at);
        match (known, self.few.len() < FEW) {
            (true, _) => false,
            (false, true) => {
                self.few.push(at);
                true
            }
            (false, false) => self.many.insert(at),
        }
    }
}

#[derive(Debug, Clone, Default)]
struct Node<T> {
    named: HashMap<Box<str>, u32>,
    /// Where `*` leads.
    one: Option<u32>,
    /// Where `**` leads.
    any: Option<u32>,
    /// Whether it is a `**` itself, and stays where it is by any segment.
    stays: bool,
    values: Vec<T>,
}

/// Values by the patterns under which they were put in.
#[derive(Debug, Clone)]
pub struct Trie<T> {
    nodes: Vec<Node<T>>,
    /// Nodes that nothing leads to any more.
    free: Vec<u32>,
}

impl<T> Default for Trie<T> {
    fn default() -> Self {
        Self { nodes: vec![Node::new(false)], free: Vec::new() }
    }
}

impl<T> Node<T> {
    fn new(stays: bool) -> Self {
        Self { named: HashMap::new(), one: None, any: None, stays, values: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.named.is_empty() && self.one.is_none() && self.any.is_none() && self.values.is_empty()
    }
}

impl<T: Copy + PartialEq> Trie<T> {
    /// Puts a value in.
    pub fn insert(&mut self, pattern: &TopicPattern, value: T) {
        let mut at = ROOT;
        for segment in segments(pattern) {
            at = match self.next(at, segment) {
                Some(next) => next,
                None => self.grow(at, segment),
            };
        }
        self.node_mut(at).values.push(value);
    }

    /// Takes a value out that was put in under that pattern.
    pub fn remove(&mut self, pattern: &TopicPattern, value: T) {
        let mut path: SmallVec<[(u32, &str); 8]> = SmallVec::new();
        let mut at = ROOT;
        for segment in segments(pattern) {
            let Some(next) = self.next(at, segment) else { return };
            path.push((at, segment));
            at = next;
        }
        self.node_mut(at).values.retain(|kept| *kept != value);
        // What leads nowhere any more goes.
        while let Some((parent, segment)) = path.pop()
            && self.node(at).is_empty()
        {
            let gone = at;
            let node = self.node_mut(parent);
            match segment {
                ONE => node.one = None,
                ANY => node.any = None,
                name => drop(node.named.remove(name)),
            }
            self.free.push(gone);
            at = parent;
        }
    }

    /// Gives every value whose pattern matches, each as often as it was put in.
    pub fn matches(&self, topic: &Topic, mut found: impl FnMut(T)) {
        let (mut here, mut next, mut staying) = (Places::new(), Places::new(), Staying::default());
        self.enter(ROOT, &mut here, &mut staying);
        for segment in topic.as_str().split('.') {
            for at in here.drain(..) {
                let node = self.node(at);
                if node.stays {
                    next.push(at);
                }
                if let Some(named) = node.named.get(segment) {
                    self.enter(*named, &mut next, &mut staying);
                }
                if let Some(one) = node.one {
                    self.enter(one, &mut next, &mut staying);
                }
            }
            std::mem::swap(&mut here, &mut next);
        }
        for at in here {
            self.node(at).values.iter().for_each(|value| found(*value));
        }
    }

    /// Notes a node, and what follows from it without a segment.
    fn enter(&self, at: u32, places: &mut Places, staying: &mut Staying) {
        let mut at = Some(at);
        while let Some(place) = at {
            let node = self.node(place);
            if node.stays && !staying.add(place) {
                return;
            }
            places.push(place);
            at = node.any;
        }
    }

    fn next(&self, at: u32, segment: &str) -> Option<u32> {
        let node = self.node(at);
        match segment {
            ONE => node.one,
            ANY => node.any,
            name => node.named.get(name).copied(),
        }
    }

    fn grow(&mut self, at: u32, segment: &str) -> u32 {
        let node = Node::new(segment == ANY);
        let new = if let Some(free) = self.free.pop() {
            *self.node_mut(free) = node;
            free
        } else {
            self.nodes.push(node);
            u32::try_from(self.nodes.len() - 1).expect("fewer patterns than that")
        };
        let parent = self.node_mut(at);
        match segment {
            ONE => parent.one = Some(new),
            ANY => parent.any = Some(new),
            name => drop(parent.named.insert(name.into(), new)),
        }
        new
    }

    fn node(&self, at: u32) -> &Node<T> {
        self.nodes.get(at as usize).expect("places are those of nodes")
    }

    fn node_mut(&mut self, at: u32) -> &mut Node<T> {
        self.nodes.get_mut(at as usize).expect("places are those of nodes")
    }
}

/// The segments of a pattern. A lone `*` matches everything, which is what `**` says.
fn segments(pattern: &TopicPattern) -> impl Iterator<Item = &str> {
    let text = if pattern.as_str() == ONE { ANY } else { pattern.as_str() };
    text.split('.')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(trie: &Trie<usize>, topic: &str) -> Vec<usize> {
        let mut found = Vec::new();
        trie.matches(&topic.parse().unwrap(), |value| found.push(value));
        found.sort_unstable();
        found
    }

    fn patterns() -> impl Strategy<Value = Vec<String>> {
        let segment = prop::sample::select(vec!["a", "b", "c", "*", "**"]);
        let pattern = prop::collection::vec(segment, 1..6).prop_map(|segments| segments.join("."));
        prop::collection::vec(pattern, 0..40)
    }

    fn topics() -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "d"]), 1..7)
            .prop_map(|segments| segments.join("."))
    }

    proptest! {
        /// P25: the trie agrees with the matcher that says what a pattern means.
        #[test]
        fn it_finds_exactly_what_matches(patterns in patterns(), topic in topics(), removed in any::<u64>()) {
            let mut trie = Trie::default();
            let parsed: Vec<TopicPattern> = patterns.iter().map(|text| text.parse().unwrap()).collect();
            for (value, pattern) in parsed.iter().enumerate() {
                trie.insert(pattern, value);
            }
            let kept = |value: usize| removed >> (value % 64) & 1 == 0;
            for (value, pattern) in parsed.iter().enumerate().filter(|(value, _)| !kept(*value)) {
                trie.remove(pattern, value);
            }
            let given: Topic = topic.parse().unwrap();
            let matching = |(value, pattern): (usize, &TopicPattern)| {
                (kept(value) && pattern.matches(&given)).then_some(value)
            };
            let expected: Vec<usize> = parsed.iter().enumerate().filter_map(matching).collect();
            prop_assert_eq!(found(&trie, &topic), expected);
        }
    }

    #[test]
    fn what_is_taken_out_leaves_nothing_behind() {
        let mut trie = Trie::default();
        for round in 0..3 {
            for value in 0..100 {
                trie.insert(&format!("a.{value}.**.b").parse().unwrap(), value);
            }
            assert_eq!(found(&trie, "a.7.x.y.b"), [7]);
            for value in 0..100 {
                trie.remove(&format!("a.{value}.**.b").parse().unwrap(), value);
            }
            assert_eq!(trie.nodes.len() - trie.free.len(), 1, "round {round}");
        }
        assert!(trie.nodes.len() < 500, "places are used again");
    }

    #[test]
    fn as_many_stars_as_allowed_are_matched_at_once() {
        let mut trie = Trie::default();
        for value in 0..16 {
            let pattern = ["**.a"; 16].join(".").replacen("**.a", "**.**", value);
            trie.insert(&pattern.parse().unwrap(), value);
        }
        assert_eq!(found(&trie, &["a"; 32].join(".")).len(), 16);
        assert_eq!(found(&trie, &["b"; 32].join(".")).len(), 0);
    }
}
