//! extend: leased → leased, with a later deadline.

use crate::lease::Lease;
use crate::time::{Millis, Timestamp};

/// Moves the deadline to `time` from now, but not beyond `max_lease` from when the lease was taken, and never
/// back: a slow consumer's late call must not cut short what a faster one asked for.
pub fn extend(lease: &mut Lease, time: Millis, max_lease: Millis, now: Timestamp) -> Timestamp {
    let latest = lease.leased_at.plus(max_lease);
    lease.deadline = lease.deadline.max(now.plus(time).min(latest));
    lease.deadline
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lease::{ConsumerName, LeaseId};

    proptest! {
        #[test]
        fn a_deadline_never_moves_back_nor_beyond_max_lease(
            calls in prop::collection::vec((0u64..500, 0u64..500), 1..20), max in 1u64..1_000,
        ) {
            let start = Timestamp::from_millis(1_000);
            let deadline = start.plus(Millis::new(1));
            let mut lease = Lease { id: LeaseId::from_bits(1), consumer: ConsumerName::default(), leased_at: start, deadline };
            let mut now = start;
            for (passed, asked) in calls {
                now = now.plus(Millis::new(passed));
                let before = lease.deadline;
                let after = extend(&mut lease, Millis::new(asked), Millis::new(max), now);
                prop_assert!(after >= before);
                prop_assert!(after <= start.plus(Millis::new(max)));
                prop_assert!(after >= now.plus(Millis::new(asked)).min(start.plus(Millis::new(max))));
            }
        }
    }
}
