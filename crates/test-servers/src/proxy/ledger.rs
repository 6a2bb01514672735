//! What a proxy has to know of a protocol: where a message ends, and which answer belongs to which request.

use std::io::{self, BufRead, Write};

use super::switchboard::{Switchboard, Taken};

/// What one connection has been asked, and what it has not answered yet.
pub(super) trait Ledger: Send {
    /// What either side says at a time.
    type Message;

    /// The ledger of a new connection, whose first answer somebody may have taken.
    fn new(taken: Option<Taken>) -> Self;

    /// The next message, or nothing where they end.
    fn read(from: &mut impl BufRead) -> io::Result<Option<Self::Message>>;

    fn write(message: &Self::Message, to: &mut impl Write) -> io::Result<()>;

    /// Takes note of what the client sends, before the server sees it; a rule may want the connection cut instead.
    fn sent(&mut self, message: &Self::Message, rules: &Switchboard) -> Option<Taken>;

    /// Takes note of what the server sends.
    fn received(&mut self, message: &Self::Message) -> Reply;
}

/// What is to be done with a message of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Pass,
    /// It belongs to an answer that somebody has taken.
    Keep,
    /// The same, but the client will send nothing more before it has seen it.
    Release,
    /// It is the last one of that answer.
    Last(Taken),
}
