use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn ago(secs: u64) -> Timestamp {
    NOW.minus(Millis::from_secs(secs))
}

/// A queue that has nothing wrong with it.
fn fine(name: &str) -> QueueFacts {
    QueueFacts {
        queue: QueueName::new(name).unwrap(),
        ready: 0,
        delayed: 0,
        leased: 0,
        oldest_ready: None,
        overdue: 0,
        overdue_since: None,
        paused: None,
        breaker: None,
        asked_at: ago(5),
        waited_for: false,
        leased_lately: 0,
        died_lately: 0,
        expired_lately: 0,
    }
}

/// A queue with old messages that nobody asks for.
fn left_alone(name: &str) -> QueueFacts {
    QueueFacts { ready: 7, oldest_ready: Some(ago(400)), asked_at: ago(61), ..fine(name) }
}

fn facts(queues: Vec<QueueFacts>) -> Facts {
    Facts { now: NOW, overdue_check_interval: Millis::from_secs(5), queues, ..Facts::default() }
}

fn of(queue: QueueFacts) -> Vec<Attention> {
    attention(&facts(vec![queue])).0
}

fn kinds(found: &[Attention]) -> Vec<(&'static str, &'static str)> {
    found.iter().map(|one| (one.kind.name(), one.severity.name())).collect()
}

fn only(queue: QueueFacts) -> Attention {
    let mut found = of(queue);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn a_queue_without_trouble_is_not_told() {
    let busy = QueueFacts { ready: 900, delayed: 9, leased: 9, oldest_ready: Some(ago(20)), ..fine("q") };
    assert_eq!(of(busy), []);
    assert_eq!(of(fine("empty")), []);
}

#[test]
fn an_open_breaker_says_when_it_is_tried_again() {
    let until = Some(NOW.plus(Millis::from_secs(9)));
    for (state, told) in [(BreakerState::Closed, 0), (BreakerState::Open, 1), (BreakerState::HalfOpen, 1)] {
        let found = of(QueueFacts { breaker: Some((state, until)), ..left_alone("q") });
        let breakers = found.iter().filter(|one| one.kind == AttentionKind::BreakerOpen).count();
        assert_eq!(breakers, told, "{state:?}");
    }
    let open = only(QueueFacts { breaker: Some((BreakerState::Open, until)), ..left_alone("q") });
    assert_eq!((open.severity, open.until, open.count), (Severity::Critical, until, Some(7)));
}

#[test]
fn leases_that_ran_out_are_told_when_the_sweeper_is_late() {
    let at = |secs| QueueFacts { leased: 3, overdue: 3, overdue_since: Some(ago(secs)), ..fine("q") };
    assert_eq!(of(at(10)), [], "it may still come");
    let late = only(at(11));
    assert_eq!((late.kind, late.severity, late.count), (AttentionKind::Overdue, Severity::Critical, Some(3)));
    assert_eq!((late.age, late.since), (Some(Millis::from_secs(11)), Some(ago(11))));
    assert_eq!(of(QueueFacts { overdue: 0, ..at(11) }), [], "a deadline that is still to come is none");
}

#[test]
fn nobody_is_there_only_where_nobody_asked_or_waits_or_works() {
    let alone = only(left_alone("q"));
    assert_eq!(
        (alone.kind, alone.severity, alone.count, alone.age),
        (AttentionKind::NoConsumers, Severity::Critical, Some(7), Some(Millis::from_secs(400)))
    );
    let young = QueueFacts { oldest_ready: Some(ago(60)), ..left_alone("q") };
    assert_eq!(of(young), [], "it has not waited for long");
    for busy in [
        QueueFacts { asked_at: ago(60), ..left_alone("q") },
        QueueFacts { waited_for: true, ..left_alone("q") },
        QueueFacts { leased: 1, ..left_alone("q") },
        QueueFacts { leased_lately: 1, ..left_alone("q") },
    ] {
        assert_eq!(kinds(&of(busy)), [("oldest_ready", "warning")]);
    }
}

#[test]
fn the_oldest_message_is_told_when_it_is_too_old_and_nothing_else_explains_it() {
    let slow = |secs| QueueFacts { ready: 2, oldest_ready: Some(ago(secs)), leased: 1, ..fine("q") };
    assert_eq!(of(slow(300)), []);
    let old = only(slow(301));
    assert_eq!((old.kind, old.age), (AttentionKind::OldestReady, Some(Millis::from_secs(301))));
    let open = Some((BreakerState::Open, None));
    assert_eq!(kinds(&of(QueueFacts { breaker: open, ..slow(301) })), [("breaker_open", "critical")]);
    assert_eq!(
        kinds(&of(QueueFacts { paused: Some(Pause::UntilResumed), ..slow(301) })),
        [("paused", "warning")]
    );
}

#[test]
fn what_died_and_what_ran_out_lately_is_counted() {
    let found = of(QueueFacts { died_lately: 2, expired_lately: 1, ..fine("q") });
    assert_eq!(kinds(&found), [("dead_rising", "warning"), ("leases_expiring", "warning")]);
    assert_eq!((found[0].count, found[1].count), (Some(2), Some(1)));
    assert_eq!(found[0].detail, "2 messages died in the last 15 minutes");
    assert_eq!(found[1].detail, "1 lease ran out in the last 15 minutes");
}

#[test]
fn a_pause_is_worse_where_something_waits() {
    let until = NOW.plus(Millis::from_secs(60));
    let empty = only(QueueFacts { paused: Some(Pause::Until(until)), ..fine("q") });
    assert_eq!((empty.severity, empty.count, empty.until), (Severity::Notice, Some(0), Some(until)));
    let waiting = only(QueueFacts { paused: Some(Pause::UntilResumed), ready: 2, delayed: 1, ..fine("q") });
    assert_eq!((waiting.severity, waiting.count, waiting.until), (Severity::Warning, Some(3), None));
    assert_eq!(waiting.detail, "the queue is paused, and 3 messages wait in it");
}

#[test]
fn the_queue_of_a_subscription_is_told_with_its_name() {
    let found = only(QueueFacts { died_lately: 1, ..fine("bus.sub.mailer") });
    assert_eq!(found.subscription.as_deref(), Some("mailer"));
    assert_eq!(only(QueueFacts { died_lately: 1, ..fine("jobs") }).subscription, None);
}

#[test]
fn who_switched_a_subscription_off_makes_a_difference() {
    let one = |failing: Option<u64>, disabled: Option<Disabled>| {
        let facts = Facts {
            subscriptions: vec![SubscriptionFacts {
                id: SubscriptionId::new("mailer").unwrap(),
                failing_since: failing.map(ago),
                disabled: disabled.map(|why| (why, ago(7))),
            }],
            ..facts(Vec::new())
        };
        attention(&facts).0
    };
    assert_eq!(one(None, None), []);
    assert_eq!(kinds(&one(Some(90), None)), [("endpoint_failing", "critical")]);
    assert_eq!(one(Some(90), None)[0].since, Some(ago(90)));
    assert_eq!(kinds(&one(None, Some(Disabled::Operator))), [("subscription_disabled", "notice")]);
    for why in [Disabled::Gone, Disabled::Failing] {
        let found = one(Some(90), Some(why));
        assert_eq!(kinds(&found), [("subscription_disabled", "warning")], "it is not called any more");
        assert_eq!((found[0].since, found[0].subscription.as_deref()), (Some(ago(7)), Some("mailer")));
    }
}

#[test]
fn what_waits_for_a_subscription_that_is_switched_off_waits_because_of_that() {
    let off = SubscriptionFacts {
        id: SubscriptionId::new("mailer").unwrap(),
        failing_since: None,
        disabled: Some((Disabled::Operator, ago(7))),
    };
    let queues = vec![left_alone("bus.sub.mailer"), left_alone("bus.sub.other")];
    let (found, _) = attention(&Facts { subscriptions: vec![off], ..facts(queues) });
    let told = |one: &Attention| (one.kind.name(), one.subscription.clone().unwrap_or_default());
    let found: Vec<_> = found.iter().map(told).collect();
    assert_eq!(found, [("no_consumers", "other".to_owned()), ("subscription_disabled", "mailer".to_owned())]);
}

#[test]
fn a_failed_operation_is_told_for_a_day() {
    let one = |secs| {
        let operation = OperationFacts {
            id: OperationId::default(),
            what: "redrive",
            queue: QueueName::new("jobs").unwrap(),
            failed_at: ago(secs),
            problem: "no such queue".to_owned(),
        };
        attention(&Facts { operations: vec![operation], ..facts(Vec::new()) }).0
    };
    assert_eq!(kinds(&one(86_400)), [("operation_failed", "warning")]);
    assert_eq!(one(1)[0].detail, "the redrive failed: no such queue");
    assert_eq!(one(86_401), []);
}

#[test]
fn the_worse_comes_first_then_the_kind_then_the_larger_then_the_older() {
    let dead = |name, died_lately| QueueFacts { died_lately, ..fine(name) };
    let facts = Facts {
        storage: Some(StorageFacts { full_since: ago(3) }),
        ..facts(vec![
            QueueFacts { paused: Some(Pause::UntilResumed), ..fine("a") },
            dead("b", 1),
            dead("c", 5),
            dead("d", 1),
            QueueFacts { oldest_ready: Some(ago(900)), ..left_alone("e") },
            left_alone("f"),
            QueueFacts { breaker: Some((BreakerState::Open, None)), ..fine("g") },
        ])
    };
    let told = |one: &Attention| {
        let queue = one.queue.as_ref().map_or("", QueueName::as_str);
        format!("{} {queue}", one.kind.name())
    };
    let (found, more) = attention(&facts);
    let found: Vec<String> = found.iter().map(told).collect();
    assert_eq!(
        found,
        [
            "storage ",
            "breaker_open g",
            "no_consumers e",
            "no_consumers f",
            "dead_rising c",
            "dead_rising b",
            "dead_rising d",
            "paused a"
        ]
    );
    assert_eq!(more, 0);
}

#[test]
fn only_so_many_are_told_and_the_rest_is_counted() {
    let queues = (0..250).map(|n| QueueFacts { died_lately: 1 + n, ..fine(&format!("q{n}")) }).collect();
    let (found, more) = attention(&facts(queues));
    assert_eq!((found.len(), more), (ATTENTION_MAX, 150));
    assert_eq!(found[0].count, Some(250), "the worst of them");
}

#[test]
fn spans_are_told_as_people_say_them() {
    let told = |secs| span(Millis::from_secs(secs));
    assert_eq!(
        [told(1), told(119), told(120), told(7_200), told(172_799), told(172_800)],
        ["1 second", "119 seconds", "2 minutes", "2 hours", "47 hours", "2 days"]
    );
}
