//! The one entry point: every rule as a test of its own, for any store.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use libtest_mimic::{Arguments, Trial};
use redrive_store::Capabilities;

use crate::subject::{Setup, Subject};
use crate::world::World;

/// What a rule needs of a store to mean anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing beyond what all can do.
    Nothing,
    /// One call that changes several queues atomically.
    AtomicAcrossQueues,
    /// Several instances on the same data.
    Shared,
}

impl Needs {
    /// Whether a store has what is needed.
    pub fn met_by(self, capabilities: &Capabilities) -> bool {
        match self {
            Self::Nothing => true,
            Self::AtomicAcrossQueues => capabilities.atomic_across_queues,
            Self::Shared => capabilities.shared,
        }
    }
}

/// One rule that every store must keep.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Where it stands and what it says, such as `fencing::a_stale_receipt_changes_nothing`.
    pub name: &'static str,
    /// What it needs of the store.
    pub needs: Needs,
    /// Its test, which panics where the rule is broken.
    pub(crate) test: fn(World) -> BoxFuture<'static, ()>,
}

/// How a rule came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It holds.
    Kept,
    /// It is broken, as the test says.
    Broken(String),
    /// The store's capabilities say that it cannot apply.
    NotApplicable,
}

/// Every rule of the suite.
pub fn rules() -> Vec<Rule> {
    crate::rules::all()
}

/// Tries one rule on an empty store.
pub fn check(subject: &dyn Subject, rule: &Rule) -> Finding {
    let mut finding = Finding::NotApplicable;
    let attempt = catch_unwind(AssertUnwindSafe(|| {
        subject.block_on(async { finding = run(subject, rule).await }.boxed());
    }));
    match attempt {
        Ok(()) => finding,
        Err(panic) => Finding::Broken(panic_text(panic.as_ref())),
    }
}

async fn run(subject: &dyn Subject, rule: &Rule) -> Finding {
    let instance = subject.open(&Setup::default()).await;
    if !rule.needs.met_by(&instance.store().capabilities()) {
        return Finding::NotApplicable;
    }
    (rule.test)(World::new(instance)).await;
    Finding::Kept
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
        .unwrap_or_else(|| "panicked".to_owned())
}

/// The `main` of a store's conformance test: each rule is a test that `cargo test` and nextest can name. A rule
/// that does not apply shows as ignored, not as passed.
pub fn main(subject: impl Subject + 'static) -> ExitCode {
    let subject = Arc::new(subject);
    let trials = rules().into_iter().map(|rule| {
        let subject = Arc::clone(&subject);
        let applies = rule.needs == Needs::Nothing || applies(subject.as_ref(), &rule);
        Trial::test(rule.name, move || match check(subject.as_ref(), &rule) {
            Finding::Broken(text) => Err(text.into()),
            Finding::Kept | Finding::NotApplicable => Ok(()),
        })
        .with_ignored_flag(!applies)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn applies(subject: &dyn Subject, rule: &Rule) -> bool {
    let mut met = false;
    let ask =
        async { met = rule.needs.met_by(&subject.open(&Setup::default()).await.store().capabilities()) };
    subject.block_on(ask.boxed());
    met
}
