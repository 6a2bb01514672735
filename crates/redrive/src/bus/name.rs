//! What a subscription is called that was given no name.

use redrive_core::invalid::Invalid;
use redrive_core::subscription::SubscriptionId;
use redrive_core::topic::TopicPattern;

/// The name that follows from a pattern, the same at every start: `order.*` is `order.any`, `order.**` is `order.all`, and so
/// is a lone `*`, which means everything. What is not a function of the program has a word more.
pub(super) fn derived(pattern: &TopicPattern, more: Option<&str>) -> Result<SubscriptionId, Invalid> {
    let word = |segment: &str| match segment {
        "*" if pattern.as_str() == "*" => "all".to_owned(),
        "*" => "any".to_owned(),
        "**" => "all".to_owned(),
        segment => segment.to_owned(),
    };
    let mut name = pattern.as_str().split('.').map(word).collect::<Vec<_>>().join(".");
    if let Some(more) = more {
        name = format!("{name}-{more}");
    }
    SubscriptionId::new(name)
        .map_err(|_| Invalid::unusable("name", "is needed: the pattern is too long to make one of it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_follows_from_the_pattern() {
        let name = |pattern: &str, more| derived(&pattern.parse().unwrap(), more).unwrap();
        for (pattern, expected) in [
            ("orders", "orders"),
            ("order.*", "order.any"),
            ("order.**", "order.all"),
            ("*", "all"),
            ("*.created", "any.created"),
            ("**.created", "all.created"),
        ] {
            assert_eq!(name(pattern, None).as_str(), expected);
        }
        assert_eq!(name("order.*", Some("webhook")).as_str(), "order.any-webhook");
    }

    #[test]
    fn a_pattern_that_is_too_long_needs_a_name() {
        let pattern = "a".repeat(100).parse().unwrap();
        assert_eq!(
            derived(&pattern, None).unwrap_err().to_string(),
            "name: is needed: the pattern is too long to make one of it"
        );
    }
}
