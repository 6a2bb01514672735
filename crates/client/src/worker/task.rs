//! One handler at work, in a task of its own: it may panic, hang or be dropped, and the worker hears of it once.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::context::Context;
use super::handler::{Job, Run};
use super::outcome::{Failure, Outcome};

/// A handler that is not running any more.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) receipt: Arc<str>,
    /// What it said; `None` where it was dropped before it could.
    pub(super) outcome: Option<Outcome>,
}

/// Tells of the end of a task, however it ends.
struct Report {
    to: mpsc::Sender<Finished>,
    finished: Option<Finished>,
}

impl Drop for Report {
    fn drop(&mut self) {
        if let Some(finished) = self.finished.take() {
            // There is room for every task that is there; where nobody listens, nobody wants to know.
            drop(self.to.try_send(finished));
        }
    }
}

/// Starts a handler.
pub(super) fn start(
    run: &Arc<dyn Run>,
    context: &Context,
    time: Option<Duration>,
    to: mpsc::Sender<Finished>,
) -> AbortHandle {
    let finished = Finished { receipt: Arc::clone(context.receipt()), outcome: None };
    let mut report = Report { to, finished: Some(finished) };
    let (run, context) = (Arc::clone(run), context.clone());
    let task = tokio::spawn(async move {
        let outcome = work(&*run, context, time).await;
        if let Some(finished) = &mut report.finished {
            finished.outcome = Some(outcome);
        }
    });
    task.abort_handle()
}

async fn work(run: &dyn Run, context: Context, time: Option<Duration>) -> Outcome {
    let job = Job { context: context.clone() };
    let work = AssertUnwindSafe(async { run.run(job).await }).catch_unwind();
    let said = match time {
        None => work.await,
        Some(time) => {
            let Ok(said) = tokio::time::timeout(time, work).await else {
                context.cancel();
                return Err(Failure::Retry(format!("the handler took longer than {time:?}")));
            };
            said
        }
    };
    said.unwrap_or_else(|panic| Err(Failure::Retry(format!("the handler panicked: {}", text(&*panic)))))
}

/// What a panic says.
fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}
