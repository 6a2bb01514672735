//! Events.

use redrive_broker::{Counted, Event, Happening, Trigger};
use redrive_core::subscription::SubscriptionId;
use redrive_wire as wire;

/// A payload without names.
fn numbers(count: u64, dlq_count: u64, trigger: Trigger) -> wire::EventPayload {
    wire::EventPayload {
        queue: None,
        count,
        dlq_count,
        triggered_by: trigger.name().to_owned(),
        action: None,
        act: None,
        subscription: None,
        from: None,
        to: None,
        reason: None,
    }
}

/// An event for who shows no key.
pub(crate) fn counted(counted: &Counted) -> wire::Event {
    wire::Event {
        r#type: counted.what.to_owned(),
        timestamp: counted.at.as_millis(),
        payload: numbers(counted.count, counted.dlq_count, counted.trigger),
    }
}

pub(crate) fn event(event: &Event) -> wire::Event {
    let mut payload = wire::EventPayload {
        queue: Some(event.queue.as_str().to_owned()),
        subscription: SubscriptionId::of_queue(&event.queue).map(str::to_owned),
        ..numbers(event.count, event.dlq_count, event.trigger)
    };
    match event.what {
        Happening::Queue(act) => payload.action = Some(act.name().to_owned()),
        Happening::Subscription(act) => payload.act = Some(act.name().to_owned()),
        Happening::Breaker(change) => {
            payload.from = Some(change.from.as_str().to_owned());
            payload.to = Some(change.to.as_str().to_owned());
            payload.reason = Some(change.reason.as_str().to_owned());
        }
        _ => {}
    }
    wire::Event { r#type: event.what.name().to_owned(), timestamp: event.at.as_millis(), payload }
}
