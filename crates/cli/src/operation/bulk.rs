//! Work on many messages: counted first, asked about, then begun.

use redrive_wire::{Matched, OperationView};
use serde::Serialize;

use super::follow::Follow;
use crate::confirm::Consent;
use crate::output::counted;
use crate::remote::{Answer, Failure, Session};

/// What is to be done to many messages.
pub(crate) struct Bulk<'a> {
    /// Where the server takes it.
    pub(crate) path: &'a [&'a str],
    /// What is done, such as `discard`.
    pub(crate) verb: &'a str,
    /// To what, such as `dead message`.
    pub(crate) noun: &'a str,
    /// To which of them, such as `of orders`.
    pub(crate) of: String,
    pub(crate) consent: Consent,
    pub(crate) follow: Follow,
    /// From how many on somebody is asked.
    pub(crate) asks_from: u64,
}

impl Bulk<'_> {
    /// Counts, asks, begins, and follows where that was asked for. `request` says what is sent, for a dry run and for the deed.
    pub(crate) async fn run<B: Serialize>(
        self,
        session: &Session,
        request: impl Fn(bool) -> B,
    ) -> Result<(), Failure> {
        let matched = session.remote.post::<Matched>(self.path, &request(true)).await?;
        let count = matched.value.matched;
        let what = format!("{} {} {}", self.verb, counted(count, self.noun), self.of);
        if self.consent.dry_run || count >= self.asks_from.max(1) {
            if !self.consent.given(&session.output, &what, count).await? {
                return Ok(());
            }
        } else if count == 0 {
            return session.output.told(
                Some(&matched.json),
                &format!("there is no {} {}", self.noun, self.of),
                "",
            );
        }
        let begun: Answer<OperationView> = session.remote.post(self.path, &request(false)).await?;
        self.follow.after(session, begun, &what).await
    }
}
