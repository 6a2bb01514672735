//! The way of an operation to its end.

use std::time::Duration;

use clap::Args;
use redrive_wire::OperationView;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::get;
use crate::progress::Progress;
use crate::remote::{Answer, Failure, Session};
use crate::span::Span;

/// How often the server is asked.
const LOOK: Duration = Duration::from_millis(200);
/// After how many looks a line is printed where there is no bar.
const LINE_EVERY: u32 = 5;

/// Whether an operation is followed.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Follow {
    /// Waits for its end, and shows how far it is.
    #[arg(long)]
    wait: bool,
    /// For how long at most; the exit code is 8 then.
    #[arg(long, value_name = "SPAN", requires = "wait")]
    timeout: Option<Span>,
}

impl Follow {
    /// What is done when an operation has begun.
    pub(crate) async fn after(
        self,
        session: &Session,
        begun: Answer<OperationView>,
        what: &str,
    ) -> Result<(), Failure> {
        if self.wait {
            return to_the_end(session, begun, self.timeout).await;
        }
        let id = begun.value.id.clone();
        session.output.told(Some(&begun.json), &format!("operation {id} has begun to {what}"), &id)
    }
}

/// Waits, prints how it ended, and says whether that is what was wanted.
pub(crate) async fn to_the_end(
    session: &Session,
    begun: Answer<OperationView>,
    timeout: Option<Span>,
) -> Result<(), Failure> {
    let id = begun.value.id.clone();
    let ended = match timeout {
        None => until_ended(session, begun).await?,
        Some(span) => {
            let late = |_| Failure::TimedOut(format!("operation {id} did not end within {span}"));
            tokio::time::timeout_at(Instant::now() + span.duration(), until_ended(session, begun))
                .await
                .map_err(late)??
        }
    };
    session.output.one(&ended)?;
    judged(&ended.value)
}

async fn until_ended(
    session: &Session,
    mut seen: Answer<OperationView>,
) -> Result<Answer<OperationView>, Failure> {
    let progress = Progress::new(&session.output, "messages", Some(seen.value.total));
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut looks, mut told) = (0_u32, None);
    while matches!(&*seen.value.state, "running" | "paused") {
        look.tick().await;
        let now = &seen.value;
        let stands = (now.matched, now.state.clone());
        progress.at(now.matched);
        if !progress.is_shown() && looks.is_multiple_of(LINE_EVERY) && told.as_ref() != Some(&stands) {
            session.output.say(&format!("{} {}: {} of {}", now.kind, now.state, now.matched, now.total));
            told = Some(stands);
        }
        looks += 1;
        seen = get(session, &seen.value.id).await?;
    }
    Ok(seen)
}

fn judged(ended: &OperationView) -> Result<(), Failure> {
    let id = &ended.id;
    match &*ended.state {
        "done" if ended.refused > 0 => {
            Err(Failure::Partial { failed: ended.refused, total: ended.matched, what: "messages" })
        }
        "done" => Ok(()),
        "failed" => {
            let why = ended.problem.as_deref().unwrap_or("the server does not say why");
            Err(Failure::Failed(format!("operation {id} failed: {why}")))
        }
        state => Err(Failure::Conflict(format!("operation {id} was {state}"))),
    }
}
