//! How spans are spread: counts in buckets whose width grows with what they hold.
//!
//! Eight buckets for each doubling: whatever is answered is at least the truth, and at most an eighth more. There are few
//! enough of them that a queue can have its own, and to count is one addition.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use redrive_core::time::Millis;

/// How many bits of a span are told apart, below its highest.
const BITS: u32 = 3;
/// How many buckets there are for each doubling.
const STEPS: u64 = 1 << BITS;
/// Spans from here on, 34 years, are one bucket.
const SPAN_BITS_MAX: u32 = 40;
/// How many buckets there are.
const BUCKETS: usize = (1 << BITS) * (SPAN_BITS_MAX - BITS + 1) as usize;

/// The bucket of a span.
fn bucket(span: Millis) -> usize {
    let ms = span.get().min((1 << SPAN_BITS_MAX) - 1);
    let place = match ms.checked_ilog2() {
        Some(highest) if highest >= BITS => {
            let shift = highest - BITS;
            u64::from(shift) * STEPS + (ms >> shift)
        }
        // What is shorter than the buckets are wide has one of its own.
        _ => ms,
    };
    usize::try_from(place).unwrap_or(BUCKETS - 1)
}

/// The longest span of a bucket.
fn longest(bucket: usize) -> Millis {
    let place = bucket as u64;
    if place < STEPS {
        return Millis::new(place);
    }
    let shift = place / STEPS - 1;
    let first = (STEPS + place % STEPS) << shift;
    Millis::new(first + (1 << shift) - 1)
}

/// Spans that are being counted.
#[derive(Debug)]
pub(crate) struct Spread {
    counts: [AtomicU32; BUCKETS],
    any: AtomicBool,
}

impl Default for Spread {
    fn default() -> Self {
        Self { counts: [const { AtomicU32::new(0) }; BUCKETS], any: AtomicBool::new(false) }
    }
}

impl Spread {
    /// Counts a span.
    pub(crate) fn add(&self, span: Millis) {
        if let Some(count) = self.counts.get(bucket(span)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        // Read before it is written: those who count at the same time must not fight over it.
        if !self.any.load(Ordering::Relaxed) {
            self.any.store(true, Ordering::Release);
        }
    }

    /// What was counted since this was last asked. What is counted meanwhile is in this answer or in the next.
    pub(crate) fn take(&self) -> Option<Counts> {
        if !self.any.swap(false, Ordering::Acquire) {
            return None;
        }
        let mut counts = Counts::default();
        for (count, taken) in counts.0.iter_mut().zip(&self.counts) {
            *count = taken.swap(0, Ordering::Relaxed);
        }
        Some(counts)
    }
}

/// Spans that were counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Counts(Box<[u32; BUCKETS]>);

impl Default for Counts {
    fn default() -> Self {
        Self(Box::new([0; BUCKETS]))
    }
}

impl Counts {
    /// Adds what was counted elsewhere.
    pub(crate) fn add(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(&*other.0) {
            *count = count.saturating_add(*more);
        }
    }

    /// The span that so many of a thousand do not exceed, or up to an eighth more; `None` where nothing was counted.
    pub(crate) fn at_most(&self, permille: u64) -> Option<Millis> {
        let all: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        let rank = (all * permille).div_ceil(1_000).max(1);
        let mut passed = 0;
        for (bucket, count) in self.0.iter().enumerate() {
            passed += u64::from(*count);
            if passed >= rank {
                return Some(longest(bucket));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counted(spans: &[u64]) -> Spread {
        let spread = Spread::default();
        for ms in spans {
            spread.add(Millis::new(*ms));
        }
        spread
    }

    #[test]
    fn what_was_taken_is_not_taken_again() {
        let spread = counted(&[5, 5, 700]);
        let first = spread.take().unwrap();
        assert_eq!((first.at_most(500), first.at_most(990)), (Some(Millis::new(5)), Some(Millis::new(703))));
        assert_eq!(spread.take(), None);
        assert_eq!(Counts::default().at_most(500), None);
    }

    #[test]
    fn short_spans_are_exact_and_the_longest_have_a_bucket() {
        for ms in 0..16 {
            assert_eq!(longest(bucket(Millis::new(ms))), Millis::new(ms));
        }
        assert_eq!(bucket(Millis::new(u64::MAX)), BUCKETS - 1);
        assert_eq!(bucket(Millis::new((1 << SPAN_BITS_MAX) - 1)), BUCKETS - 1);
        assert!((1..BUCKETS).all(|at| longest(at) > longest(at - 1)), "they lie in order");
    }

    proptest! {
        #[test]
        fn an_answer_is_the_truth_or_up_to_an_eighth_more(
            mut spans in proptest::collection::vec(
                prop_oneof![0..20u64, 0..100_000u64, 0..(1_u64 << SPAN_BITS_MAX)], 1..200),
            permille in 1..=1_000u64,
        ) {
            let answer = counted(&spans).take().and_then(|counts| counts.at_most(permille)).unwrap().get();
            spans.sort_unstable();
            let rank = (spans.len() as u64 * permille).div_ceil(1_000).max(1);
            let truth = spans[usize::try_from(rank - 1).unwrap()];
            prop_assert!(answer >= truth, "{answer} {truth}");
            prop_assert!((answer - truth) * 8 <= truth, "{answer} {truth}");
        }

        #[test]
        fn what_is_added_up_is_what_was_counted_together(
            one in proptest::collection::vec(0..1_000_000u64, 0..50),
            other in proptest::collection::vec(0..1_000_000u64, 0..50),
        ) {
            let mut sum = counted(&one).take().unwrap_or_default();
            sum.add(&counted(&other).take().unwrap_or_default());
            let together: Vec<u64> = one.into_iter().chain(other).collect();
            prop_assert_eq!(sum, counted(&together).take().unwrap_or_default());
        }
    }
}
