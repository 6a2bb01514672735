//! Random histories of every operation, with several consumers, time advancing and restarts, against the
//! reference.
//!
//! A history is a list of symbolic `Step`s, made and shrunk by proptest-state-machine. `Pair` carries each
//! out on the store under test and on the reference and compares the answers and everything that can be seen
//! afterwards. `Ledger` watches the answers of the store under test alone and knows the
//! promises of the design, so that the reference is not judged by itself when it is the one under test.

mod cli;
mod compare;
mod ledger;
mod operate;
mod pair;
mod step;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic;
use std::sync::atomic::Ordering;

use futures::FutureExt;
use proptest::strategy::{BoxedStrategy, Just, Strategy};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use proptest_state_machine::ReferenceStateMachine;
use redrive_core::lifecycle::Verb;

use crate::subject::Subject;
pub use cli::main;
use pair::Pair;
use step::Step;

/// Most steps of one history.
const STEPS_MAX: usize = 120;

/// The histories. Steps are symbolic ("the third receipt", "the second message of the queue") and mean something
/// after any other, so a shrunk history is a history.
struct Histories;

impl ReferenceStateMachine for Histories {
    type State = ();
    type Transition = Step;

    fn init_state() -> BoxedStrategy<()> {
        Just(()).boxed()
    }

    fn transitions((): &()) -> BoxedStrategy<Step> {
        step::steps()
    }

    fn apply((): (), _: &Step) {}
}

/// A history on which the store under test and the reference disagree, made as short as possible.
#[derive(Debug)]
pub struct Counterexample {
    /// The seed that makes it again.
    pub seed: u64,
    /// What went wrong.
    pub reason: String,
    /// The shortest history found, a step each.
    pub steps: Vec<String>,
}

/// How much happened in some histories.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// How many histories.
    pub histories: u64,
    /// How many steps they had.
    pub steps: usize,
    /// To how many messages each verb was applied.
    pub applied: BTreeMap<Verb, u64>,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.histories += other.histories;
        self.steps += other.steps;
        for (verb, messages) in &other.applied {
            *self.applied.entry(*verb).or_default() += messages;
        }
    }
}

/// Carries out the history of one seed.
pub fn replay(subject: &dyn Subject, seed: u64) -> Result<Tally, Box<Counterexample>> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { cases: 1, failure_persistence: None, max_shrink_iters: 4_096, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let tally = RefCell::new(Tally::default());
    let failed = Cell::new(false);
    let histories = Histories::sequential_strategy(STEPS_MAX / 2..=STEPS_MAX);
    let outcome = runner.run(&histories, |((), steps, seen)| {
        let mut verdict = Err(String::new());
        subject.block_on(async { verdict = run(subject, &steps, seen.as_deref()).await }.boxed());
        if let Err(reason) = &verdict
            && !failed.replace(true)
        {
            // Shrinking takes minutes on a store behind a network; nobody should have to guess why nothing is printed.
            eprintln!("seed {seed} fails and is made shorter: {reason}");
        }
        tally.replace(verdict.map_err(TestCaseError::fail)?);
        Ok(())
    });
    match outcome {
        Ok(()) => Ok(tally.into_inner()),
        Err(TestError::Fail(reason, ((), steps, _))) => {
            let steps = steps.iter().map(|step| format!("{step:?}")).collect();
            Err(Box::new(Counterexample { seed, reason: reason.to_string(), steps }))
        }
        Err(TestError::Abort(reason)) => panic!("the histories could not be made: {reason}"),
    }
}

async fn run(
    subject: &dyn Subject,
    steps: &[Step],
    seen: Option<&std::sync::atomic::AtomicUsize>,
) -> Result<Tally, String> {
    let mut pair = Pair::open(subject).await;
    for (number, step) in steps.iter().enumerate() {
        if let Some(seen) = seen {
            seen.fetch_add(1, Ordering::SeqCst);
        }
        pair.step(step).await.map_err(|reason| format!("step {}: {step:?}: {reason}", number + 1))?;
    }
    Ok(Tally { histories: 1, steps: steps.len(), applied: pair.applied().await })
}

/// Runs the histories of the seeds from `first` on until `enough` says so. Panics of a failing history are part
/// of its reason, so they are not printed while it shrinks.
pub fn explore(
    subject: &dyn Subject,
    first: u64,
    mut enough: impl FnMut(&Tally) -> bool,
) -> Result<Tally, Box<Counterexample>> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| ()));
    let mut sum = Tally::default();
    let mut outcome = Ok(());
    while outcome.is_ok() && !enough(&sum) {
        outcome = replay(subject, first.wrapping_add(sum.histories)).map(|tally| sum.add(&tally));
    }
    panic::set_hook(hook);
    outcome.map(|()| sum)
}
