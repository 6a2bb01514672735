//! What the prose above the type promises, one example each; `model.rs` has the random runs.

use super::*;

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn message(number: u8) -> MessageId {
    MessageId::new(Timestamp::EPOCH, u128::from(number))
}

/// Open since `EPOCH`, half-open from 30 s on.
fn opened() -> Breaker {
    let mut breaker = Breaker::new(BreakerConfig::default());
    breaker.trip(Timestamp::EPOCH);
    breaker
}

/// Half-open at 30 s, with `message(1)` as its probe until 60 s.
fn probing() -> Breaker {
    let mut breaker = opened();
    let ticket = breaker.reserve_probe(at(30_000)).unwrap();
    assert!(breaker.probe_leased(ticket, message(1), at(60_000)));
    breaker
}

fn arrow(change: Option<Change>) -> Option<(BreakerState, BreakerState, &'static str)> {
    change.map(|change| (change.from, change.to, change.reason.as_str()))
}

#[test]
fn more_than_half_of_four_messages_failing_opens_it() {
    let mut breaker = Breaker::new(BreakerConfig::default());
    for number in 1..=3 {
        assert_eq!(
            breaker.record(at(1), at(1), message(number), Outcome::Failure),
            None,
            "three are too few"
        );
    }
    let change = breaker.record(at(2), at(2), message(4), Outcome::Success).unwrap();
    assert_eq!(change.reason, ChangeReason::FailureShare(Tally { messages: 4, failed: 3 }));
    assert_eq!(breaker.allowance(at(2), 0), Allowance::Nothing { until: Some(at(30_002)) });
}

#[test]
fn exactly_half_failing_does_not_open_it() {
    let mut breaker = Breaker::new(BreakerConfig::default());
    for number in 1..=20 {
        let outcome = if number % 2 == 0 { Outcome::Failure } else { Outcome::Success };
        assert_eq!(breaker.record(at(1), at(1), message(number), outcome), None);
    }
    assert_eq!(breaker.allowance(at(1), 1_000_000), Allowance::Unlimited);
}

#[test]
fn a_message_counts_with_its_latest_outcome() {
    let mut breaker = Breaker::new(BreakerConfig::default());
    for number in 1..=3 {
        breaker.record(at(1), at(1), message(number), Outcome::Failure);
    }
    breaker.record(at(2), at(2), message(3), Outcome::Success);
    breaker.record(at(2), at(2), message(2), Outcome::Success);
    breaker.record(at(2), at(2), message(2), Outcome::NoOutcome);
    assert_eq!(breaker.record(at(3), at(3), message(4), Outcome::Success), None);
    assert_eq!(breaker.tally(at(3)), Tally { messages: 4, failed: 1 });
}

#[test]
fn half_open_is_reported_once() {
    let mut breaker = opened();
    assert_eq!(breaker.poll(at(29_999)), None);
    let expected = (BreakerState::Open, BreakerState::HalfOpen, "open_elapsed");
    assert_eq!(arrow(breaker.poll(at(30_000))), Some(expected));
    assert_eq!(breaker.poll(at(30_001)), None);
}

#[test]
fn a_probe_that_succeeds_closes_it_and_the_ramp_doubles() {
    let mut breaker = probing();
    let expected = (BreakerState::HalfOpen, BreakerState::Closed, "probe_succeeded");
    assert_eq!(arrow(breaker.record(at(31_000), at(31_000), message(1), Outcome::Success)), Some(expected));
    let mut limit = 1;
    while limit <= RAMP_LIMIT_MAX {
        assert_eq!(breaker.allowance(at(31_000), 0), Allowance::UpTo(limit));
        assert_eq!(breaker.allowance(at(31_000), limit), Allowance::Nothing { until: None });
        breaker.record(at(31_000), at(31_000), message(9), Outcome::Success);
        limit *= 2;
    }
    assert_eq!(breaker.allowance(at(31_000), u32::MAX), Allowance::Unlimited);
}

#[test]
fn a_probe_that_fails_opens_it_anew() {
    let mut breaker = probing();
    let expected = (BreakerState::HalfOpen, BreakerState::Open, "probe_failed");
    assert_eq!(arrow(breaker.record(at(31_000), at(31_000), message(1), Outcome::Failure)), Some(expected));
    assert_eq!(breaker.allowance(at(60_999), 0), Allowance::Nothing { until: Some(at(61_000)) });
    assert_eq!(breaker.allowance(at(61_000), 0), Allowance::Probe);
    assert_eq!(breaker.last_probe(), Some(message(1)));
}

#[test]
fn failures_of_the_outage_do_not_count_after_closing() {
    let mut breaker = Breaker::new(BreakerConfig::default());
    for number in 1..=4 {
        breaker.record(at(1), at(1), message(number), Outcome::Failure);
    }
    breaker.reset(at(2));
    assert_eq!(breaker.tally(at(2)), Tally::default());
    assert_eq!(breaker.record(at(3), at(3), message(9), Outcome::Failure), None);
}

#[test]
fn outcomes_of_other_messages_move_nothing_while_open_or_half_open() {
    for (mut breaker, now) in [(opened(), at(10_000)), (probing(), at(40_000))] {
        let row = breaker.row();
        for number in 2..=20 {
            assert_eq!(breaker.record(now, now, message(number), Outcome::Success), None);
            assert_eq!(breaker.record(now, now, message(number), Outcome::Failure), None);
        }
        assert_eq!(breaker.row(), row);
    }
}

#[test]
fn a_probe_without_an_outcome_frees_the_slot() {
    let mut breaker = probing();
    assert_eq!(breaker.allowance(at(31_000), 1), Allowance::Nothing { until: Some(at(60_000)) });
    assert_eq!(breaker.record(at(31_000), at(31_000), message(1), Outcome::NoOutcome), None);
    assert_eq!(breaker.allowance(at(31_000), 0), Allowance::Probe);
}

#[test]
fn a_forgotten_probe_frees_the_slot_by_time() {
    let mut breaker = opened();
    assert!(breaker.reserve_probe(at(30_000)).is_some());
    assert_eq!(breaker.reserve_probe(at(59_999)), None);
    assert!(breaker.reserve_probe(at(60_000)).is_some(), "the reservation ran out");
    let mut breaker = probing();
    breaker.probe_extended(message(2), at(31_000));
    breaker.probe_extended(message(1), at(90_000));
    assert_eq!(breaker.reserve_probe(at(89_999)), None);
    assert!(breaker.reserve_probe(at(90_000)).is_some(), "the lease ran out");
}

#[test]
fn an_overdue_probe_still_decides_until_another_takes_the_slot() {
    let mut breaker = probing();
    let change = breaker.clone().record(at(60_000), at(60_000), message(1), Outcome::Failure);
    assert_eq!(change.map(|change| change.to), Some(BreakerState::Open), "expire comes after the deadline");
    assert!(breaker.reserve_probe(at(60_000)).is_some());
    assert_eq!(breaker.record(at(60_000), at(60_000), message(1), Outcome::Failure), None);
    assert_eq!(breaker.state(at(60_000)), BreakerState::HalfOpen);
}

#[test]
fn a_stale_ticket_neither_frees_nor_fills_a_newer_slot() {
    let mut breaker = opened();
    let stale = breaker.reserve_probe(at(30_000)).unwrap();
    let fresh = breaker.reserve_probe(at(60_000)).unwrap();
    let row = breaker.row();
    breaker.drop_probe(stale);
    assert!(!breaker.probe_leased(stale, message(1), at(99_000)));
    assert_eq!(breaker.row(), row);
    assert!(breaker.probe_leased(fresh, message(2), at(99_000)));
    assert!(!breaker.probe_leased(fresh, message(3), at(99_000)), "one ticket, one message");
    breaker.drop_probe(fresh);
    assert_eq!(breaker.allowance(at(60_000), 0), Allowance::Probe);
}

#[test]
fn an_operator_trips_and_resets() {
    let mut breaker = Breaker::new(BreakerConfig::default());
    let tripped = (BreakerState::Closed, BreakerState::Open, "operator");
    assert_eq!(arrow(breaker.trip(at(0))), Some(tripped));
    assert_eq!(breaker.trip(at(10_000)), None);
    assert_eq!(breaker.allowance(at(39_999), 0), Allowance::Nothing { until: Some(at(40_000)) });
    let reset = (BreakerState::Open, BreakerState::Closed, "operator");
    assert_eq!(arrow(breaker.reset(at(11_000))), Some(reset));
    assert_eq!(breaker.reset(at(11_000)), None);
    assert_eq!(breaker.allowance(at(11_000), 0), Allowance::UpTo(1), "a reset ramps, and twice is once");
    let mut breaker = probing();
    let again = (BreakerState::HalfOpen, BreakerState::Open, "operator");
    assert_eq!(arrow(breaker.trip(at(31_000))), Some(again));
    assert_eq!(
        breaker.record(at(31_001), at(31_001), message(1), Outcome::Success),
        None,
        "no longer the probe"
    );
}

#[test]
fn a_probe_may_be_settled_at_another_instance() {
    let ours = probing();
    let mut other = Breaker::shared(BreakerConfig::default(), 7);
    let met = (BreakerState::Closed, BreakerState::Open, "adopted");
    assert_eq!(arrow(other.adopt(ours.row(), at(31_000))), Some(met));
    assert_eq!(arrow(other.poll(at(31_000))).map(|(_, to, _)| to), Some(BreakerState::HalfOpen));
    assert_eq!(other.reserve_probe(at(31_000)), None);
    assert_eq!(other.last_probe(), Some(message(1)));
    let closed = other.record(at(32_000), at(32_000), message(1), Outcome::Success);
    assert_eq!(closed.map(|change| change.to), Some(BreakerState::Closed));
    let mut ours = ours;
    let told = (BreakerState::HalfOpen, BreakerState::Closed, "adopted");
    assert_eq!(arrow(ours.adopt(other.row(), at(32_000))), Some(told));
    assert_eq!(ours.allowance(at(32_000), 0), Allowance::UpTo(1));
}

#[test]
fn numbers_go_on_where_another_instance_freed_the_slot() {
    let mut first = opened();
    let ticket = first.reserve_probe(at(30_000)).unwrap();
    first.drop_probe(ticket);
    let mut second = Breaker::shared(BreakerConfig::default(), 2);
    second.adopt(first.row(), at(30_000));
    let next = second.reserve_probe(at(30_000)).unwrap();
    assert!(next.number() > ticket.number());
}

#[test]
fn reading_the_row_again_does_not_report_half_open_again() {
    let mut breaker = opened();
    assert!(breaker.poll(at(30_000)).is_some());
    assert_eq!(breaker.adopt(breaker.row(), at(30_000)), None);
    assert_eq!(breaker.poll(at(30_000)), None);
}

#[test]
fn the_loser_of_a_race_for_the_same_number_cannot_touch_the_winners_probe() {
    let row = opened().row();
    let mut winner = Breaker::shared(BreakerConfig::default(), 1);
    let mut loser = Breaker::shared(BreakerConfig::default(), 2);
    winner.adopt(row, at(30_000));
    loser.adopt(row, at(30_000));
    winner.reserve_probe(at(30_000)).unwrap();
    let lost = loser.reserve_probe(at(30_000)).unwrap();
    loser.adopt(winner.row(), at(30_000));
    assert!(!loser.probe_leased(lost, message(1), at(40_000)));
    loser.drop_probe(lost);
    assert_eq!(loser.row(), winner.row());
}

#[test]
fn leases_from_before_the_outage_say_nothing_after_it() {
    let mut breaker = Breaker::new(BreakerConfig::default());
    for number in 1..=4 {
        breaker.record(at(1), at(0), message(number), Outcome::Failure);
    }
    let ticket = breaker.reserve_probe(at(40_000)).unwrap();
    assert!(breaker.probe_leased(ticket, message(5), at(70_000)));
    breaker.record(at(41_000), at(40_000), message(5), Outcome::Success);
    assert_eq!((breaker.state(at(41_000)), breaker.closed_at()), (BreakerState::Closed, at(41_000)));
    for number in 10..30 {
        assert_eq!(breaker.record(at(42_000), at(2), message(number), Outcome::Failure), None);
    }
    assert_eq!(breaker.tally(at(42_000)).messages, 0);
    assert_eq!(breaker.allowance(at(42_000), 0), Allowance::UpTo(1), "and none of them ended the ramp");
}

#[test]
fn what_was_not_swapped_in_is_taken_back_and_can_be_put_in_place_later() {
    let mut breaker = probing();
    let before = breaker.footing();
    let closed = breaker.record(at(31_000), at(30_000), message(1), Outcome::Success);
    assert_eq!(closed.map(|change| change.to), Some(BreakerState::Closed));
    let after = breaker.footing();
    assert_ne!(before.row(), after.row());
    breaker.stand_on(before);
    assert_eq!((breaker.row(), breaker.state(at(31_000))), (before.row(), BreakerState::HalfOpen));
    breaker.stand_on(after);
    assert_eq!((breaker.row(), breaker.closed_at()), (after.row(), at(31_000)));
    assert_eq!(breaker.allowance(at(31_000), 0), Allowance::UpTo(1), "the ramp, too");
}
