//! `redrive key`: API keys.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use redrive_broker::Clock;
use redrive_core::access::{QueuePattern, Scope};
use redrive_wire::{CreateKeyRequest, Grant, KeyView, NewKeyView, RotateKeyRequest, Time};
use serde_json::json;

use crate::arguments::key_id;
use crate::clock::WallClock;
use crate::confirm::Consent;
use crate::key;
use crate::output::{Card, Cell, Column, Row};
use crate::remote::{Answer, Asking, Failure, HowMany, Query, Session};
use crate::span::Span;
use crate::when::When;

#[derive(Debug, Args)]
pub(crate) struct KeyArguments {
    #[command(subcommand)]
    verb: KeyVerb,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Subcommand)]
enum KeyVerb {
    /// Prints a new key to start a server with, as `REDRIVE_BOOTSTRAP_KEY`. No server is asked.
    Generate,
    /// Makes a key, and shows its token this once.
    Create(CreateArguments),
    /// Lists keys, those that ended included.
    List(HowMany),
    /// Ends a key, at once. Polls and streams that wait under it are cut.
    Revoke(RevokeArguments),
    /// Gives a key another secret, and shows its token this once.
    Rotate(RotateArguments),
}

#[derive(Debug, Args)]
struct CreateArguments {
    /// What people call it.
    name: String,
    /// What it may do, and with which queues: read, produce, consume, manage or admin, such as produce:orders.*; give it
    /// again for another.
    #[arg(long = "grant", value_name = "SCOPE:PATTERN", required = true, value_parser = grant)]
    grants: Vec<Grant>,
    /// When it ends, or in how long.
    #[arg(long, value_name = "TIME|SPAN")]
    expires: Option<When>,
    /// How many queues there may be among those it manages for it to create another.
    #[arg(long, value_name = "N")]
    queues_max: Option<u32>,
    /// How many keys that it made may work at a time.
    #[arg(long, value_name = "N")]
    keys_max: Option<u32>,
    /// How many of its polls and streams may wait for work at a time.
    #[arg(long, value_name = "N")]
    consumers_max: Option<u32>,
}

#[derive(Debug, Args)]
struct RevokeArguments {
    /// The key.
    #[arg(value_parser = key_id)]
    id: String,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Debug, Args)]
struct RotateArguments {
    /// The key.
    #[arg(value_parser = key_id)]
    id: String,
    /// For how long the secret before works, too; not at all where nothing is said.
    #[arg(long, value_name = "SPAN")]
    overlap: Option<Span>,
}

fn grant(text: &str) -> Result<Grant, String> {
    let (scope, queues) = text.split_once(':').ok_or("must be SCOPE:PATTERN, such as produce:orders.*")?;
    scope.parse::<Scope>().map_err(|invalid| format!("scope {}", invalid.problem))?;
    QueuePattern::new(queues).map_err(|invalid| format!("pattern {}", invalid.problem))?;
    Ok(Grant { scope: scope.to_owned(), queues: queues.to_owned() })
}

pub(crate) fn run(arguments: KeyArguments) -> anyhow::Result<ExitCode> {
    if matches!(arguments.verb, KeyVerb::Generate) {
        println!("{}", key::generate()?.expose());
        return Ok(ExitCode::SUCCESS);
    }
    Ok(arguments.asking.run(async |session| match arguments.verb {
        KeyVerb::Generate => Ok(()),
        KeyVerb::Create(arguments) => create(session, arguments).await,
        KeyVerb::List(how_many) => {
            session.list::<KeyView>(&["v1", "keys"], Query::new(), "keys", how_many).await
        }
        KeyVerb::Revoke(arguments) => revoke(session, &arguments).await,
        KeyVerb::Rotate(arguments) => rotate(session, &arguments).await,
    }))
}

async fn create(session: &Session, arguments: CreateArguments) -> Result<(), Failure> {
    // The API takes a time; no call tells the server's that anybody may make.
    let now = Time(WallClock.now().as_millis());
    let request = CreateKeyRequest {
        name: arguments.name,
        grants: arguments.grants,
        expires_at: arguments.expires.map(|when| when.ahead(now)),
        queues_max: arguments.queues_max,
        keys_max: arguments.keys_max,
        consumers_max: arguments.consumers_max,
    };
    let answer: Answer<NewKeyView> = session.remote.post(&["v1", "keys"], &request).await?;
    shown_once(session, &answer)
}

async fn rotate(session: &Session, arguments: &RotateArguments) -> Result<(), Failure> {
    let request = RotateKeyRequest { overlap_ms: arguments.overlap.map(Span::millis) };
    let path = ["v1", "keys", &*arguments.id, "rotate"];
    let answer: Answer<NewKeyView> = session.remote.post(&path, &request).await?;
    shown_once(session, &answer)
}

fn shown_once(session: &Session, answer: &Answer<NewKeyView>) -> Result<(), Failure> {
    session.output.one(answer)?;
    session.output.say("the token cannot be shown again: keep it now");
    Ok(())
}

async fn revoke(session: &Session, arguments: &RevokeArguments) -> Result<(), Failure> {
    let id = &*arguments.id;
    let key: KeyView = session.remote.get(&["v1", "keys", id], &Query::new()).await?.value;
    let what = format!("revoke key {id} ({})", key.name);
    if !arguments.consent.given(&session.output, &what, 1).await? {
        return Ok(());
    }
    let answer = session.remote.post::<KeyView>(&["v1", "keys", id, "revoke"], &json!({})).await?;
    session.output.told(Some(&answer.json), &format!("key {id} ({}) is {}", key.name, answer.value.state), id)
}

fn grants(key: &KeyView) -> String {
    let grants = key.grants.iter().map(|grant| format!("{}:{}", grant.scope, grant.queues));
    grants.collect::<Vec<_>>().join(" ")
}

impl Row for KeyView {
    const COLUMNS: &'static [Column] = &[
        Column::Text("ID"),
        Column::Text("NAME"),
        Column::Text("STATE"),
        Column::Text("CREATED"),
        Column::Text("EXPIRES"),
        Column::Text("GRANTS"),
    ];

    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::text(&self.id),
            Cell::text(&self.name),
            Cell::state(&self.state),
            Cell::text(self.created_at.to_string()),
            Cell::maybe(self.expires_at, |at| Cell::text(at.to_string())),
            Cell::clipped(grants(self)),
        ]
    }

    fn id(&self) -> String {
        self.id.clone()
    }
}

impl Card for NewKeyView {
    fn fields(&self) -> Vec<(&'static str, Cell)> {
        let key = &self.key;
        let time = |time: Time| Cell::text(time.to_string());
        let mut fields = vec![
            ("id", Cell::text(&key.id)),
            ("name", Cell::text(&key.name)),
            ("grants", Cell::text(grants(key))),
        ];
        fields.extend(key.expires_at.map(|at| ("expires", time(at))));
        fields.extend(key.overlaps_until.map(|at| ("old secret until", time(at))));
        fields.push(("token", Cell::text(&self.token)));
        fields
    }

    fn id(&self) -> String {
        self.key.id.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_a_scope_and_a_pattern() {
        let read = grant("produce:orders.*").unwrap();
        assert_eq!((&*read.scope, &*read.queues), ("produce", "orders.*"));
        for wrong in ["", "produce", "produce:", "write:orders", ":orders", "read:a b"] {
            assert!(grant(wrong).is_err(), "{wrong}");
        }
    }
}
