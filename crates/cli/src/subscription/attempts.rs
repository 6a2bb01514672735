//! `redrive subscription attempts`.

use redrive_wire::DeliveryAttempt;

use crate::output::{Cell, Column, Row};
use crate::remote::{Failure, Session};

pub(super) async fn run(session: &Session, id: &str) -> Result<(), Failure> {
    session.whole::<DeliveryAttempt>(&["v1", "subscriptions", id, "attempts"], "attempts").await
}

impl Row for DeliveryAttempt {
    const COLUMNS: &'static [Column] = &[
        Column::Text("BEGAN"),
        Column::Text("EVENT"),
        Column::Number("ATTEMPT"),
        Column::Number("TOOK"),
        Column::Number("STATUS"),
        Column::Text("OUTCOME"),
    ];

    fn cells(&self) -> Vec<Cell> {
        let outcome = match &self.error {
            _ if self.delivered => Cell::text("delivered"),
            Some(error) => Cell::clipped(error),
            None => Cell::text("failed"),
        };
        vec![
            Cell::text(self.at.to_string()),
            Cell::text(&self.event),
            Cell::number(self.attempt),
            Cell::span(self.took_ms),
            Cell::maybe(self.response.as_ref(), |response| Cell::number(response.status)),
            outcome,
        ]
    }

    fn id(&self) -> String {
        self.event.clone()
    }
}
