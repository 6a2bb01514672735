//! Fresh work never starves behind retries, and retries never starve behind fresh work.

use std::num::NonZeroU32;

use redrive_core::message::{Lane, Message, State};
use redrive_core::policy::{RetryLane, Share};
use redrive_core::queue::QueueName;
use redrive_store::{Filter, LaneChoice};

use crate::world::World;

/// Messages that have failed once and are due, and as many that nobody has touched.
async fn both_lanes(w: &mut World, queue: &QueueName, each: usize) {
    w.put_many(queue, each, |_, _| ()).await;
    for message in w.lease(queue, each).await {
        assert!(w.nack(&message).await.is_applied());
    }
    w.put_many(queue, each, |_, _| ()).await;
}

fn retries(messages: &[Message]) -> usize {
    messages.iter().filter(|message| message.progress.lane() == Lane::Retry).count()
}

async fn the_retry_share_holds_for_any_mix_of_batch_sizes(w: &mut World) {
    for (n, share) in [0.0, 0.1, 0.2, 0.25, 0.5, 0.9, 1.0].into_iter().enumerate() {
        let share = Share::new(share).expect("a share");
        let q = w.queue_with(&format!("q{n}"), |config| config.retry_share = Some(share)).await;
        both_lanes(w, &q, 120).await;
        let (mut picks, mut got) = (0, 0);
        for size in [1, 1, 1, 2, 1, 7, 1, 3, 1, 1, 20, 1, 5, 1, 1, 30, 1, 1, 9, 1] {
            let messages = w.lease(&q, size).await;
            assert_eq!(messages.len(), size, "both lanes have work");
            picks += size;
            got += retries(&messages);
            let due_millionths = picks * share.millionths() as usize;
            let off = (got * 1_000_000).abs_diff(due_millionths);
            assert!(off <= 1_000_000, "{got} retries in {picks} picks, {due_millionths} millionths are due");
        }
    }
}

async fn calls_of_one_serve_both_lanes(w: &mut World) {
    let q = w.queue("q").await;
    both_lanes(w, &q, 100).await;
    let mut got = 0;
    for _ in 0..50 {
        got += retries(&w.lease(&q, 1).await);
    }
    assert!((9..=11).contains(&got), "{got} retries in 50 picks, 10 are due");
}

async fn what_one_lane_cannot_use_the_other_gets(w: &mut World) {
    let q = w.queue("q").await;
    both_lanes(w, &q, 10).await;
    assert_eq!(w.lease(&q, 20).await.len(), 20, "both lanes are emptied");
    let only_retries = w.queue("retries").await;
    w.put_many(&only_retries, 10, |_, _| ()).await;
    for message in w.lease(&only_retries, 10).await {
        w.nack(&message).await;
    }
    assert_eq!(w.lease(&only_retries, 10).await.len(), 10, "retries alone get everything");
}

async fn a_quiet_time_earns_no_burst(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 100, |_, _| ()).await;
    for _ in 0..60 {
        w.lease_one(&q).await;
    }
    let one = w.put(&q).await;
    for message in w.lease(&q, 100).await {
        if message.id() != one {
            w.nack(&message).await;
        }
    }
    w.put_many(&q, 100, |_, _| ()).await;
    let got = retries(&w.lease(&q, 20).await);
    assert!(got <= 5, "{got} of 20 were retries: the fresh work served before had earned them credit");
}

async fn a_consumer_may_ask_for_one_lane(w: &mut World) {
    let q = w.queue("q").await;
    both_lanes(w, &q, 5).await;
    let fresh = w.lease_with(&q, 100, |r| r.lane = LaneChoice::Only(Lane::Fresh)).await.messages;
    assert_eq!((fresh.len(), retries(&fresh)), (5, 0));
    let retry = w.lease_with(&q, 100, |r| r.lane = LaneChoice::Only(Lane::Retry)).await.messages;
    assert_eq!((retry.len(), retries(&retry)), (5, 5));
}

async fn a_separate_retry_lane_is_served_only_to_those_who_ask(w: &mut World) {
    let q = w.queue_with("q", |config| config.retry_lane = Some(RetryLane::Separate)).await;
    both_lanes(w, &q, 5).await;
    let shared = w.lease(&q, 100).await;
    assert_eq!(
        (shared.len(), retries(&shared)),
        (5, 0),
        "retries are kept apart, even with nothing else to do"
    );
    let asked = w.lease_with(&q, 100, |r| r.lane = LaneChoice::Only(Lane::Retry)).await.messages;
    assert_eq!(retries(&asked), 5);
}

async fn retries_in_flight_are_capped_by_the_leases_themselves(w: &mut World) {
    let q = w.queue_with("q", |config| config.max_retries_in_flight = Some(NonZeroU32::new(3))).await;
    both_lanes(w, &q, 10).await;
    let first = w.lease(&q, 100).await;
    assert_eq!((first.len(), retries(&first)), (13, 3), "all that is fresh, and three retries");
    assert!(w.lease(&q, 100).await.is_empty());
    let leased: Vec<&Message> = first.iter().filter(|m| m.progress.lane() == Lane::Retry).collect();
    w.ack(leased[0]).await;
    w.release(leased[1]).await;
    assert_eq!(retries(&w.lease(&q, 100).await), 2, "two places are free again");
    w.restart().await;
    assert!(w.lease(&q, 100).await.is_empty(), "a restart frees nothing");
    w.advance(30_000);
    let after_expiry = w.lease(&q, 100).await;
    assert_eq!(retries(&after_expiry), 3, "overdue leases free their places");
    assert_eq!(w.stats(&q).await.retries_in_flight, 3);
}

async fn a_redriven_message_is_a_retry(w: &mut World) {
    let q = w.queue("q").await;
    let id = w.dead(&q, |_| ()).await;
    w.redrive(&q, Filter::state(State::Dead)).await;
    let asked = w.lease_with(&q, 1, |r| r.lane = LaneChoice::Only(Lane::Fresh)).await.messages;
    assert!(asked.is_empty(), "it has no attempts, but it is not fresh");
    let asked = w.lease_with(&q, 1, |r| r.lane = LaneChoice::Only(Lane::Retry)).await.messages;
    assert_eq!(asked[0].id(), id);
}

async fn a_released_first_attempt_is_fresh_again(w: &mut World) {
    let q = w.queue("q").await;
    w.put(&q).await;
    let message = w.lease_one(&q).await;
    w.release(&message).await;
    let asked = w.lease_with(&q, 1, |r| r.lane = LaneChoice::Only(Lane::Fresh)).await.messages;
    assert_eq!(asked.len(), 1);
}

async fn a_lane_that_is_empty_is_not_made_up_for_by_the_other(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 3, |_, _| ()).await;
    let retry = w.lease_with(&q, 10, |r| r.lane = LaneChoice::Only(Lane::Retry)).await;
    assert_eq!((retry.messages.len(), retry.more), (0, false), "all there is, is fresh");
    for message in w.lease(&q, 3).await {
        w.nack(&message).await;
    }
    let fresh = w.lease_with(&q, 10, |r| r.lane = LaneChoice::Only(Lane::Fresh)).await;
    assert_eq!((fresh.messages.len(), fresh.more), (0, false), "all there is, is a retry");
}

async fn the_last_place_for_a_retry_is_more_to_have(w: &mut World) {
    let q = w.queue_with("q", |config| config.max_retries_in_flight = Some(NonZeroU32::new(2))).await;
    both_lanes(w, &q, 3).await;
    w.lease_with(&q, 3, |r| r.lane = LaneChoice::Only(Lane::Fresh)).await;
    assert!(w.lease_with(&q, 1, |_| ()).await.more, "one place is left");
    assert!(!w.lease_with(&q, 1, |_| ()).await.more, "none is left");
}

rules!("lanes";
    the_retry_share_holds_for_any_mix_of_batch_sizes,
    calls_of_one_serve_both_lanes,
    what_one_lane_cannot_use_the_other_gets,
    a_quiet_time_earns_no_burst,
    a_consumer_may_ask_for_one_lane,
    a_separate_retry_lane_is_served_only_to_those_who_ask,
    retries_in_flight_are_capped_by_the_leases_themselves,
    a_redriven_message_is_a_retry,
    a_released_first_attempt_is_fresh_again,
    a_lane_that_is_empty_is_not_made_up_for_by_the_other,
    the_last_place_for_a_retry_is_more_to_have,
);
