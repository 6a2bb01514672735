//! `redrive subscription list`.

use futures::StreamExt;
use futures::stream;
use redrive_wire::{QueueStats, SubscriptionView};

use super::target_text;
use crate::output::{Cell, Column, Format, Row};
use crate::queue::list::stats;
use crate::remote::{Answer, Failure, HowMany, Pages, Query, Session};

/// How many subscriptions are counted at a time.
const AT_A_TIME: usize = 8;

/// A subscription and, for people, how much waits for it. What waits in the queue of somebody else is not its own.
struct Listed {
    view: SubscriptionView,
    stats: Option<QueueStats>,
}

impl Row for Listed {
    const COLUMNS: &'static [Column] = &[
        Column::Text("ID"),
        Column::Text("STATE"),
        Column::Text("PATTERN"),
        Column::Text("TARGET"),
        Column::Number("WAITING"),
        Column::Number("DEAD"),
    ];

    fn cells(&self) -> Vec<Cell> {
        let states = self.stats.as_ref().map(|stats| stats.states);
        vec![
            Cell::text(&self.view.id),
            Cell::state(&self.view.state),
            Cell::text(&self.view.pattern),
            Cell::clipped(target_text(&self.view.target)),
            Cell::maybe(states, |states| Cell::number(states.ready + states.delayed + states.leased)),
            Cell::maybe(states, |states| Cell::number(states.dead)),
        ]
    }

    fn id(&self) -> String {
        self.view.id.clone()
    }
}

/// Page by page; a table has counts, which are one call for each subscription.
pub(super) async fn run(session: &Session, how_many: HowMany) -> Result<(), Failure> {
    let counted = session.output.format == Format::Table;
    let path = ["v1", "subscriptions"];
    let mut pages = Pages::new(&session.remote, &path, Query::new(), "subscriptions", how_many);
    let mut list = session.output.list::<Listed>();
    while let Some(page) = pages.next::<SubscriptionView>().await? {
        let mut listed = stream::iter(page)
            .map(|answer| async move {
                let own = counted && answer.value.target.kind != "queue";
                let stats = if own { stats(session, &answer.value.queue).await? } else { None };
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
