//! Which queues a grant is for.

// What is read here came from outside.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use crate::limits::QUEUE_NAME_BYTES_MAX;
use crate::queue::QueueName;
use crate::text::text_type;
use crate::topic::{Topic, TopicPattern};

/// Stands for any run of characters, none included.
const ANY: u8 = b'*';
/// Stands for one segment of a topic.
const ONE: &str = "*";
/// Stands for any number of them.
const MANY: &str = "**";

text_type! {
    /// Chooses queues by name: `*` stands for any run of characters, dots and none included; everything else for itself.
    QueuePattern, field = "queues", max = QUEUE_NAME_BYTES_MAX, empty = false,
    allowed = "A-Z a-z 0-9 . _ - *", |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '*')
}

impl QueuePattern {
    /// The pattern that chooses every queue.
    pub fn every() -> Self {
        Self::new("*").expect("a pattern")
    }

    /// Whether it chooses every queue.
    pub fn is_every(&self) -> bool {
        self.as_str().as_bytes() == [ANY]
    }

    /// Whether it chooses that queue.
    pub fn matches(&self, queue: &QueueName) -> bool {
        glob(self.as_str().as_bytes(), queue.as_str().as_bytes())
    }

    /// Whether it chooses that topic.
    pub fn matches_topic(&self, topic: &Topic) -> bool {
        glob(self.as_str().as_bytes(), topic.as_str().as_bytes())
    }

    /// Whether it chooses every topic that `pattern` does. Each `*` of that stands for one segment, each `**` for any number of
    /// them, and where it stands for none, a dot beside it goes, too: all of these spellings must be chosen. What has too many
    /// of them is covered by what chooses everything, and by nothing else.
    pub fn covers_topics(&self, pattern: &TopicPattern) -> bool {
        const SPELLED_MAX: usize = 6;
        let segments: Vec<&str> = pattern.as_str().split('.').collect();
        let many = segments.iter().filter(|segment| **segment == MANY).count();
        if self.is_every() || many > SPELLED_MAX || segments == [ONE] {
            return self.is_every();
        }
        let spelled = |absent: usize| {
            let mut number = 0;
            let mut spelled = Vec::with_capacity(segments.len());
            for segment in &segments {
                if *segment != MANY {
                    spelled.push(*segment);
                    continue;
                }
                // What takes a star takes whatever it stands for, dots included.
                if absent >> number & 1 == 0 {
                    spelled.push(ONE);
                }
                number += 1;
            }
            spelled.join(".")
        };
        let takes = |text: String| text.is_empty() || glob(self.as_str().as_bytes(), text.as_bytes());
        (0..1 << many).map(spelled).all(takes)
    }

    /// Whether it chooses every queue that `other` chooses. A star of the other one is a character that only a star
    /// here can take, and what takes the star takes whatever it stands for.
    pub fn covers(&self, other: &Self) -> bool {
        glob(self.as_str().as_bytes(), other.as_str().as_bytes())
    }
}

/// Whether `pattern` takes all of `text`.
///
/// Only the last star passed ever needs to take more: whatever an earlier one could take, it can take as well. So the
/// cost is at most the product of the two lengths, however many stars there are, and nothing recurs.
fn glob(mut pattern: &[u8], mut text: &[u8]) -> bool {
    let mut last_star: Option<(&[u8], &[u8])> = None;
    loop {
        match (pattern.split_first(), text.split_first()) {
            (Some((&ANY, after)), _) => {
                last_star = Some((after, text));
                pattern = after;
            }
            (Some((wanted, after)), Some((found, rest))) if wanted == found => {
                (pattern, text) = (after, rest);
            }
            (None, None) => return true,
            _ => {
                let Some((after, taken)) = last_star else { return false };
                let Some((_, rest)) = taken.split_first() else { return false };
                last_star = Some((after, rest));
                (pattern, text) = (after, rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> QueuePattern {
        QueuePattern::new(text).unwrap()
    }

    fn name(text: &str) -> QueueName {
        QueueName::new(text).unwrap()
    }

    #[test]
    fn a_star_stands_for_any_run_and_everything_else_for_itself() {
        for (text, chosen, others) in [
            ("*", &["a", "a.b", "-"][..], &[][..]),
            ("orders", &["orders"], &["order", "orders2", "Orders", "orders.eu"]),
            ("orders.*", &["orders.", "orders.eu", "orders.eu.x"], &["orders", "xorders.eu", "orders-eu"]),
            ("*.dead", &["a.dead", ".dead", "a.b.dead"], &["dead", "a.dead2"]),
            ("a*b*c", &["abc", "a1b2c", "abbbcbc"], &["ab", "acb", "abcd"]),
            ("a.b", &["a.b"], &["aXb"]),
        ] {
            for queue in chosen {
                assert!(pattern(text).matches(&name(queue)), "{text} {queue}");
            }
            for queue in others {
                assert!(!pattern(text).matches(&name(queue)), "{text} {queue}");
            }
        }
    }

    #[test]
    fn what_no_name_can_be_is_no_pattern_either() {
        for text in ["", "a b", "a/*", "a?", "[a]", "a\0", "é*", "(a|b)", "a\\*", "a\n", "{a,b}", "^a$"] {
            assert_eq!(QueuePattern::new(text).unwrap_err().field, "queues", "{text:?}");
        }
        assert!(QueuePattern::new("a*".repeat(QUEUE_NAME_BYTES_MAX)).is_err());
    }

    #[test]
    fn the_worst_pattern_for_the_longest_name_is_soon_decided() {
        let (worst, longest) = ("a*".repeat(QUEUE_NAME_BYTES_MAX / 2), "a".repeat(QUEUE_NAME_BYTES_MAX));
        assert!(pattern(&worst).matches(&name(&longest)));
        let never = format!("{}b", &worst[..QUEUE_NAME_BYTES_MAX - 1]);
        assert!(!pattern(&never).matches(&name(&longest)));
    }

    /// The same by trying everything.
    fn by_hand(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', after)) => (0..=text.len()).any(|at| by_hand(after, &text[at..])),
            Some((wanted, after)) => text.first() == Some(wanted) && by_hand(after, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn it_matches_what_trying_everything_matches(pattern in "[ab*]{1,8}", queue in "[ab]{1,8}") {
            let (bytes, name) = (pattern.as_bytes(), name(&queue));
            prop_assert_eq!(QueuePattern::new(&pattern).unwrap().matches(&name), by_hand(bytes, queue.as_bytes()));
        }

        #[test]
        fn what_covers_chooses_at_least_as_much(one in "[ab*]{1,6}", other in "[ab*]{1,6}", queue in "[abc]{1,8}") {
            let (one, other, queue) = (QueuePattern::new(one).unwrap(), QueuePattern::new(other).unwrap(), name(&queue));
            prop_assert!(!one.covers(&other) || !other.matches(&queue) || one.matches(&queue));
        }

        #[test]
        fn what_does_not_cover_misses_something(one in "[ab*]{1,5}", other in "[ab*]{1,5}") {
            let (one, other) = (QueuePattern::new(one).unwrap(), QueuePattern::new(other).unwrap());
            // A name that stands for all: each star becomes a character that `one` does not have.
            let missed = name(&other.as_str().replace('*', "Z"));
            prop_assert!(other.matches(&missed) && one.matches(&missed) == one.covers(&other));
        }

        #[test]
        fn what_covers_a_pattern_of_topics_chooses_each_of_them(
            own in "[ab.*]{1,6}",
            segments in prop::collection::vec(prop::sample::select(vec!["a", "b", "*", "**"]), 1..5),
            topic in prop::collection::vec(prop::sample::select(vec!["a", "b"]), 1..6),
        ) {
            let own = QueuePattern::new(own).unwrap();
            let pattern: TopicPattern = segments.join(".").parse().unwrap();
            let topic: Topic = topic.join(".").parse().unwrap();
            prop_assert!(!own.covers_topics(&pattern) || !pattern.matches(&topic) || own.matches_topic(&topic));
        }

        #[test]
        fn everything_covers_everything_and_each_itself(text in "[a-c.*]{1,12}") {
            let pattern = QueuePattern::new(&text).unwrap();
            prop_assert!(QueuePattern::every().covers(&pattern) && pattern.covers(&pattern));
        }
    }
}
