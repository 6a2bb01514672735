//! `redrive subscription show`.

use redrive_wire::{QueueStats, SubscriptionView};

use super::settings::{self, filter_text};
use super::{get, target_text};
use crate::output::{Card, Cell, Format, table};
use crate::queue::list::stats;
use crate::queue::settings::COLUMNS;
use crate::remote::{Answer, Failure, Session};
use crate::span::Span;

/// What is to know about a subscription besides its settings, and how much waits for it.
pub(super) struct Shown<'a> {
    pub(super) view: &'a SubscriptionView,
    pub(super) stats: Option<&'a QueueStats>,
}

impl Card for Shown<'_> {
    fn fields(&self) -> Vec<(&'static str, Cell)> {
        let view = self.view;
        let mut fields = vec![
            ("id", Cell::text(&view.id)),
            ("state", Cell::state(&view.state)),
            ("pattern", Cell::text(&view.pattern)),
        ];
        if let Some(disabled) = &view.disabled {
            fields.push(("disabled", Cell::text(format!("{}, {}", disabled.at, disabled.why))));
        }
        if !view.filter.is_empty() {
            fields.push(("filter", Cell::text(filter_text(&view.filter))));
        }
        fields.push(("target", Cell::text(target_text(&view.target))));
        fields.extend(endpoint(view));
        fields.push(("queue", Cell::text(&view.queue)));
        fields.push(("created", Cell::text(view.created_at.to_string())));
        fields.push(("version", Cell::number(view.version)));
        if let Some(status) = &view.breaker_status {
            fields.push(("breaker", Cell::state(&status.state)));
        }
        if let Some(stats) = self.stats {
            fields.push(("ready", Cell::number(stats.states.ready)));
            fields.push(("delayed", Cell::number(stats.states.delayed)));
            fields.push(("leased", Cell::number(stats.states.leased)));
            fields.push(("dead", Cell::number(stats.states.dead)));
        }
        fields
    }

    fn id(&self) -> String {
        self.view.id.clone()
    }
}

/// What is to know about a webhook.
fn endpoint(view: &SubscriptionView) -> Vec<(&'static str, Cell)> {
    let target = &view.target;
    let mut fields = Vec::new();
    if target.kind == "webhook" {
        fields.extend(target.format.as_ref().map(|format| ("format", Cell::text(format))));
        let after = target.disable_after_ms.map(|ms| Span::from_millis(ms).to_string());
        fields.push(("disable after", Cell::text(after.as_deref().unwrap_or("none"))));
        fields.extend(target.secrets.map(|count| ("secrets", Cell::number(count))));
        let until = target.old_secrets_until;
        fields.extend(until.map(|until| ("old secrets until", Cell::text(until.to_string()))));
        let since = view.failing_since;
        fields.extend(since.map(|since| ("failing since", Cell::text(since.to_string()))));
    }
    fields
}

pub(super) async fn run(session: &Session, id: &str) -> Result<(), Failure> {
    let (output, view) = (&session.output, get(session, id).await?);
    match output.format {
        Format::Table => {
            let stats = stats(session, &view.value.queue).await?;
            let shown = Shown { view: &view.value, stats: stats.as_ref() };
            output.one(&Answer { value: shown, json: view.json.clone() })?;
            let rows = settings::rows(&view.value);
            if rows.is_empty() {
                return Ok(());
            }
            output.print(&format!("\n{}", table(&COLUMNS, rows, output.coloured)))
        }
        Format::Id => output.line(&view.value.id),
        _ => output.raw(&view.json),
    }
}
