//! Events.

use redrive_broker::{Event, Happening};
use redrive_core::subscription::SubscriptionId;
use redrive_wire as wire;

pub(crate) fn event(event: &Event) -> wire::Event {
    let mut payload = wire::EventPayload {
        queue: event.queue.as_str().to_owned(),
        count: event.count,
        dlq_count: event.dlq_count,
        triggered_by: event.trigger.name().to_owned(),
        action: None,
        act: None,
        subscription: SubscriptionId::of_queue(&event.queue).map(str::to_owned),
        from: None,
        to: None,
        reason: None,
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
