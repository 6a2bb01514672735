use redrive_wire::{LeaseView, MessageView, StateCounts, Time};

use super::*;
use crate::top::look::QueueLook;

pub(in crate::top) fn queue(name: &str, at: u64, enqueued: u64, acked: u64) -> QueueLook {
    let totals = [("enqueue", enqueued), ("ack", acked)].map(|(name, count)| (name.to_owned(), count));
    let states = StateCounts { ready: 5, delayed: 4, leased: 3, dead: 0, done: 0 };
    QueueLook {
        stats: QueueStats {
            queue: name.to_owned(),
            at: Time(at),
            states,
            overdue: 0,
            retries_in_flight: 0,
            oldest_ready_age_ms: Some(61_000),
            dedup_keys: 0,
            totals: totals.into_iter().collect(),
        },
        paused: false,
    }
}

pub(in crate::top) fn leased(id: &str, deadline: u64) -> MessageView {
    let lease = LeaseView {
        lease_id: "1".to_owned(),
        consumer: "worker-1".to_owned(),
        leased_at: Time(0),
        deadline: Time(deadline),
        age_ms: 0,
        overdue: false,
    };
    let view = serde_json::json!({
        "id": id, "queue": "orders", "state": "leased", "body_bytes": 0, "content_type": "", "headers": {}, "type": "",
        "source": "", "priority": 5, "fairness_key": "", "created_at": Time(0), "visible_at": Time(0), "attempts": 2,
        "deliveries": 2, "redrives": 0, "failures": [], "lease": lease,
    });
    serde_json::from_value(view).unwrap()
}

pub(in crate::top) fn snapshot(queues: Vec<QueueLook>, leases: Vec<MessageView>, at: u64) -> Snapshot {
    let chosen = queues.first().map(|queue| queue.stats.queue.clone());
    Snapshot { queues, more: false, chosen, leases, at: Timestamp::from_millis(at) }
}

fn press(state: &mut State, code: KeyCode) -> Act {
    state.pressed(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn rates_are_what_happened_between_two_looks() {
    let mut state = State::new("http://here/");
    state.saw(snapshot(vec![queue("orders", 10_000, 100, 50)], Vec::new(), 9_000));
    assert_eq!((state.queues[0].rates, state.offset), (None, Some(1_000)));
    state.saw(snapshot(vec![queue("orders", 12_000, 130, 51)], Vec::new(), 11_000));
    assert_eq!(state.queues[0].rates, Some((15.0, 0.5)));
    // A look at the same moment says nothing new.
    state.saw(snapshot(vec![queue("orders", 12_000, 130, 51)], Vec::new(), 11_000));
    assert_eq!(state.queues[0].rates, Some((15.0, 0.5)));
    assert_eq!(state.server_time(Timestamp::from_millis(5_000)).as_millis(), 6_000);
}

#[test]
fn keys_choose_pause_help_and_quit() {
    let mut state = State::new("http://here/");
    assert_eq!(press(&mut state, KeyCode::Down), Act::GoOn);
    let queues = || ["a", "b", "c"].map(|name| queue(name, 1, 0, 0)).to_vec();
    state.saw(snapshot(queues(), Vec::new(), 1));
    assert_eq!(state.at(), Some(0));
    for (key, at) in [(KeyCode::Down, 1), (KeyCode::Tab, 2), (KeyCode::Down, 0), (KeyCode::Up, 2)] {
        press(&mut state, key);
        assert_eq!(state.at(), Some(at));
    }
    // A queue that goes takes the choice with it.
    state.saw(snapshot(queues()[..2].to_vec(), Vec::new(), 2));
    assert_eq!(state.at(), Some(0));
    press(&mut state, KeyCode::Char('p'));
    state.saw(snapshot(Vec::new(), Vec::new(), 3));
    assert_eq!((state.paused, state.queues.len()), (true, 2), "the picture stands still");
    press(&mut state, KeyCode::Char('?'));
    assert!(state.help);
    assert_eq!(press(&mut state, KeyCode::Esc), Act::GoOn);
    assert!(!state.help);
    assert_eq!(press(&mut state, KeyCode::Char('q')), Act::Quit);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(state.pressed(interrupt), Act::Quit);
}

#[test]
fn a_lost_server_is_lost_since_it_was_lost_and_comes_back() {
    let mut state = State::new("http://here/");
    let at = Timestamp::from_millis;
    state.lost("refused".to_owned(), at(1_000));
    state.lost("refused again".to_owned(), at(2_000));
    assert_eq!(state.link, Link::Lost { since: at(1_000), why: "refused again".to_owned() });
    state.saw(snapshot(Vec::new(), Vec::new(), 3_000));
    assert_eq!(state.link, Link::Live);
}

#[test]
fn leases_come_in_the_order_of_their_ends() {
    let mut state = State::new("http://here/");
    let leases = vec![leased("late", 30_000), leased("soon", 10_000)];
    state.saw(snapshot(vec![queue("orders", 1, 0, 0)], leases, 1));
    let order: Vec<&str> = state.leases.iter().map(|lease| lease.message.as_str()).collect();
    assert_eq!(order, ["soon", "late"]);
}

#[test]
fn what_needs_attention_is_named() {
    let mut state = State::new("http://here/");
    let mut bad = queue("orders", 1, 0, 0);
    (bad.stats.overdue, bad.stats.states.dead, bad.paused) = (2, 7, true);
    state.saw(snapshot(vec![bad, queue("mail", 1, 0, 0)], Vec::new(), 1));
    assert_eq!(state.attention(), ["orders: 2 overdue, 7 dead, paused"]);
}
