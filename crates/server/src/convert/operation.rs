//! Work on many messages.

use redrive_broker::{Caller, GroupOfQueue, Operation, Work};
use redrive_core::access::Use;
use redrive_wire as wire;

use super::{filter, time};

/// What a caller is told of an operation. A filter has words of messages in it: who may not read those is not told.
pub(crate) fn view(caller: &Caller, operation: &Operation) -> wire::OperationView {
    let reads = caller.sees(Use::Inspect, &operation.queue);
    let (target, by, reason) = match &operation.work {
        Work::Redrive { by, reason } => (None, Some(by), Some(reason)),
        Work::Discard { .. } => (None, None, None),
        Work::Move { target } => (Some(target), None, None),
    };
    wire::OperationView {
        id: operation.id.to_string(),
        kind: operation.work.name().to_owned(),
        queue: operation.queue.as_str().to_owned(),
        filter: reads.then(|| filter::body(&operation.filter)),
        until: operation.until.filter(|_| reads).map(|until| until.to_string()),
        target: target.map(|target| target.as_str().to_owned()),
        state: operation.state.name().to_owned(),
        total: operation.progress.total,
        matched: operation.progress.matched,
        applied: operation.progress.applied,
        refused: operation.progress.refused,
        rate: operation.rate,
        by: by.map(|by| by.as_str().to_owned()),
        reason: reason.map(|reason| reason.as_str().to_owned()),
        started_at: time(operation.started_at),
        updated_at: time(operation.updated_at),
        problem: operation.problem.clone(),
    }
}

pub(crate) fn group(found: &GroupOfQueue) -> wire::FailureGroupView {
    let group = &found.group;
    wire::FailureGroupView {
        fingerprint: group.fingerprint.to_string(),
        sample: group.sample.as_str().to_owned(),
        messages: group.messages,
        first: time(group.first),
        last: time(group.last),
        deaths: found.deaths.to_vec(),
    }
}
