//! `redrive queue show`.

use clap::Args;
use redrive_wire::{QueueStats, QueueView};

use super::settings;
use crate::arguments::queue_name;
use crate::output::{Card, Cell, Format, table};
use crate::remote::{Answer, Failure, Query, Session};

#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// The queue.
    #[arg(value_parser = queue_name)]
    name: String,
    /// Only its counts, and how often what happened.
    #[arg(long)]
    stats: bool,
}

impl Card for QueueStats {
    fn fields(&self) -> Vec<(&'static str, Cell)> {
        let mut fields = vec![
            ("queue", Cell::text(&self.queue)),
            ("at", Cell::text(self.at.to_string())),
            ("ready", Cell::number(self.states.ready)),
            ("delayed", Cell::number(self.states.delayed)),
            ("leased", Cell::number(self.states.leased)),
            ("dead", Cell::number(self.states.dead)),
            ("done", Cell::number(self.states.done)),
            ("overdue", Cell::number(self.overdue)),
            ("retries in flight", Cell::number(self.retries_in_flight)),
            ("oldest ready", Cell::maybe(self.oldest_ready_age_ms, Cell::age)),
            ("dedup keys", Cell::number(self.dedup_keys)),
        ];
        let happened = self.totals.iter().filter(|(_, count)| **count > 0);
        let happened: Vec<String> = happened.map(|(name, count)| format!("{name} {count}")).collect();
        fields.push((
            "totals",
            Cell::maybe(Some(happened).filter(|all| !all.is_empty()), |all| Cell::text(all.join(", "))),
        ));
        fields
    }

    fn id(&self) -> String {
        self.queue.clone()
    }
}

/// What is to know about a queue besides its settings.
struct Shown<'a>(&'a QueueView, &'a QueueStats);

impl Card for Shown<'_> {
    fn fields(&self) -> Vec<(&'static str, Cell)> {
        let Self(view, stats) = self;
        let mut fields = vec![
            ("queue", Cell::text(&view.name)),
            ("state", Cell::state(if view.paused { "paused" } else { "active" })),
            ("created", Cell::text(view.created_at.to_string())),
            ("version", Cell::number(view.version)),
        ];
        for pause in &view.pauses {
            let of = pause.key.as_ref().map_or_else(|| "all".to_owned(), |key| format!("key `{key}`"));
            let until = pause.until.map_or_else(|| "resumed".to_owned(), |until| until.to_string());
            fields.push(("paused", Cell::text(format!("{of}, until {until}"))));
        }
        fields.extend(
            stats.fields().into_iter().filter(|(name, _)| !matches!(*name, "queue" | "at" | "totals")),
        );
        fields
    }

    fn id(&self) -> String {
        self.0.name.clone()
    }
}

pub(super) async fn run(session: &Session, arguments: &ShowArguments) -> Result<(), Failure> {
    let (output, name) = (&session.output, &*arguments.name);
    let stats =
        async || session.remote.get::<QueueStats>(&["v1", "queues", name, "stats"], &Query::new()).await;
    if arguments.stats {
        return output.one(&stats().await?);
    }
    let view: Answer<QueueView> = session.remote.get(&["v1", "queues", name], &Query::new()).await?;
    match output.format {
        Format::Table => {
            output
                .one(&Answer { value: Shown(&view.value, &stats().await?.value), json: view.json.clone() })?;
            let rows = settings::rows(&view.value);
            output.print(&format!("\n{}", table(&settings::COLUMNS, rows, output.coloured)))
        }
        Format::Id => output.line(&view.value.name),
        _ => output.raw(&view.json),
    }
}
