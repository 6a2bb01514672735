//! Looking for an input that fails: from the corpus on, for a while.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use redrive_core::dice::Dice;

use crate::mutate::Mutator;
use crate::{Target, trial};

/// Most inputs that are gone on from; then the search knows enough ways to begin.
const KEPT_MAX: usize = 4_096;
/// How many inputs are tried in order to make one that fails smaller.
const SMALLER_TRIALS_MAX: usize = 4_000;
/// How many inputs are tried between two looks at the clock.
const TRIALS_BETWEEN_LOOKS: u64 = 16;

/// What a search came to.
#[derive(Debug, Default)]
pub struct Report {
    /// How many inputs were tried.
    pub trials: u64,
    /// How many of them led somewhere new.
    pub kept: usize,
    /// The most that one allocated: how many bytes, for an input of how many.
    pub dearest: (u64, usize),
}

/// An input that fails.
#[derive(Debug)]
pub struct Failure {
    /// As small as it could be made.
    pub input: Vec<u8>,
    /// What it leads to.
    pub reason: String,
    /// The seed of the search that found it; none where it is one of the corpus.
    pub seed: Option<u64>,
}

/// Tries every input of the corpus.
pub fn replay(target: &Target, corpus: &[Vec<u8>]) -> Result<(), Failure> {
    for input in corpus {
        if let Some(reason) = trial::run(target, input).failure {
            return Err(Failure { input: input.clone(), reason, seed: None });
        }
    }
    Ok(())
}

/// Tries inputs that are made of the corpus, and of what they led to, until the time is over or one fails.
pub fn search(target: &Target, corpus: &[Vec<u8>], seed: u64, time: Duration) -> Result<Report, Failure> {
    let mut report = Report::default();
    let mut mutator = Mutator::new(Dice::seeded(seed), target.words);
    let mut shapes: HashSet<u64> = corpus.iter().map(|input| trial::run(target, input).shape).collect();
    let mut pool = corpus.to_vec();
    if pool.is_empty() {
        pool.push(Vec::new());
    }
    #[expect(clippy::disallowed_methods, reason = "how long is looked is the caller's; what is found is not")]
    let start = Instant::now();
    while start.elapsed() < time {
        for _ in 0..TRIALS_BETWEEN_LOOKS {
            let (parent, other) = (mutator.below(pool.len()), mutator.below(pool.len()));
            let input = mutator.change(&pool[parent], &pool[other]);
            let trial = trial::run(target, &input);
            report.trials += 1;
            if trial.bytes > report.dearest.0 {
                report.dearest = (trial.bytes, input.len());
            }
            if trial.failure.is_some() {
                let (input, reason) = smaller(target, input);
                return Err(Failure { input, reason, seed: Some(seed) });
            }
            if pool.len() < KEPT_MAX && shapes.insert(trial.shape) {
                pool.push(input);
            }
        }
    }
    report.kept = pool.len() - corpus.len();
    Ok(report)
}

/// Takes away from an input that fails whatever is not needed for that.
fn smaller(target: &Target, mut input: Vec<u8>) -> (Vec<u8>, String) {
    let fails = |input: &[u8]| trial::run(target, input).failure;
    let mut reason = fails(&input).unwrap_or_else(|| "it failed once, and not again".to_owned());
    let mut left = SMALLER_TRIALS_MAX;
    let mut width = input.len().next_power_of_two();
    while width > 0 {
        let mut at = 0;
        while at < input.len() && left > 0 {
            let mut without = input.clone();
            without.drain(at..input.len().min(at + width));
            left -= 1;
            match fails(&without) {
                Some(why) => (input, reason) = (without, why),
                None => at += width,
            }
        }
        width /= 2;
    }
    (input, reason)
}
