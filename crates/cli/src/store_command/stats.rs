//! `redrive store stats`: what is in a directory.

use std::path::Path;

use redrive_core::message::State;
use redrive_store::QueueStats;
use redrive_store_embedded::Contents;
use serde_json::{Map, Value, json};

use super::{directory, failed};
use crate::output::{Cell, Column, Output, card, table};
use crate::remote::Failure;

const COLUMNS: [Column; 8] = [
    Column::Text("QUEUE"),
    Column::Number("READY"),
    Column::Number("DELAYED"),
    Column::Number("LEASED"),
    Column::Number("DEAD"),
    Column::Number("DONE"),
    Column::Number("OVERDUE"),
    Column::Number("OLDEST READY"),
];

/// The states in the order of the columns.
const STATES: [State; 5] = [State::Ready, State::Delayed, State::Leased, State::Dead, State::Done];

pub(super) fn run(dir: &Path, output: &Output) -> Result<(), Failure> {
    let disk = directory::taken(dir, "`redrive queue list` asks it")?;
    let contents =
        redrive_store_embedded::contents(&disk, &directory::options()).map_err(|error| failed(&error))?;
    output.document(&document(&contents), || text(&contents, output.coloured))
}

fn oldest_ms(stats: &QueueStats) -> Option<u64> {
    stats.oldest_ready.map(|since| stats.at.since(since).get())
}

fn document(contents: &Contents) -> Value {
    let queue = |stats: &QueueStats| {
        let states = STATES.iter().map(|state| (state.name().to_owned(), json!(stats.states.of(*state))));
        json!({
            "queue": stats.queue.name.as_str(),
            "states": states.collect::<Map<String, Value>>(),
            "overdue": stats.overdue,
            "oldest_ready_age_ms": oldest_ms(stats),
            "dedup_keys": stats.dedup_keys,
        })
    };
    json!({
        "segments": contents.usage.segments,
        "spare_files": contents.usage.spares,
        "total_bytes": contents.usage.total_bytes,
        "live_bytes": contents.usage.live_bytes,
        "entries": contents.entries,
        "queues": contents.queues.iter().map(queue).collect::<Vec<Value>>(),
    })
}

fn text(contents: &Contents, coloured: bool) -> String {
    let row = |stats: &QueueStats| {
        let mut row = vec![Cell::text(stats.queue.name.as_str())];
        row.extend(STATES.iter().map(|state| Cell::number(stats.states.of(*state))));
        row.push(Cell::number(stats.overdue));
        row.push(Cell::maybe(oldest_ms(stats), Cell::age));
        row
    };
    let usage = &contents.usage;
    let fields = [
        ("segments", Cell::number(usage.segments)),
        ("spare files", Cell::number(usage.spares)),
        ("bytes", Cell::number(usage.total_bytes)),
        ("bytes needed", Cell::number(usage.live_bytes)),
        ("registry entries", Cell::number(contents.entries)),
    ];
    let queues = table(&COLUMNS, contents.queues.iter().map(row).collect(), coloured);
    format!("{queues}\n{}", card(&fields, coloured))
}
