//! `redrive subscription create` and `redrive subscription rotate-secret`: the two that show a secret, once.

use clap::Args;
use redrive_wire::{
    CreateSubscriptionRequest, NewSubscriptionView, NewTarget, RotateSecretRequest, UpdateSubscriptionRequest,
};
use tokio::io::AsyncReadExt;

use super::replay;
use super::settings::SettingArguments;
use super::show::Shown;
use crate::arguments::{queue_name, subscription_id, topic_pattern};
use crate::output::{Card, Cell};
use crate::remote::{Answer, Failure, Session};
use crate::span::Span;
use crate::when::When;

/// More than any secret has.
const SECRET_BYTES_MAX: u64 = 256;

#[derive(Debug, Args)]
pub(super) struct CreateArguments {
    /// Its name: 1 to 64 of A-Z a-z 0-9 . _ -; the server makes one where none is said.
    #[arg(value_parser = subscription_id)]
    id: Option<String>,
    /// Of which topics: `*` is one segment, `**` any number of them, a lone `*` all topics.
    #[arg(long, value_parser = topic_pattern)]
    pattern: String,
    #[command(flatten)]
    target: TargetArguments,
    /// Takes the secret that webhooks are signed with from stdin; the server makes one where none is said.
    #[arg(long, conflicts_with = "queue")]
    secret_stdin: bool,
    /// Brings events that its topics kept since this time, or since this span ago.
    #[arg(long, value_name = "TIME|SPAN")]
    replay_from: Option<When>,
    #[command(flatten)]
    settings: SettingArguments,
}

/// Where events go.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct TargetArguments {
    /// Puts events into this queue, which others consume.
    #[arg(long, value_name = "QUEUE", value_parser = queue_name)]
    queue: Option<String>,
    /// Sends events to this endpoint.
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct RotateArguments {
    /// The subscription.
    #[arg(value_parser = subscription_id)]
    id: String,
    /// Takes the secret from stdin; the server makes one where none is said.
    #[arg(long)]
    secret_stdin: bool,
    /// For how long the secrets before it sign, too; a day where nothing is said.
    #[arg(long, value_name = "SPAN")]
    overlap: Option<Span>,
}

pub(super) async fn run(session: &Session, arguments: CreateArguments) -> Result<(), Failure> {
    let secret = if arguments.secret_stdin { Some(secret_from_stdin().await?) } else { None };
    let endpoint = arguments.settings.endpoint.clone();
    let settings = arguments.settings.over(UpdateSubscriptionRequest::default());
    let TargetArguments { queue, webhook } = arguments.target;
    let target = NewTarget {
        kind: if queue.is_some() { "queue" } else { "webhook" }.to_owned(),
        format: endpoint.format(),
        disable_after_ms: endpoint.disable_after(),
        url: webhook,
        secret,
        queue,
    };
    // A span ago is counted from the server's time, which its queue tells once there is one.
    let (replay_from, ago) = match arguments.replay_from {
        Some(When::At(time)) => (Some(time), None),
        Some(When::Span(span)) => (None, Some(span)),
        None => (None, None),
    };
    let request = CreateSubscriptionRequest {
        id: arguments.id,
        pattern: arguments.pattern,
        filter: settings.filter,
        target,
        retry: settings.retry,
        timeout_ms: settings.timeout_ms,
        max_in_flight: settings.max_in_flight,
        breaker: settings.breaker,
        replay_from,
    };
    let answer: Answer<NewSubscriptionView> = session.remote.post(&["v1", "subscriptions"], &request).await?;
    shown_once(session, &answer)?;
    match ago {
        Some(span) => {
            let id = &answer.value.subscription.id;
            let started = replay::start(session, id, When::Span(span)).await?;
            session.output.say(&format!("replay {} has begun", started.value.id));
            Ok(())
        }
        None => Ok(()),
    }
}

pub(super) async fn rotate(session: &Session, arguments: &RotateArguments) -> Result<(), Failure> {
    let secret = if arguments.secret_stdin { Some(secret_from_stdin().await?) } else { None };
    let request = RotateSecretRequest { secret, overlap_ms: arguments.overlap.map(Span::millis) };
    let path = ["v1", "subscriptions", &*arguments.id, "secret"];
    shown_once(session, &session.remote.post(&path, &request).await?)
}

/// A secret on a command line is seen by everybody on the machine.
async fn secret_from_stdin() -> Result<String, Failure> {
    let failed = |error| Failure::Io("reading the secret".to_owned(), error);
    let mut text = String::new();
    tokio::io::stdin().take(SECRET_BYTES_MAX).read_to_string(&mut text).await.map_err(failed)?;
    match text.trim() {
        "" => Err(Failure::Usage("there is no secret on stdin".to_owned())),
        secret => Ok(secret.to_owned()),
    }
}

fn shown_once(session: &Session, answer: &Answer<NewSubscriptionView>) -> Result<(), Failure> {
    session.output.one(answer)?;
    if answer.value.secret.is_some() {
        session.output.say("the secret cannot be shown again: keep it now");
    }
    Ok(())
}

impl Card for NewSubscriptionView {
    fn fields(&self) -> Vec<(&'static str, Cell)> {
        let mut fields = Shown { view: &self.subscription, stats: None }.fields();
        fields.extend(self.secret.as_ref().map(|secret| ("secret", Cell::text(secret))));
        fields
    }

    fn id(&self) -> String {
        self.subscription.id.clone()
    }
}
