//! Subscriptions have names, and each has a queue that is named after it.

use crate::limits::SUBSCRIPTION_ID_BYTES_MAX;
use crate::queue::QueueName;
use crate::text::text_type;

/// Queues of this prefix belong to the event bus: nobody else creates, changes or deletes them.
const RESERVED: &str = "bus.";
/// Queues of subscriptions.
const SUBSCRIPTIONS: &str = "bus.sub.";
/// Queues of topics whose events are dispatched one handler after another.
const SEQUENCES: &str = "bus.seq.";

text_type! {
    /// The name of a subscription.
    SubscriptionId, field = "subscription", max = SUBSCRIPTION_ID_BYTES_MAX, empty = false,
    allowed = "A-Z a-z 0-9 . _ -", |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

impl SubscriptionId {
    /// The queue in which its deliveries wait, retry and die.
    pub fn queue(&self) -> QueueName {
        QueueName::new(format!("{SUBSCRIPTIONS}{self}")).expect("a prefix and a name fit")
    }

    /// Whose deliveries are in that queue; `None` where it is not the queue of a subscription.
    pub fn of_queue(queue: &QueueName) -> Option<&str> {
        queue.as_str().strip_prefix(SUBSCRIPTIONS)
    }
}

/// The queue of a topic pattern whose events are dispatched one handler after another; `id` is its short name.
pub fn sequence_queue(id: u64) -> QueueName {
    QueueName::new(format!("{SEQUENCES}{id:x}")).expect("a prefix and a number fit")
}

/// The queue of what is brought to subscriptions later: to too many of them at once, or from the past.
pub fn relay_queue() -> QueueName {
    QueueName::new("bus.relay").expect("a name")
}

/// Whether a queue of that name belongs to the event bus.
pub fn is_reserved(queue: &QueueName) -> bool {
    queue.as_str().starts_with(RESERVED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_and_its_queue_name_each_other() {
        let longest = SubscriptionId::new("s".repeat(SUBSCRIPTION_ID_BYTES_MAX)).unwrap();
        for id in [SubscriptionId::new("mail").unwrap(), longest] {
            let queue = id.queue();
            assert_eq!(SubscriptionId::of_queue(&queue), Some(id.as_str()));
            assert!(is_reserved(&queue));
        }
        assert_eq!(SubscriptionId::of_queue(&QueueName::new("mail").unwrap()), None);
        assert_eq!(SubscriptionId::of_queue(&relay_queue()), None);
        assert!(is_reserved(&relay_queue()) && is_reserved(&sequence_queue(u64::MAX)));
        assert!(!is_reserved(&QueueName::new("business").unwrap()));
    }

    #[test]
    fn what_is_no_name_is_refused_by_its_field() {
        for wrong in ["", "a b", "a/b", "ä", "a*", "a\n"] {
            assert_eq!(SubscriptionId::new(wrong).unwrap_err().field, "subscription", "{wrong:?}");
        }
        assert!(SubscriptionId::new("s".repeat(SUBSCRIPTION_ID_BYTES_MAX + 1)).is_err());
    }
}
