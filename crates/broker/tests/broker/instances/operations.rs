//! One instance carries an operation out, and another goes on with it where that one ends.

use redrive_broker::{NewOperation, Operation, OperationId, OperationState, Work};
use redrive_core::queue::QueueConfig;
use redrive_core::time::Millis;
use redrive_store::Filter;

use super::door::EVERYTHING;
use super::{Resident, Town, eventually, machine_time, settle};

const MESSAGES: usize = 40;

/// An operation that discards ten messages a second.
async fn discard(resident: &Resident) -> OperationId {
    resident.put(MESSAGES).await;
    let work = Work::Discard { force: false };
    let new = NewOperation { queue: resident.queue.clone(), filter: Filter::default(), work, rate: Some(10) };
    resident.broker.start_operation(new).await.unwrap().id
}

async fn record(resident: &Resident, id: OperationId) -> Operation {
    resident.broker.operation(id).await.unwrap()
}

async fn until(resident: &Resident, id: OperationId, state: OperationState) {
    eventually(async || record(resident, id).await.state == state).await;
}

#[tokio::test(start_paused = true)]
async fn an_operation_whose_owner_was_killed_is_finished_by_another_and_never_run_by_two() {
    let (town, a, b) = Town::two(QueueConfig::default()).await;
    let id = discard(&a).await;
    eventually(async || record(&b, id).await.progress.applied == 10).await;
    // Stopped, as far as the others can tell; it does not know.
    a.door.hold(EVERYTHING);
    town.clock.advance(Millis::from_secs(29));
    machine_time(5_000).await;
    assert_eq!((record(&b, id).await.progress.applied, b.door.calls("discard")), (10, 0), "it may be alive");
    for _ in 0..7 {
        town.advance(Millis::from_secs(5)).await;
    }
    until(&b, id, OperationState::Done).await;
    let done = record(&b, id).await;
    assert_eq!((done.progress.applied, b.states().await), (MESSAGES as u64, (0, 0, 0, 0)));
    // It goes on, too late: what it had begun finds nothing to do, and nothing is written over.
    let discards = a.door.calls("discard");
    a.door.open();
    machine_time(5_000).await;
    assert!(a.door.calls("discard") <= discards + 1, "one step that was under way, and no other");
    assert_eq!(record(&b, id).await, done);
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_ends_hands_its_operations_over_at_once() {
    let (_town, a, b) = Town::two(QueueConfig::default()).await;
    let id = discard(&a).await;
    eventually(async || record(&b, id).await.progress.applied == 10).await;
    a.stop().await;
    until(&b, id, OperationState::Done).await;
    assert_eq!(record(&b, id).await.progress.applied, MESSAGES as u64);
    assert!(b.door.calls("discard") > 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_of_another_instance_reaches_the_owner() {
    let (_town, a, b) = Town::two(QueueConfig::default()).await;
    let id = discard(&a).await;
    eventually(async || record(&b, id).await.progress.applied == 10).await;
    assert_eq!(b.broker.pause_operation(id).await.unwrap().state, OperationState::Paused);
    settle().await;
    let paused = record(&b, id).await;
    machine_time(10_000).await;
    assert_eq!(record(&b, id).await.progress, paused.progress, "nobody goes on");
    assert_eq!(paused.state, OperationState::Paused);
    assert_eq!(b.broker.resume_operation(id).await.unwrap().state, OperationState::Running);
    eventually(async || record(&a, id).await.progress.applied > paused.progress.applied).await;
    assert_eq!(b.door.calls("discard"), 0, "the owner goes on");
    assert_eq!(b.broker.cancel_operation(id).await.unwrap().state, OperationState::Cancelled);
    settle().await;
    let cancelled = record(&b, id).await;
    machine_time(10_000).await;
    assert_eq!(record(&b, id).await, cancelled);
    assert_eq!(a.states().await.0, MESSAGES as u64 - cancelled.progress.applied, "what it did stays done");
    assert_eq!(a.broker.pause_operation(id).await.unwrap_err().code(), "OPERATION_ENDED");
}

#[tokio::test(start_paused = true)]
async fn a_paused_operation_is_resumed_wherever_somebody_asks_for_it() {
    let (town, a, b) = Town::two(QueueConfig::default()).await;
    let id = discard(&a).await;
    a.broker.pause_operation(id).await.unwrap();
    until(&b, id, OperationState::Paused).await;
    // Nobody carries out what is paused, so nobody has to be asked.
    town.advance(Millis::from_secs(60)).await;
    b.broker.resume_operation(id).await.unwrap();
    until(&a, id, OperationState::Done).await;
    assert!(b.door.calls("discard") > 0);
    let done = record(&a, id).await;
    assert_eq!(done.progress.applied, MESSAGES as u64);
    machine_time(5_000).await;
    assert_eq!(record(&a, id).await, done, "who had paused it has let go of it");
}

#[tokio::test(start_paused = true)]
async fn a_step_that_takes_long_is_not_the_end_of_its_owner() {
    // The first looks for operations that nobody carries out.
    let (town, a, b) = Town::two(QueueConfig::default()).await;
    let id = discard(&b).await;
    eventually(async || record(&a, id).await.progress.applied == 10).await;
    b.door.hold("discard");
    machine_time(2_000).await;
    for _ in 0..20 {
        town.advance(Millis::from_secs(5)).await;
    }
    assert_eq!(a.door.calls("discard"), 0, "it is still being carried out");
    b.door.open();
    until(&a, id, OperationState::Done).await;
    assert_eq!((record(&a, id).await.progress.applied, a.door.calls("discard")), (MESSAGES as u64, 0));
}
