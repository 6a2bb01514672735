//! Lanes: fresh work never starves behind retries, and retries never starve behind fresh work.

use crate::invalid::Invalid;
use crate::message::Lane;

/// A share between nothing and all of it, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    const ALL: u32 = 1_000_000;

    /// A fifth: what retries get unless the queue says otherwise.
    pub const FIFTH: Self = Self(200_000);

    /// Refuses anything outside `0.0..=1.0`; rounds to millionths.
    pub fn new(share: f64) -> Result<Self, Invalid> {
        if (0.0..=1.0).contains(&share) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0..=1_000_000 fits")]
            Ok(Self((share * f64::from(Self::ALL)).round() as u32))
        } else {
            Err(Invalid::out_of_range("retry_share", 0, 1))
        }
    }

    /// The share in millionths, as it is stored.
    pub const fn millionths(self) -> u32 {
        self.0
    }
}

/// Where a queue's retries go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RetryLane {
    /// To the same consumers, at most `retry_share` of what they get while there is fresh work.
    #[default]
    Shared,
    /// Only to consumers that ask for the retry lane.
    Separate,
}

/// How much service the retry lane is owed.
///
/// It grows by the share with each pick where both lanes could have served, and a retry is served when a whole
/// message is owed. Picks without a choice leave it alone, so a quiet hour earns nobody a burst; it stays
/// between 0 and 1 message, so over any stretch of contested picks the retries served differ from their share
/// by less than one message, whatever sizes the calls had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaneCredit {
    owed_millionths: u32,
}

impl LaneCredit {
    /// Which lane serves the next message, given which could; `None` where neither can.
    pub fn pick(&mut self, share: Share, fresh: bool, retry: bool) -> Option<Lane> {
        match (fresh, retry) {
            (false, false) => None,
            (true, false) => Some(Lane::Fresh),
            (false, true) => Some(Lane::Retry),
            (true, true) => {
                self.owed_millionths += share.0;
                if self.owed_millionths < Share::ALL {
                    return Some(Lane::Fresh);
                }
                self.owed_millionths -= Share::ALL;
                Some(Lane::Retry)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Serves calls of the given sizes from two backlogs, and answers what was served, in order, with whether
    /// there was a choice.
    fn serve(share: Share, calls: &[usize], mut fresh: usize, mut retry: usize) -> Vec<(Lane, bool)> {
        let mut credit = LaneCredit::default();
        let mut served = Vec::new();
        for _ in calls.iter().flat_map(|size| 0..*size) {
            let choice = fresh > 0 && retry > 0;
            let Some(lane) = credit.pick(share, fresh > 0, retry > 0) else {
                break;
            };
            *(if lane == Lane::Fresh { &mut fresh } else { &mut retry }) -= 1;
            served.push((lane, choice));
        }
        served
    }

    fn shares() -> impl Strategy<Value = Share> {
        prop_oneof![
            Just(0.0),
            Just(0.1),
            Just(0.2),
            Just(0.25),
            Just(0.5),
            Just(0.9),
            Just(1.0),
            0.0..=1.0f64
        ]
        .prop_map(|share| Share::new(share).unwrap())
    }

    proptest! {
        #[test]
        fn the_share_holds_in_every_window_for_any_mix_of_batch_sizes(
            share in shares(), calls in prop::collection::vec(1usize..40, 1..60), from: prop::sample::Index,
        ) {
            let contested = serve(share, &calls, 10_000, 10_000);
            for window in [1, 5, 100, 1_000] {
                let start = from.index(contested.len());
                let window = &contested[start..(start + window).min(contested.len())];
                let retries = window.iter().filter(|(lane, _)| *lane == Lane::Retry).count() as u64;
                let due_millionths = window.len() as u64 * u64::from(share.millionths());
                let off = (retries * 1_000_000).abs_diff(due_millionths);
                prop_assert!(off <= 1_000_000, "{retries} of {}, {due_millionths} millionths due", window.len());
            }
        }

        #[test]
        fn calls_of_one_serve_like_one_large_call(share in shares(), n in 1usize..500) {
            prop_assert_eq!(serve(share, &vec![1; n], 1_000, 1_000), serve(share, &[n], 1_000, 1_000));
        }

        #[test]
        fn what_one_lane_cannot_use_the_other_gets(
            share in shares(), fresh in 0usize..50, retry in 0usize..50, n in 0usize..120,
        ) {
            prop_assert_eq!(serve(share, &[n], fresh, retry).len(), n.min(fresh + retry));
        }

        #[test]
        fn a_stretch_without_choice_earns_nothing(share in shares(), quiet in 1usize..200, lane: bool) {
            let mut credit = LaneCredit::default();
            credit.pick(share, true, true);
            let before = credit;
            for _ in 0..quiet {
                credit.pick(share, lane, !lane);
            }
            prop_assert_eq!(credit, before);
        }
    }

    #[test]
    fn a_fifth_is_every_fifth_pick() {
        let lanes: Vec<Lane> =
            serve(Share::FIFTH, &[1; 10], 50, 50).into_iter().map(|(lane, _)| lane).collect();
        let retries: Vec<usize> = (0..10).filter(|at| lanes[*at] == Lane::Retry).collect();
        assert_eq!(retries, [4, 9]);
    }

    #[test]
    fn a_bad_share_is_refused_by_name() {
        for bad in [-0.1, 1.1, f64::NAN] {
            assert_eq!(Share::new(bad).unwrap_err().field, "retry_share");
        }
    }
}
