//! One command for one message, in a process group of its own.
//!
//! It is asked to end with SIGTERM and killed a few seconds later, with whatever it has started. Where the lease is lost
//! there is no time for that: the handler is dropped, and the whole group is killed at once.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redrive_client::{Context, Failure as Unfinished, Outcome};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::stderr::{self, Tail};
use crate::remote::Failure;

/// How long a command has after it was asked to end.
pub(super) const KILL_AFTER: Duration = Duration::from_secs(5);
/// How long something that a command left behind may hold on to its standard error.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// `EX_TEMPFAIL` of sysexits.
const RETRY_LATER: i32 = 75;
const BURY: i32 = 100;

/// What is run for every message.
pub(super) struct Program {
    pub(super) command: Vec<OsString>,
    pub(super) timeout: Option<Duration>,
    pub(super) grace: Duration,
    /// Told where it cannot be run at all.
    pub(super) broken: mpsc::Sender<Failure>,
}

/// A process group, which is killed where this is dropped before it was waited for.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.0 {
            // It may have ended already.
            kill_process_group(pid, signal).unwrap_or_default();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Why a command was ended.
enum Ended {
    ByItself(std::io::Result<ExitStatus>),
    TookTooLong(Duration),
    WorkerEnds,
}

impl Program {
    /// Runs it, and says what became of the message.
    pub(super) async fn run(self: Arc<Self>, context: Context) -> Outcome {
        let mut child = match self.spawn(&context) {
            Ok(child) => child,
            Err(error) => {
                let what = self.command.first().map(|name| name.to_string_lossy().into_owned());
                let failure = Failure::Io(format!("running {}", what.unwrap_or_default()), error);
                // One is enough.
                drop(self.broken.try_send(failure));
                return Err(Unfinished::release());
            }
        };
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let mut group = Group(pid);
        let tail = Mutex::new(Tail::default());
        let (input, errors) = (child.stdin.take(), child.stderr.take());
        let body = context.message().body.clone();
        let feed = async {
            if let Some(mut input) = input {
                // A command need not read all of it.
                drop(input.write_all(&body).await);
            }
        };
        let listen = async {
            if let Some(errors) = errors {
                stderr::pass_on(errors, &context.message().id, &tail).await;
            }
        };
        let run = async {
            let ended = self.wait(&mut child, &context).await;
            if !matches!(ended, Ended::ByItself(_)) {
                group.signal(Signal::TERM);
                drop(timeout(KILL_AFTER, child.wait()).await);
                group.signal(Signal::KILL);
                drop(child.wait().await);
            }
            group.0 = None;
            ended
        };
        let ended = beside(run, async {
            tokio::join!(feed, listen);
        })
        .await;
        let said = tail.lock().unwrap_or_else(PoisonError::into_inner).text();
        outcome(ended, said)
    }

    fn spawn(&self, context: &Context) -> std::io::Result<Child> {
        let message = context.message();
        let mut words = self.command.iter();
        let mut command = std::process::Command::new(words.next().cloned().unwrap_or_default());
        command
            .args(words)
            .process_group(0)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .env("REDRIVE_QUEUE", &message.queue)
            .env("REDRIVE_MESSAGE_ID", &message.id)
            .env("REDRIVE_ATTEMPT", message.attempts.to_string())
            .env("REDRIVE_DELIVERIES", message.deliveries.to_string())
            .env("REDRIVE_FENCING_TOKEN", context.fencing_token().to_string())
            .env("REDRIVE_TYPE", &message.kind)
            .env("REDRIVE_SOURCE", &message.source)
            .env("REDRIVE_FAIRNESS_KEY", &message.fairness_key)
            .env("REDRIVE_CONTENT_TYPE", &message.content_type)
            .env("REDRIVE_HEADERS", serde_json::to_string(&message.headers).unwrap_or_default());
        match message.headers.get("traceparent") {
            Some(parent) => command.env("TRACEPARENT", parent),
            None => command.env_remove("TRACEPARENT"),
        };
        Command::from(command).spawn()
    }

    /// Waits until it ends, or must end.
    async fn wait(&self, child: &mut Child, context: &Context) -> Ended {
        let too_long = async {
            match self.timeout {
                Some(time) => {
                    drop(timeout(time, std::future::pending::<()>()).await);
                    time
                }
                None => std::future::pending().await,
            }
        };
        let worker_ends = async {
            context.cancelled().await;
            drop(timeout(self.grace, std::future::pending::<()>()).await);
        };
        tokio::select! {
            status = child.wait() => Ended::ByItself(status),
            time = too_long => Ended::TookTooLong(time),
            () = worker_ends => Ended::WorkerEnds,
        }
    }
}

/// Both at the same time; once the first has ended, the second has only a little longer.
async fn beside<T>(first: impl Future<Output = T>, second: impl Future<Output = ()>) -> T {
    let mut second = std::pin::pin!(second);
    let mut first = std::pin::pin!(first);
    tokio::select! {
        done = &mut first => {
            drop(timeout(LAST_WORDS, second).await);
            done
        }
        () = &mut second => first.await,
    }
}

fn outcome(ended: Ended, said: String) -> Outcome {
    let status = match ended {
        Ended::ByItself(Ok(status)) => status,
        Ended::ByItself(Err(error)) => return Err(Unfinished::retry(error)),
        Ended::TookTooLong(time) => {
            return Err(Unfinished::Retry(format!("the command took longer than {time:?}\n{said}")));
        }
        Ended::WorkerEnds => return Err(Unfinished::release()),
    };
    if status.success() {
        return Ok(());
    }
    let why = if said.is_empty() { how(status) } else { said };
    Err(if status.code() == Some(BURY) { Unfinished::Bury(why) } else { Unfinished::Retry(why) })
}

/// How it ended, for a command that says nothing.
fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(RETRY_LATER), _) => "the command wants to be run later (exit code 75)".to_owned(),
        (Some(code), _) => format!("the command ended with exit code {code}"),
        (None, Some(signal)) => format!("the command was ended by signal {signal}"),
        (None, None) => "the command ended for no reason".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: i32, said: &str) -> Outcome {
        outcome(Ended::ByItself(Ok(ExitStatus::from_raw(code << 8))), said.to_owned())
    }

    #[test]
    fn an_exit_code_is_an_outcome() {
        assert_eq!(ended(0, "a warning"), Ok(()));
        assert_eq!(ended(1, "no disk"), Err(Unfinished::Retry("no disk".to_owned())));
        assert_eq!(ended(100, "no such order"), Err(Unfinished::Bury("no such order".to_owned())));
        let later = "the command wants to be run later (exit code 75)";
        assert_eq!(ended(75, ""), Err(Unfinished::Retry(later.to_owned())));
        assert_eq!(ended(3, ""), Err(Unfinished::Retry("the command ended with exit code 3".to_owned())));
        let killed = outcome(Ended::ByItself(Ok(ExitStatus::from_raw(9))), String::new());
        assert_eq!(killed, Err(Unfinished::Retry("the command was ended by signal 9".to_owned())));
    }
}
