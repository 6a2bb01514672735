//! `redrive queue list`.

use futures::StreamExt;
use futures::stream;
use redrive_wire::{QueueStats, QueueView};

use crate::output::{Cell, Column, Format, Row};
use crate::remote::{Answer, Failure, HowMany, Pages, Query, Session};

/// How many queues are counted at a time.
const AT_A_TIME: usize = 8;

/// A queue and, for people, its counts.
struct Listed {
    view: QueueView,
    /// None where it was deleted meanwhile, or was not asked for.
    stats: Option<QueueStats>,
}

impl Row for Listed {
    const COLUMNS: &'static [Column] = &[
        Column::Text("QUEUE"),
        Column::Text("STATE"),
        Column::Number("READY"),
        Column::Number("DELAYED"),
        Column::Number("LEASED"),
        Column::Number("DEAD"),
        Column::Number("OLDEST"),
    ];

    fn cells(&self) -> Vec<Cell> {
        let states = self.stats.as_ref().map(|stats| stats.states);
        let count = |of: fn(&redrive_wire::StateCounts) -> u64| {
            Cell::maybe(states.as_ref(), |states| Cell::number(of(states)))
        };
        vec![
            Cell::text(&self.view.name),
            Cell::state(if self.view.paused { "paused" } else { "active" }),
            count(|states| states.ready),
            count(|states| states.delayed),
            count(|states| states.leased),
            count(|states| states.dead),
            Cell::maybe(self.stats.as_ref().and_then(|stats| stats.oldest_ready_age_ms), Cell::age),
        ]
    }

    fn id(&self) -> String {
        self.view.name.clone()
    }
}

/// Page by page; a table has counts, which are one call for each queue.
pub(super) async fn run(session: &Session, how_many: HowMany) -> Result<(), Failure> {
    let counted = session.output.format == Format::Table;
    let mut pages = Pages::new(&session.remote, &["v1", "queues"], Query::new(), "queues", how_many);
    let mut list = session.output.list::<Listed>();
    while let Some(page) = pages.next::<QueueView>().await? {
        let mut listed = stream::iter(page)
            .map(|answer| async move {
                let stats = if counted { stats(session, &answer.value.name).await? } else { None };
                Ok(Answer { value: Listed { view: answer.value, stats }, json: answer.json })
            })
            .buffered(AT_A_TIME);
        while let Some(item) = listed.next().await {
            list.item(&item?)?;
        }
    }
    list.end()?;
    session.say_more(&pages);
    Ok(())
}

/// The counts of a queue; nothing where there is none of that name.
pub(crate) async fn stats(session: &Session, name: &str) -> Result<Option<QueueStats>, Failure> {
    match session.remote.get(&["v1", "queues", name, "stats"], &Query::new()).await {
        Ok(answer) => Ok(Some(answer.value)),
        Err(failure) if failure.exit() == crate::exit::Exit::NotFound => Ok(None),
        Err(failure) => Err(failure),
    }
}
