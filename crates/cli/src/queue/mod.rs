//! `redrive queue`: queues and their settings.

mod delete;
pub(crate) mod list;
mod pause;
mod purge;
pub(crate) mod retry;
mod set;
pub(crate) mod settings;
mod show;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use redrive_wire::{CreateQueueRequest, QueueView};

use crate::arguments::queue_name;
use crate::remote::{Asking, Failure, HowMany, Session};
use settings::SettingArguments;

#[derive(Debug, Args)]
pub(crate) struct QueueArguments {
    #[command(subcommand)]
    verb: QueueVerb,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Subcommand)]
enum QueueVerb {
    /// Creates a queue.
    Create(Box<CreateArguments>),
    /// Lists queues with their counts.
    List(HowMany),
    /// Shows a queue: its counts, and its settings with where each comes from.
    Show(show::ShowArguments),
    /// Changes settings of a queue; the others stay as they are.
    Set(Box<set::SetArguments>),
    /// Pauses a queue, or one fairness key of it: nothing of it is handed out.
    Pause(pause::PauseArguments),
    /// Ends a pause.
    Resume(pause::ResumeArguments),
    /// Discards everything in a queue.
    Purge(purge::PurgeArguments),
    /// Deletes a queue.
    Delete(delete::DeleteArguments),
}

#[derive(Debug, Args)]
struct CreateArguments {
    /// Its name: 1 to 80 of A-Z a-z 0-9 . _ -
    #[arg(value_parser = queue_name)]
    name: String,
    #[command(flatten)]
    settings: SettingArguments,
}

pub(crate) fn run(arguments: QueueArguments) -> ExitCode {
    arguments.asking.run(async |session| match arguments.verb {
        QueueVerb::Create(arguments) => create(session, *arguments).await,
        QueueVerb::List(how_many) => list::run(session, how_many).await,
        QueueVerb::Show(arguments) => show::run(session, &arguments).await,
        QueueVerb::Set(arguments) => set::run(session, *arguments).await,
        QueueVerb::Pause(arguments) => pause::pause(session, arguments).await,
        QueueVerb::Resume(arguments) => pause::resume(session, arguments).await,
        QueueVerb::Purge(arguments) => purge::run(session, &arguments).await,
        QueueVerb::Delete(arguments) => delete::run(session, &arguments).await,
    })
}

async fn create(session: &Session, arguments: CreateArguments) -> Result<(), Failure> {
    let config = arguments.settings.over(redrive_wire::QueueConfig::default());
    let request = CreateQueueRequest { name: arguments.name, config };
    let answer = session.remote.post::<QueueView>(&["v1", "queues"], &request).await?;
    let name = &answer.value.name;
    session.output.told(Some(&answer.json), &format!("queue {name} created"), name)
}
