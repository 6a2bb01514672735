use proptest::prelude::*;

use super::*;

pub(crate) fn policies() -> impl Strategy<Value = RetryPolicy> {
    let delay = || prop_oneof![Just(0), 1..100_000u64, 0..=u64::MAX].prop_map(Millis::new);
    let jitter =
        prop_oneof![Just(Jitter::None), any::<u16>().prop_map(Jitter::Proportional), Just(Jitter::Full)];
    (any::<Option<NonZeroU32>>(), delay(), 1.0..=1_000.0f64, proptest::option::of(delay()), jitter).prop_map(
        |(max_attempts, base_delay, multiplier, max_delay, jitter)| RetryPolicy {
            max_attempts,
            base_delay,
            multiplier: Multiplier::new(multiplier).unwrap(),
            max_delay,
            jitter,
        },
    )
}

fn schedule(policy: &RetryPolicy, attempts: std::ops::RangeInclusive<u32>) -> Vec<u64> {
    attempts.map(|failed| policy.delay(failed).get()).collect()
}

fn steady(base: u64, multiplier: f64, max: Option<u64>) -> RetryPolicy {
    RetryPolicy {
        base_delay: Millis::new(base),
        multiplier: Multiplier::new(multiplier).unwrap(),
        max_delay: max.map(Millis::new),
        jitter: Jitter::None,
        ..RetryPolicy::default()
    }
}

#[test]
fn the_worked_table_of_the_design() {
    let policy = steady(1_000, 2.0, Some(30_000));
    assert_eq!(schedule(&policy, 1..=7), [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
}

#[test]
fn the_worked_table_of_requirement_000() {
    // Retry 1 → wait 1 s, retry 2 → 4 s, retry 3 → 16 s, retry 4 → 64 s.
    assert_eq!(schedule(&steady(1_000, 4.0, None), 1..=4), [1_000, 4_000, 16_000, 64_000]);
}

#[test]
fn the_worked_table_of_requirement_001() {
    // Attempt 1 starts at once; attempt n starts this long after attempt n - 1 failed.
    let policy = steady(1_000, 2.0, Some(30_000));
    let before_attempt = |n: u32| if n == 1 { 0 } else { policy.delay(n - 1).get() };
    let table: Vec<u64> = (1..=7).map(before_attempt).collect();
    assert_eq!(table, [0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000]);
}

#[test]
fn the_default_policy_of_requirement_001_has_three_retries() {
    let subscription = RetryOverride { max_attempts: Some(NonZeroU32::new(4)), ..RetryOverride::default() };
    let policy = subscription.over(RetryPolicy::default());
    assert_eq!(policy.max_attempts.map(NonZeroU32::get), Some(4));
    assert_eq!(policy.base_delay, Millis::from_secs(1));
    assert_eq!(policy.max_delay, Some(Millis::from_secs(30)));
    assert_eq!(policy.multiplier, Multiplier::TWO);
    assert_eq!(policy.jitter, Jitter::Proportional(100));
}

#[test]
fn webhooks_grow_to_twelve_hours() {
    let policy = steady(5_000, 3.0, Some(43_200_000));
    assert_eq!(policy.delay(9).get(), 32_805_000);
    assert_eq!(policy.delay(10).get(), 43_200_000);
}

#[test]
fn a_zero_base_is_an_immediate_requeue_for_ever() {
    assert_eq!(schedule(&steady(0, 1_000.0, None), u32::MAX - 2..=u32::MAX), [0, 0, 0]);
}

#[test]
fn no_cap_still_ends_at_the_hard_limit() {
    assert_eq!(steady(1, 2.0, None).delay(u32::MAX), DELAY_MAX);
}

#[test]
fn a_bad_multiplier_is_refused_by_name() {
    for bad in [f64::NAN, 0.0, 0.999, -2.0, 1_000.001, f64::INFINITY] {
        assert_eq!(Multiplier::new(bad).unwrap_err().field, "retry.multiplier", "{bad}");
    }
    assert_eq!(Multiplier::new(1.5).unwrap().thousandths(), 1_500);
}

#[test]
fn a_bad_jitter_is_refused_by_name() {
    for bad in [f64::NAN, -0.1, 1.1] {
        assert_eq!(Jitter::proportional(bad).unwrap_err().field, "retry.jitter");
    }
    assert_eq!(Jitter::proportional(0.1).unwrap(), Jitter::Proportional(100));
}

#[test]
fn a_delay_beyond_the_limit_is_refused_by_name() {
    let base = RetryPolicy { base_delay: Millis::new(DELAY_MAX.get() + 1), ..RetryPolicy::default() };
    assert_eq!(base.check().unwrap_err().field, "retry.base_delay");
    let max = RetryPolicy { max_delay: Some(Millis::new(u64::MAX)), ..RetryPolicy::default() };
    assert_eq!(max.check().unwrap_err().field, "retry.max_delay");
}

#[test]
fn full_jitter_is_uniform() {
    // Kolmogorov–Smirnov at α = 0.001: the largest gap between the two distributions is below 1.95 / √n.
    let policy = RetryPolicy { jitter: Jitter::Full, ..steady(10_000, 1.0, None) };
    let n = 100_000u32;
    let mut dice = Dice::seeded(20_261_115);
    let mut drawn: Vec<u64> = (0..n).map(|_| policy.jittered(1, &mut dice).get()).collect();
    drawn.sort_unstable();
    let gap = drawn.iter().zip(1u32..).fold(0.0f64, |gap, (delay, rank)| {
        let expected = f64::from(u32::try_from(*delay).unwrap() + 1) / 10_001.0;
        gap.max((f64::from(rank) / f64::from(n) - expected).abs())
    });
    assert!(gap < 1.95 / f64::from(n).sqrt(), "gap {gap}");
}

#[test]
fn at_the_cap_jitter_still_spreads() {
    let policy = RetryPolicy { jitter: Jitter::Proportional(100), ..steady(30_000, 2.0, Some(30_000)) };
    let mut dice = Dice::seeded(1);
    let delays: Vec<u64> = (0..1_000).map(|_| policy.jittered(9, &mut dice).get()).collect();
    assert!(delays.iter().all(|delay| (27_000..=30_000).contains(delay)));
    let at_the_cap = delays.iter().filter(|delay| **delay == 30_000).count();
    assert!(at_the_cap < 10, "{at_the_cap} of 1000 came back together");
}

proptest! {
    #[test]
    fn every_delay_of_every_policy_lies_in_its_band(policy in policies(), failed: u32, seed: u64) {
        let nominal = policy.delay(failed);
        let (low, high) = policy.jitter.band(nominal, policy.longest());
        let delay = policy.jittered(failed, &mut Dice::seeded(seed));
        prop_assert!(low <= delay && delay <= high);
        prop_assert!(delay <= policy.longest() && nominal <= DELAY_MAX);
        match policy.jitter {
            Jitter::None => prop_assert_eq!(delay, nominal),
            Jitter::Proportional(share) => {
                let swing = u128::from(nominal.get()) * u128::from(share.min(1_000)) / 1_000;
                prop_assert!(u128::from(delay.get().abs_diff(nominal.get())) <= swing);
            }
            Jitter::Full => prop_assert!(delay <= nominal),
        }
    }

    #[test]
    fn delays_never_shrink_from_one_attempt_to_the_next(policy in policies(), failed in 1..u32::MAX) {
        prop_assert!(policy.delay(failed) <= policy.delay(failed + 1));
    }

    #[test]
    fn small_schedules_are_exact(base in 0u64..10_000, multiplier in 1u32..=8, failed in 1u32..=12) {
        let policy = steady(base, f64::from(multiplier), None);
        let exact = u128::from(base) * u128::from(multiplier).pow(failed - 1);
        prop_assert_eq!(u128::from(policy.delay(failed).get()), exact.min(u128::from(DELAY_MAX.get())));
    }

    #[test]
    fn a_stored_multiplier_comes_back(thousandths in 1_000u32..=1_000_000) {
        let multiplier = Multiplier::from_thousandths(thousandths).unwrap();
        prop_assert_eq!(multiplier.thousandths(), thousandths);
    }

    #[test]
    fn a_merge_is_the_most_permissive_of_what_was_set(a in overrides(), b in overrides(), c in overrides()) {
        let merged = a.most_permissive(b).most_permissive(c);
        let all = [a, b, c];
        let attempts: Vec<_> = all.iter().filter_map(|o| o.max_attempts).collect();
        let uncapped = attempts.contains(&None);
        let most = if uncapped { None } else { attempts.iter().copied().max().flatten() };
        prop_assert_eq!(merged.max_attempts, (!attempts.is_empty()).then_some(most));
        prop_assert_eq!(merged.base_delay, all.iter().filter_map(|o| o.base_delay).min());
        prop_assert_eq!(merged.multiplier, all.iter().filter_map(|o| o.multiplier).max());
        let delays: Vec<_> = all.iter().filter_map(|o| o.max_delay).collect();
        let longest = if delays.contains(&None) { None } else { delays.iter().copied().max().flatten() };
        prop_assert_eq!(merged.max_delay, (!delays.is_empty()).then_some(longest));
    }

    #[test]
    fn what_nobody_set_comes_from_the_default(set in overrides(), default in policies()) {
        let policy = set.over(default);
        prop_assert_eq!(policy.max_attempts, set.max_attempts.unwrap_or(default.max_attempts));
        prop_assert_eq!(policy.base_delay, set.base_delay.unwrap_or(default.base_delay));
        prop_assert_eq!(RetryOverride::default().over(default), default);
    }
}

fn overrides() -> impl Strategy<Value = RetryOverride> {
    (any::<[bool; 5]>(), policies()).prop_map(|(set, policy)| RetryOverride {
        max_attempts: set[0].then_some(policy.max_attempts),
        base_delay: set[1].then_some(policy.base_delay),
        multiplier: set[2].then_some(policy.multiplier),
        max_delay: set[3].then_some(policy.max_delay),
        jitter: set[4].then_some(policy.jitter),
    })
}
