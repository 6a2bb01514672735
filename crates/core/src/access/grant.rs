//! What a key may do.

use crate::access::pattern::QueuePattern;
use crate::access::right::Right;
use crate::access::scope::Scope;
use crate::invalid::{Invalid, Problem};
use crate::limits::GRANTS_MAX;
use crate::queue::QueueName;
use crate::topic::{Topic, TopicPattern};

/// A scope over some queues.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    /// What for.
    pub scope: Scope,
    /// Over which queues.
    pub queues: QueuePattern,
}

impl Grant {
    /// All of it.
    pub fn everything() -> Self {
        Self { scope: Scope::Admin, queues: QueuePattern::every() }
    }

    fn gives(&self, right: impl Right) -> bool {
        right.scope().is_none_or(|scope| self.scope.implies(scope))
    }
}

/// What an act is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On<'a> {
    /// One queue.
    Queue(&'a QueueName),
    /// One topic.
    Topic(&'a Topic),
    /// All topics of a pattern that there are and may be.
    Topics(&'a TopicPattern),
    /// All queues there are and may be.
    Every,
    /// Whatever the caller may see or give; who asks looks at each of them.
    Some,
}

impl<'a> On<'a> {
    /// The name of what it is about, where it is one thing.
    pub fn name(self) -> Option<&'a str> {
        match self {
            Self::Queue(queue) => Some(queue.as_str()),
            Self::Topic(topic) => Some(topic.as_str()),
            Self::Topics(pattern) => Some(pattern.as_str()),
            Self::Every | Self::Some => None,
        }
    }
}

impl<'a> From<&'a Topic> for On<'a> {
    fn from(topic: &'a Topic) -> Self {
        Self::Topic(topic)
    }
}

impl<'a> From<&'a TopicPattern> for On<'a> {
    fn from(pattern: &'a TopicPattern) -> Self {
        Self::Topics(pattern)
    }
}

impl<'a> From<&'a QueueName> for On<'a> {
    fn from(queue: &'a QueueName) -> Self {
        Self::Queue(queue)
    }
}

/// What a key may do: the sum of its grants, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grants(Vec<Grant>);

impl Grants {
    /// One to [`GRANTS_MAX`] grants.
    pub fn new(grants: Vec<Grant>) -> Result<Self, Invalid> {
        if grants.is_empty() {
            return Err(Invalid::new("grants", Problem::Empty));
        }
        Invalid::check_length("grants", grants.len(), GRANTS_MAX, "items")?;
        Ok(Self(grants))
    }

    /// All of it.
    pub fn everything() -> Self {
        Self(vec![Grant::everything()])
    }

    /// The grants.
    pub fn iter(&self) -> impl Iterator<Item = &Grant> {
        self.0.iter()
    }

    /// Whether they allow it. This is the only place where that is decided.
    pub fn allow(&self, right: impl Right, on: On<'_>) -> bool {
        self.0.iter().filter(|grant| grant.gives(right)).any(|grant| match on {
            On::Queue(queue) => grant.queues.matches(queue),
            On::Topic(topic) => grant.queues.matches_topic(topic),
            On::Topics(pattern) => grant.queues.covers_topics(pattern),
            On::Every => grant.queues.is_every(),
            On::Some => true,
        })
    }

    /// Whether each of `others` is within one of these: nobody can give what they do not hold.
    pub fn hold(&self, others: &Self) -> bool {
        others.iter().all(|other| {
            self.iter().any(|own| own.scope.implies(other.scope) && own.queues.covers(&other.queues))
        })
    }

    /// Whether each of `others` is within a grant to administrate: only then may somebody end what others were given.
    pub fn rule(&self, others: &Self) -> bool {
        let ruled = |other: &Grant| {
            self.iter().any(|own| own.scope == Scope::Admin && own.queues.covers(&other.queues))
        };
        others.iter().all(ruled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::right::{Deed, Use};

    fn grants(all: &[(Scope, &str)]) -> Grants {
        let grant = |(scope, queues): &(Scope, &str)| Grant {
            scope: *scope,
            queues: QueuePattern::new(queues).unwrap(),
        };
        Grants::new(all.iter().map(grant).collect()).unwrap()
    }

    #[test]
    fn nothing_is_allowed_that_no_single_grant_allows() {
        let queue = |name: &str| QueueName::new(name).unwrap();
        let held = grants(&[(Scope::Produce, "a.*"), (Scope::Consume, "b.*")]);
        assert!(held.allow(Use::Enqueue, On::Queue(&queue("a.1"))));
        assert!(held.allow(Use::Lease, On::Queue(&queue("b.1"))));
        assert!(held.allow(Use::Look, On::Queue(&queue("b.1"))), "whoever uses it may see that it is there");
        // Two grants do not add up to a third.
        assert!(!held.allow(Use::Enqueue, On::Queue(&queue("b.1"))));
        assert!(!held.allow(Use::Lease, On::Queue(&queue("a.1"))));
        assert!(!held.allow(Use::Look, On::Queue(&queue("c"))));
        assert!(!held.allow(Use::Inspect, On::Queue(&queue("a.1"))));
        for deed in Deed::ALL {
            assert!(!held.allow(deed, On::Queue(&queue("a.1"))) && !held.allow(deed, On::Some), "{deed:?}");
        }
    }

    #[test]
    fn a_grant_is_for_topics_as_it_is_for_queues() {
        let held = grants(&[(Scope::Produce, "orders.*"), (Scope::Read, "*.eu")]);
        let topic = |text: &str| text.parse::<Topic>().unwrap();
        let topics = |text: &str| text.parse::<TopicPattern>().unwrap();
        assert!(held.allow(Use::Publish, On::Topic(&topic("orders.created"))));
        assert!(held.allow(Use::Publish, On::Topic(&topic("orders.eu.created"))));
        assert!(!held.allow(Use::Publish, On::Topic(&topic("payments.created"))));
        assert!(!held.allow(Use::Subscribe, On::Topics(&topics("orders.*"))), "to publish is not to see");
        assert!(held.allow(Use::Subscribe, On::Topics(&topics("orders.*.eu"))));
        assert!(
            held.allow(Use::Subscribe, On::Topics(&topics("orders.**.x.eu"))),
            "a dot is a character like others"
        );
        assert!(!held.allow(Use::Subscribe, On::Topics(&topics("**.eu"))), "it chooses `eu`, too");
        assert!(!held.allow(Use::Subscribe, On::Topics(&topics("**"))));
        assert!(!held.allow(Use::Subscribe, On::Topics(&topics("*.eu.**"))));
        // `**` may stand for nothing, and takes its dot along.
        let below = grants(&[(Scope::Read, "orders.*")]);
        assert!(!below.allow(Use::Subscribe, On::Topics(&topics("orders.**"))), "it chooses `orders`, too");
        let all = grants(&[(Scope::Read, "orders*")]);
        assert!(all.allow(Use::Subscribe, On::Topics(&topics("orders.**"))));
    }

    #[test]
    fn all_queues_are_more_than_every_queue_there_is_now() {
        let most = grants(&[(Scope::Admin, "a*"), (Scope::Admin, "b*")]);
        assert!(!most.allow(Deed::RequeueExpired, On::Every));
        assert!(Grants::everything().allow(Deed::RequeueExpired, On::Every));
    }

    #[test]
    fn a_key_gives_only_what_it_holds() {
        let held = grants(&[(Scope::Admin, "a.*"), (Scope::Produce, "b")]);
        for (given, can) in [
            (grants(&[(Scope::Admin, "a.*")]), true),
            (grants(&[(Scope::Consume, "a.x"), (Scope::Produce, "b")]), true),
            (grants(&[(Scope::Consume, "b")]), false),
            (grants(&[(Scope::Read, "a*")]), false),
            (grants(&[(Scope::Read, "*")]), false),
            (grants(&[(Scope::Produce, "a.*"), (Scope::Produce, "b*")]), false),
        ] {
            assert_eq!(held.hold(&given), can, "{given:?}");
        }
        assert!(held.rule(&grants(&[(Scope::Produce, "a.x")])));
        assert!(!held.rule(&grants(&[(Scope::Produce, "b")])), "held, but not to administrate");
    }

    #[test]
    fn a_key_without_grants_or_with_too_many_is_none() {
        assert_eq!(Grants::new(Vec::new()).unwrap_err().problem, Problem::Empty);
        assert!(Grants::new(vec![Grant::everything(); GRANTS_MAX + 1]).is_err());
    }
}
