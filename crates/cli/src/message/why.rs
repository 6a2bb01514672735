//! `redrive message why`.

use clap::Args;
use redrive_wire::WhyView;

use crate::arguments::{message_id, queue_name};
use crate::output::{Cell, Column, Format, card, table};
use crate::remote::{Answer, Failure, Query, Session};

#[derive(Debug, Args)]
pub(super) struct WhyArguments {
    /// The queue.
    #[arg(value_parser = queue_name)]
    queue: String,
    /// The message.
    #[arg(value_parser = message_id)]
    id: String,
}

const COLUMNS: [Column; 3] = [Column::Text("WHY"), Column::Text("UNTIL"), Column::Text("WHAT IT MEANS")];

pub(super) async fn run(session: &Session, arguments: &WhyArguments) -> Result<(), Failure> {
    let path = ["v1", "queues", &*arguments.queue, "messages", &*arguments.id, "why"];
    let answer: Answer<WhyView> = session.remote.get(&path, &Query::new()).await?;
    let output = &session.output;
    match output.format {
        Format::Table => output.print(&told(&answer.value, output.coloured)),
        Format::Id => answer.value.obstacles.iter().try_for_each(|one| output.line(&one.kind)),
        _ => output.raw(&answer.json),
    }
}

fn told(why: &WhyView, coloured: bool) -> String {
    let earliest = Cell::maybe(why.earliest, |at| Cell::text(at.to_string()));
    let head = card(&[("state", Cell::state(&why.state)), ("earliest", earliest)], coloured);
    if why.obstacles.is_empty() {
        return format!("{head}\nNothing keeps it: the next consumer that asks gets it.\n");
    }
    let rows = why.obstacles.iter().map(|one| {
        let until = Cell::maybe(one.until, |at| Cell::text(at.to_string()));
        vec![Cell::text(&one.kind), until, Cell::text(&one.detail)]
    });
    format!("{head}\n{}", table(&COLUMNS, rows.collect(), coloured))
}
