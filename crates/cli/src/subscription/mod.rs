//! `redrive subscription`: who gets which events, and how that goes.

mod attempts;
mod create;
mod dead;
mod delete;
mod list;
mod redrive;
mod replay;
mod resend;
mod settings;
mod show;
mod update;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use redrive_wire::{SubscriptionView, TargetView};
use reqwest::Method;

use crate::arguments::subscription_id;
use crate::remote::{Answer, Asking, Failure, HowMany, Query, Session};

#[derive(Debug, Args)]
pub(crate) struct SubscriptionArguments {
    #[command(subcommand)]
    verb: SubscriptionVerb,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Subcommand)]
enum SubscriptionVerb {
    /// Subscribes a queue or a webhook to topics; events that are published from then on come to it.
    Create(Box<create::CreateArguments>),
    /// Lists subscriptions with how much waits for them.
    List(HowMany),
    /// Shows a subscription: where it stands, and its settings with where each comes from.
    Show(One),
    /// Changes settings of a subscription; the others stay as they are.
    Update(Box<update::UpdateArguments>),
    /// Deletes a subscription, with what waits for it and its dead letters.
    Delete(delete::DeleteArguments),
    /// Pauses a subscription: events come, and wait.
    Pause(One),
    /// Ends a pause.
    Resume(One),
    /// Switches a subscription off: events do not come, and what waits stays.
    Disable(One),
    /// Switches a subscription on again. What was published meanwhile comes only by a replay.
    Enable(One),
    /// Gives a webhook another secret, and shows it this once.
    RotateSecret(create::RotateArguments),
    /// Brings events that topics kept to a subscription once more.
    Replay(replay::ReplayArguments),
    /// Lists replays that are under way.
    Replays(One),
    /// Ends a replay. What was brought stays.
    CancelReplay(replay::CancelArguments),
    /// Brings one event to a subscription once more: dead, waiting, or over and kept by its topic.
    Resend(resend::ResendArguments),
    /// The last attempts of a server to deliver, the newest first; as JSON with what was sent and answered.
    Attempts(One),
    /// Lists events that are dead for a subscription.
    Dead(dead::DeadArguments),
    /// Groups of dead events whose errors are alike, the largest first.
    Groups(dead::GroupsArguments),
    /// Brings dead events back.
    Redrive(Box<redrive::RedriveArguments>),
}

#[derive(Debug, Args)]
struct One {
    /// The subscription.
    #[arg(value_parser = subscription_id)]
    id: String,
}

pub(crate) fn run(arguments: SubscriptionArguments) -> ExitCode {
    arguments.asking.run(async |session| match arguments.verb {
        SubscriptionVerb::Create(arguments) => create::run(session, *arguments).await,
        SubscriptionVerb::List(how_many) => list::run(session, how_many).await,
        SubscriptionVerb::Show(one) => show::run(session, &one.id).await,
        SubscriptionVerb::Update(arguments) => update::run(session, *arguments).await,
        SubscriptionVerb::Delete(arguments) => delete::run(session, &arguments).await,
        SubscriptionVerb::Pause(one) => change(session, &one.id, "pause").await,
        SubscriptionVerb::Resume(one) => change(session, &one.id, "resume").await,
        SubscriptionVerb::Disable(one) => change(session, &one.id, "disable").await,
        SubscriptionVerb::Enable(one) => change(session, &one.id, "enable").await,
        SubscriptionVerb::RotateSecret(arguments) => create::rotate(session, &arguments).await,
        SubscriptionVerb::Replay(arguments) => replay::run(session, &arguments).await,
        SubscriptionVerb::Replays(one) => replay::list(session, &one.id).await,
        SubscriptionVerb::CancelReplay(arguments) => replay::cancel(session, &arguments).await,
        SubscriptionVerb::Resend(arguments) => resend::run(session, &arguments).await,
        SubscriptionVerb::Attempts(one) => attempts::run(session, &one.id).await,
        SubscriptionVerb::Dead(arguments) => dead::list(session, &arguments).await,
        SubscriptionVerb::Groups(arguments) => dead::groups(session, &arguments).await,
        SubscriptionVerb::Redrive(arguments) => redrive::run(session, &arguments).await,
    })
}

async fn get(session: &Session, id: &str) -> Result<Answer<SubscriptionView>, Failure> {
    session.remote.get(&["v1", "subscriptions", id], &Query::new()).await
}

async fn change(session: &Session, id: &str, verb: &str) -> Result<(), Failure> {
    let request = session.remote.request(Method::POST, &["v1", "subscriptions", id, verb], &Query::new());
    let answer: Answer<SubscriptionView> = session.remote.answer(request).await?;
    session.output.told(Some(&answer.json), &format!("subscription {id} is {}", answer.value.state), id)
}

/// Where events go, on one line.
fn target_text(target: &TargetView) -> String {
    match (&target.url, &target.queue) {
        (Some(url), _) => url.clone(),
        (None, Some(queue)) => format!("queue {queue}"),
        (None, None) => target.kind.clone(),
    }
}
