//! Topics, and the patterns by which subscriptions choose them.

// What is read here came from outside.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::invalid::{Invalid, Problem};
use crate::limits::{TOPIC_BYTES_MAX, TOPIC_SEGMENTS_MAX};

/// Matches exactly one segment.
const ONE: &str = "*";
/// Matches any number of segments, none included.
const ANY: &str = "**";

/// What an event is about, such as `orders.eu.created`: segments of `[A-Za-z0-9_-]+`, separated by dots.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic(Arc<str>);

impl Topic {
    /// Checks length, segments and characters.
    pub fn new(text: impl AsRef<str>) -> Result<Self, Invalid> {
        let text = text.as_ref();
        check_shape("topic", text)?;
        match text.find(|c| !is_allowed(c) && c != '.') {
            Some(at) => Err(bad_character("topic", at, "A-Z a-z 0-9 _ - and dots between segments")),
            None => Ok(Self(text.into())),
        }
    }

    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Chooses topics: a topic whose segments may also be `*` (exactly one segment) or `**` (any number of them,
/// none included). A lone `*` matches every topic, as people expect of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPattern(Arc<str>);

impl TopicPattern {
    /// Checks length, segments and characters. A `*` within a name is refused rather than taken literally: it
    /// would match nothing, and nobody would notice.
    pub fn new(text: impl AsRef<str>) -> Result<Self, Invalid> {
        let text = text.as_ref();
        check_shape("pattern", text)?;
        if let Some(at) = text.find(|c| !is_allowed(c) && c != '.' && c != '*') {
            return Err(bad_character("pattern", at, "A-Z a-z 0-9 _ - * and dots between segments"));
        }
        if text.split('.').any(|segment| segment.contains('*') && segment != ONE && segment != ANY) {
            let why = "`*` and `**` stand for whole segments: write `orders.*`, not `ord*`";
            return Err(Invalid::unusable("pattern", why));
        }
        Ok(Self(text.into()))
    }

    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the pattern chooses `topic`.
    ///
    /// Only the last `**` passed ever needs to take more: whatever an earlier one could take, it can take as
    /// well. So the cost is at most the product of the two lengths, however many `**` there are.
    pub fn matches(&self, topic: &Topic) -> bool {
        if self.as_str() == ONE {
            return true;
        }
        let (mut pattern, mut topic) = (self.0.split('.'), topic.0.split('.'));
        let mut last_any = None;
        loop {
            let here = topic.clone();
            match (pattern.next(), topic.next()) {
                (Some(ANY), _) => {
                    topic = here.clone();
                    last_any = Some((pattern.clone(), here));
                }
                (Some(wanted), Some(segment)) if wanted == ONE || wanted == segment => {}
                (None, None) => return true,
                _ => {
                    let Some((after, taken)) = &mut last_any else {
                        return false;
                    };
                    if taken.next().is_none() {
                        return false;
                    }
                    (pattern, topic) = (after.clone(), taken.clone());
                }
            }
        }
    }
}

/// The rules that topics and patterns share.
fn check_shape(field: &'static str, text: &str) -> Result<(), Invalid> {
    if text.is_empty() {
        return Err(Invalid::new(field, Problem::Empty));
    }
    Invalid::check_length(field, text.len(), TOPIC_BYTES_MAX, "bytes")?;
    Invalid::check_length(field, text.split('.').count(), TOPIC_SEGMENTS_MAX, "segments")?;
    if text.split('.').any(str::is_empty) {
        return Err(Invalid::unusable(field, "has an empty segment: a dot must stand between two names"));
    }
    Ok(())
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

const fn bad_character(field: &'static str, at: usize, allowed: &'static str) -> Invalid {
    Invalid::new(field, Problem::BadCharacter { at, allowed })
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl FromStr for Topic {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

impl fmt::Display for TopicPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TopicPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl FromStr for TopicPattern {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn topic(text: &str) -> Topic {
        text.parse().unwrap()
    }

    fn pattern(text: &str) -> TopicPattern {
        text.parse().unwrap()
    }

    /// The definition, word for word; exponential, so only for short inputs.
    fn naive(pattern: &[&str], topic: &[&str]) -> bool {
        match (pattern, topic) {
            ([], []) => true,
            ([ANY, rest @ ..], _) => (0..=topic.len()).any(|taken| naive(rest, &topic[taken..])),
            ([ONE, pattern @ ..], [_, topic @ ..]) => naive(pattern, topic),
            ([wanted, pattern @ ..], [segment, topic @ ..]) => wanted == segment && naive(pattern, topic),
            _ => false,
        }
    }

    fn reference(pattern: &str, topic: &str) -> bool {
        let (pattern, topic): (Vec<&str>, Vec<&str>) =
            (pattern.split('.').collect(), topic.split('.').collect());
        pattern == [ONE] || naive(&pattern, &topic)
    }

    proptest! {
        #[test]
        fn matching_agrees_with_the_definition(
            chosen in prop::collection::vec(prop::sample::select(vec!["a", "b", "*", "**"]), 1..8),
            segments in prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..8),
        ) {
            let (chosen, segments) = (chosen.join("."), segments.join("."));
            let matched = pattern(&chosen).matches(&topic(&segments));
            prop_assert_eq!(matched, reference(&chosen, &segments), "{} on {}", chosen, segments);
        }

        #[test]
        fn a_topic_is_a_pattern_that_matches_itself(text in "[a-zA-Z0-9_-]{1,6}(\\.[a-z0-9_-]{1,6}){0,6}") {
            prop_assert!(pattern(&text).matches(&topic(&text)));
            prop_assert!(pattern("*").matches(&topic(&text)));
            prop_assert!(pattern("**").matches(&topic(&text)));
            prop_assert_eq!(topic(&text).to_string(), text);
        }

        #[test]
        fn no_text_panics_the_parsers_and_errors_name_the_field(text in "\\PC{0,40}|[a.*_ é]{0,300}") {
            match text.parse::<Topic>() {
                Ok(parsed) => prop_assert_eq!(parsed.as_str(), text.as_str()),
                Err(refused) => prop_assert_eq!(refused.field, "topic"),
            }
            match text.parse::<TopicPattern>() {
                Ok(parsed) => prop_assert_eq!(parsed.as_str(), text.as_str()),
                Err(refused) => prop_assert_eq!(refused.field, "pattern"),
            }
        }

        #[test]
        fn every_topic_is_also_a_pattern(text in "[a.*-]{0,20}") {
            prop_assert!(text.parse::<Topic>().is_err() || text.parse::<TopicPattern>().is_ok());
        }
    }

    #[test]
    fn patterns_choose_as_the_documentation_says() {
        let cases = [
            ("orders.created", "orders.created", true),
            ("orders.created", "orders.Created", false),
            ("orders.created", "orders.created.eu", false),
            ("orders.*", "orders.created", true),
            ("orders.*", "orders", false),
            ("orders.*", "orders.eu.created", false),
            ("orders.**", "orders", true),
            ("orders.**", "orders.eu.created", true),
            ("orders.**", "payments.created", false),
            ("**.created", "created", true),
            ("**.created", "orders.eu.created", true),
            ("**.created", "orders.created.eu", false),
            ("orders.**.created", "orders.created", true),
            ("orders.**.created", "orders.created.created", true),
            ("*.created", "orders.created", true),
            ("*.created", "created", false),
            ("*.*", "orders", false),
            ("*.**", "orders", true),
            ("**.*.*", "orders", false),
            ("*", "orders", true),
            ("*", "orders.eu.created", true),
            ("**", "orders.eu.created", true),
        ];
        for (chosen, given, expected) in cases {
            assert_eq!(pattern(chosen).matches(&topic(given)), expected, "{chosen} on {given}");
        }
    }

    #[test]
    fn a_refusal_names_the_rule() {
        let long = "a".repeat(256);
        let deep = ["a"; 33].join(".");
        let cases = [
            ("", "must not be empty"),
            (long.as_str(), "is 256 bytes long, the limit is 255"),
            (deep.as_str(), "is 33 segments long, the limit is 32"),
            (".a", "has an empty segment: a dot must stand between two names"),
            ("a.", "has an empty segment: a dot must stand between two names"),
            ("a..b", "has an empty segment: a dot must stand between two names"),
        ];
        for (text, rule) in cases {
            assert_eq!(text.parse::<Topic>().unwrap_err().to_string(), format!("topic: {rule}"));
            assert_eq!(text.parse::<TopicPattern>().unwrap_err().to_string(), format!("pattern: {rule}"));
        }
        let refused = "orders.größe".parse::<Topic>().unwrap_err().to_string();
        assert_eq!(
            refused,
            "topic: byte 9 is not allowed; allowed: A-Z a-z 0-9 _ - and dots between segments"
        );
    }

    #[test]
    fn a_star_within_a_name_is_refused() {
        for text in ["ord*", "orders.*eu", "a.***", "****", "a*b.c"] {
            let refused = text.parse::<TopicPattern>().unwrap_err().to_string();
            assert_eq!(
                refused, "pattern: `*` and `**` stand for whole segments: write `orders.*`, not `ord*`",
                "{text}"
            );
        }
        assert!("orders.*".parse::<Topic>().is_err(), "a topic has no wildcards");
    }

    #[test]
    fn sixty_four_double_stars_are_refused() {
        let refused = ["**"; 64].join(".").parse::<TopicPattern>().unwrap_err();
        assert_eq!(refused.to_string(), "pattern: is 64 segments long, the limit is 32");
    }

    /// A matcher that backtracks into every `**` needs some 10⁹ steps here, and somebody would notice.
    #[test]
    fn as_many_double_stars_as_allowed_are_matched_at_once() {
        let given = topic(&["a"; TOPIC_SEGMENTS_MAX].join("."));
        let stars = ["**"; TOPIC_SEGMENTS_MAX].join(".");
        assert!(pattern(&stars).matches(&given));
        let pairs = ["**.a"; TOPIC_SEGMENTS_MAX / 2].join(".");
        assert!(pattern(&pairs).matches(&given));
        let hopeless = format!("{}.b", ["**.a"; TOPIC_SEGMENTS_MAX / 2 - 1].join("."));
        assert!(!pattern(&hopeless).matches(&given));
    }
}
