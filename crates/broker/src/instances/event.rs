//! Events on their way to the watchers of other instances.
//!
//! They travel as they were counted together at their origin, several in one notice, and get a number of their own where
//! they arrive. What is read here another instance wrote, perhaps of another version: what cannot be read is passed over.

use redrive_core::policy::{BreakerState, Change, ChangeReason, Tally};
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::Notice;
use serde::{Deserialize, Serialize};

use crate::events::{Act, Event, Happening, Trigger};

/// What stands for events that were dropped.
const MISSED: &str = "missed";
/// The brackets around the events of a notice, and the comma between two.
const AROUND_BYTES: usize = 3;

/// An event as it travels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Carried {
    #[serde(rename = "type")]
    what: String,
    queue: String,
    at: u64,
    count: u64,
    dlq_count: u64,
    by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    act: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    change: Option<CarriedChange>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CarriedChange {
    from: String,
    to: String,
    at: u64,
    reason: String,
    messages: u32,
    failed: u32,
}

/// What a notice says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    Events(Vec<Event>),
    /// Events were dropped on their way.
    Missed,
}

/// The notices that carry these events.
pub(super) fn notices(missed: bool, events: &[Carried]) -> Vec<Notice> {
    let mut notices: Vec<Notice> = missed.then(|| Notice::new(MISSED)).into_iter().flatten().collect();
    let mut text = String::new();
    for event in events {
        // Plain fields are JSON.
        let Ok(event) = serde_json::to_string(event) else { continue };
        if text.len() + event.len() + AROUND_BYTES > Notice::BYTES_MAX {
            notices.extend(notice(&std::mem::take(&mut text)));
        }
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&event);
    }
    notices.extend(notice(&text));
    notices
}

fn notice(events: &str) -> Option<Notice> {
    if events.is_empty() { None } else { Notice::new(format!("[{events}]")).ok() }
}

/// What a notice says; nothing where nobody of this version wrote it.
pub(super) fn read(notice: &Notice) -> Option<Told> {
    if notice.as_str() == MISSED {
        return Some(Told::Missed);
    }
    let carried: Vec<Carried> = serde_json::from_str(notice.as_str()).ok()?;
    Some(Told::Events(carried.into_iter().filter_map(Carried::read).collect()))
}

impl Carried {
    pub(super) fn of(event: &Event) -> Self {
        let (act, change) = match event.what {
            Happening::Queue(act) | Happening::Subscription(act) => (Some(act.name().to_owned()), None),
            Happening::Breaker(change) => (None, Some(CarriedChange::of(change))),
            _ => (None, None),
        };
        Self {
            what: event.what.name().to_owned(),
            queue: event.queue.as_str().to_owned(),
            at: event.at.as_millis(),
            count: event.count,
            dlq_count: event.dlq_count,
            by: event.trigger.name().to_owned(),
            act,
            change,
        }
    }

    fn read(self) -> Option<Event> {
        let what = match self.what.as_str() {
            "enqueue" => Happening::Enqueue,
            "lease" => Happening::Lease,
            "ack" => Happening::Ack,
            "nack" => Happening::Nack,
            "requeue" => Happening::Requeue,
            "move_to_dlq" => Happening::MoveToDlq,
            "breaker" => Happening::Breaker(self.change?.read()?),
            "queue" => Happening::Queue(act_named(&self.act?)?),
            "subscription" => Happening::Subscription(act_named(&self.act?)?),
            _ => return None,
        };
        Some(Event {
            offset: 0,
            what,
            at: Timestamp::from_millis(self.at),
            queue: QueueName::new(self.queue).ok()?,
            count: self.count,
            dlq_count: self.dlq_count,
            trigger: Trigger::ALL.into_iter().find(|trigger| trigger.name() == self.by)?,
        })
    }
}

fn act_named(name: &str) -> Option<Act> {
    Act::ALL.into_iter().find(|act| act.name() == name)
}

impl CarriedChange {
    fn of(change: Change) -> Self {
        let tally = match change.reason {
            ChangeReason::FailureShare(tally) => tally,
            _ => Tally::default(),
        };
        Self {
            from: change.from.as_str().to_owned(),
            to: change.to.as_str().to_owned(),
            at: change.at.as_millis(),
            reason: change.reason.as_str().to_owned(),
            messages: tally.messages,
            failed: tally.failed,
        }
    }

    fn read(self) -> Option<Change> {
        let tally = Tally { messages: self.messages, failed: self.failed };
        let reasons = [
            ChangeReason::FailureShare(tally),
            ChangeReason::OpenElapsed,
            ChangeReason::ProbeSucceeded,
            ChangeReason::ProbeFailed,
            ChangeReason::Operator,
        ];
        Some(Change {
            from: state(&self.from)?,
            to: state(&self.to)?,
            at: Timestamp::from_millis(self.at),
            reason: reasons.into_iter().find(|reason| reason.as_str() == self.reason)?,
        })
    }
}

fn state(name: &str) -> Option<BreakerState> {
    let all = [BreakerState::Closed, BreakerState::Open, BreakerState::HalfOpen];
    all.into_iter().find(|state| state.as_str() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(what: Happening, queue: &str) -> Event {
        Event {
            offset: 0,
            what,
            at: Timestamp::from_millis(1_704_067_200_000),
            queue: QueueName::new(queue).unwrap(),
            count: 3,
            dlq_count: 1,
            trigger: Trigger::Scheduler,
        }
    }

    fn everything() -> Vec<Event> {
        let tally = Tally { messages: 9, failed: 7 };
        let opened = Change {
            from: BreakerState::Closed,
            to: BreakerState::Open,
            at: Timestamp::from_millis(5),
            reason: ChangeReason::FailureShare(tally),
        };
        let mut all = vec![
            event(Happening::Enqueue, "orders"),
            event(Happening::Lease, "orders"),
            event(Happening::Ack, "orders"),
            event(Happening::Nack, "orders"),
            event(Happening::Requeue, "orders"),
            event(Happening::MoveToDlq, "orders"),
            event(Happening::Breaker(opened), "orders"),
        ];
        all.extend(Act::ALL.map(|act| event(Happening::Queue(act), &"q".repeat(80))));
        all
    }

    #[test]
    fn events_arrive_as_they_were_in_notices_that_fit() {
        let events: Vec<Event> = (0..20).flat_map(|_| everything()).collect();
        let carried: Vec<Carried> = events.iter().map(Carried::of).collect();
        let notices = notices(false, &carried);
        assert!(notices.len() > 1 && notices.len() < events.len() / 4, "{}", notices.len());
        let arrived = notices.iter().flat_map(|notice| match read(notice) {
            Some(Told::Events(events)) => events,
            other => panic!("{other:?}"),
        });
        assert_eq!(arrived.collect::<Vec<_>>(), events);
    }

    #[test]
    fn that_some_are_missing_is_told_before_the_rest() {
        let notices = notices(true, &[Carried::of(&event(Happening::Ack, "orders"))]);
        assert_eq!(read(&notices[0]), Some(Told::Missed));
        assert!(matches!(read(&notices[1]), Some(Told::Events(events)) if events.len() == 1));
    }

    #[test]
    fn what_another_version_wrote_is_passed_over() {
        for text in ["", "{}", "[1]", "{\"type\":\"ack\"}", "miss"] {
            assert_eq!(read(&Notice::new(text).unwrap()), None, "{text}");
        }
        let mut carried = Carried::of(&event(Happening::Ack, "orders"));
        carried.what = "party".to_owned();
        let known = Carried::of(&event(Happening::Nack, "orders"));
        let Some(Told::Events(events)) = read(&notices(false, &[carried, known])[0]) else { panic!() };
        assert_eq!(events, [event(Happening::Nack, "orders")]);
    }
}
