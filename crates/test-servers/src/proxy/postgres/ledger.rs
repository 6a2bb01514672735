//! Which statement is executed, and which answer belongs to it.
//!
//! The server answers requests in their order, and ends each answer with one `ReadyForQuery`. A request is a simple query,
//! or a batch of the extended protocol up to its `Sync`. So the ledger is a line of answers that are awaited, and the first
//! one is the one that the server is giving.
//!
//! The text of a statement is only in its `Parse`; `Bind` makes a portal of it by its name, and `Execute` names the
//! portal. That is why the names are kept.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, Write};

use super::message::{self, Message};
use crate::proxy::Fault;
use crate::proxy::ledger::{Ledger, Reply};
use crate::proxy::rule::Occasion;
use crate::proxy::switchboard::{Switchboard, Taken};

/// The ledger of one connection.
#[derive(Debug)]
pub(super) struct PostgresLedger {
    /// The texts of prepared statements, by their names.
    statements: HashMap<String, String>,
    /// The texts of what can be executed, by the names of the portals.
    portals: HashMap<String, String>,
    /// The answers that are awaited.
    answers: VecDeque<Answer>,
    /// Whether the last of them is a batch whose `Sync` has not come.
    open: bool,
}

#[derive(Debug)]
struct Answer {
    request: Request,
    /// Who has an eye on it.
    taken: Option<Taken>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    /// The beginning of the session, or a simple query.
    Single,
    Batch,
}

impl Ledger for PostgresLedger {
    type Message = Message;

    /// A session begins with an answer.
    fn new(taken: Option<Taken>) -> Self {
        let answers = VecDeque::from([Answer { request: Request::Single, taken }]);
        Self { statements: HashMap::new(), portals: HashMap::new(), answers, open: false }
    }

    fn read(from: &mut impl BufRead) -> io::Result<Option<Message>> {
        message::read(from)
    }

    fn write(message: &Message, to: &mut impl Write) -> io::Result<()> {
        message::write(message, to)
    }

    fn sent(&mut self, message: &Message, rules: &Switchboard) -> Option<Taken> {
        match message.kind {
            b'P' => {
                self.open();
                self.statements.extend(message.two_texts());
            }
            b'B' => self.bind(message),
            b'C' => self.close(message),
            b'D' => self.open(),
            b'E' => {
                self.open();
                let portal = message.one_text().unwrap_or_default();
                let text = self.portals.get(&portal).cloned().unwrap_or_default();
                return self.ask(Occasion::Statement(&text), rules);
            }
            b'S' => {
                self.open();
                self.open = false;
                return self.ask(Occasion::Request, rules);
            }
            b'Q' => {
                self.answers.push_back(Answer { request: Request::Single, taken: None });
                let text = message.one_text().unwrap_or_default();
                let cut = self.ask(Occasion::Statement(&text), rules);
                return cut.or_else(|| self.ask(Occasion::Request, rules));
            }
            b'F' => self.answers.push_back(Answer { request: Request::Single, taken: None }),
            b'c' | b'f' => self.end_copy(),
            _ => {}
        }
        None
    }

    fn received(&mut self, message: &Message) -> Reply {
        let taken = self.answers.front().and_then(|answer| answer.taken);
        let last = message.kind == b'Z';
        if last {
            self.answers.pop_front();
        }
        match (taken, message.kind) {
            (None, _) => Reply::Pass,
            (Some(taken), b'Z') => Reply::Last(taken),
            // The client has to prove who it is, or to send what is to be copied.
            (Some(_), b'R' | b'G' | b'W') => Reply::Release,
            (Some(_), _) => Reply::Keep,
        }
    }
}

impl PostgresLedger {
    /// A message of the extended protocol belongs to the batch that is open, or opens one.
    fn open(&mut self) {
        if !self.open {
            self.open = true;
            self.answers.push_back(Answer { request: Request::Batch, taken: None });
        }
    }

    fn bind(&mut self, message: &Message) {
        self.open();
        let Some((portal, statement)) = message.two_texts() else {
            return;
        };
        let text = self.statements.get(&statement).cloned().unwrap_or_default();
        self.portals.insert(portal, text);
    }

    fn close(&mut self, message: &Message) {
        self.open();
        let Some((kind, name)) =
            message.one_text().and_then(|text| Some((text.chars().next()?, text.get(1..)?.to_owned())))
        else {
            return;
        };
        let closed = if kind == 'S' { &mut self.statements } else { &mut self.portals };
        closed.remove(&name);
    }

    /// A client that copies by the extended protocol has sent a `Sync` with the statement, which a server that waits for
    /// data ignores, and sends another one behind the data: two of them have one answer.
    fn end_copy(&mut self) {
        if !self.open && self.answers.back().is_some_and(|answer| answer.request == Request::Batch) {
            self.open = true;
        }
    }

    /// Asks the rules what becomes of the last request; one that is taken is taken.
    fn ask(&mut self, occasion: Occasion<'_>, rules: &Switchboard) -> Option<Taken> {
        let taken = rules.ask(occasion)?;
        if taken.fault == Fault::CutBefore {
            return Some(taken);
        }
        let answer = self.answers.back_mut()?;
        answer.taken.get_or_insert(taken);
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::proxy::{Injected, Rule, Trigger};

    /// A session whose beginning has been answered, with one rule.
    fn session(trigger: Trigger, fault: Fault) -> (PostgresLedger, Arc<Switchboard>, Injected) {
        let board = Arc::new(Switchboard::to(([127, 0, 0, 1], 1).into()));
        let rule = board.inject(Rule::new(trigger, fault).always());
        let mut ledger = PostgresLedger::new(None);
        assert_eq!(ledger.received(&message(b'Z', "")), Reply::Pass);
        (ledger, board, rule)
    }

    fn message(kind: u8, body: &str) -> Message {
        Message { kind, body: body.as_bytes().to_vec() }
    }

    impl PostgresLedger {
        fn send(&mut self, board: &Switchboard, messages: &[(u8, &str)]) -> bool {
            messages.iter().any(|&(kind, body)| self.sent(&message(kind, body), board).is_some())
        }

        /// One letter a reply: passed, kept, released, last.
        fn replies(&mut self, kinds: &[u8]) -> String {
            let letter = |kind: &u8| match self.received(&message(*kind, "")) {
                Reply::Pass => 'p',
                Reply::Keep => 'k',
                Reply::Release => 'r',
                Reply::Last(_) => 'l',
            };
            kinds.iter().map(letter).collect()
        }
    }

    #[test]
    fn only_the_answer_of_the_commit_is_taken() {
        let (mut ledger, board, _) = session(Trigger::Commit, Fault::CutReply);
        assert!(!ledger.send(&board, &[(b'Q', "BEGIN\0"), (b'Q', "COMMIT\0"), (b'Q', "SELECT 1\0")]));
        assert_eq!(ledger.replies(b"CZCZTDCZ"), "ppklpppp");
    }

    #[test]
    fn a_prepared_statement_is_known_by_its_name() {
        let (mut ledger, board, rule) = session(Trigger::Statement("insert".to_owned()), Fault::CutReply);
        let prepare = [(b'P', "s1\0INSERT INTO a\0\0\0"), (b'D', "Ss1\0"), (b'S', "")];
        ledger.send(&board, &prepare);
        assert_eq!(ledger.replies(b"1tnZ"), "pppp");
        // Two executions in a pipeline, and something else between them.
        let execute = [(b'B', "\0s1\0\0\0\0\0\0\0"), (b'E', "\0\0\0\0\0"), (b'S', "")];
        ledger.send(&board, &execute);
        ledger.send(&board, &[(b'Q', "SELECT 1\0")]);
        ledger.send(&board, &execute);
        assert_eq!(rule.seen(), 2);
        assert_eq!(ledger.replies(b"2CZTDCZ2CZ"), "kklppppkkl");
        // A name that was given away means something else.
        ledger.send(&board, &[(b'C', "Ss1\0"), (b'S', "")]);
        ledger.send(&board, &[(b'P', "s1\0SELECT 1\0\0\0"), (b'S', "")]);
        ledger.send(&board, &execute);
        assert_eq!(rule.seen(), 2);
    }

    #[test]
    fn a_message_that_must_not_pass_is_stopped_before_the_server_sees_it() {
        let (mut ledger, board, rule) = session(Trigger::Commit, Fault::CutBefore);
        assert!(!ledger.send(&board, &[(b'Q', "BEGIN\0")]));
        assert!(ledger.send(&board, &[(b'Q', "COMMIT\0")]));
        // The counting of what was done is left to who does it.
        assert_eq!((rule.seen(), rule.fired()), (1, 0));
    }

    #[test]
    fn a_request_is_a_query_or_the_end_of_a_batch() {
        let (mut ledger, board, rule) = session(Trigger::Request, Fault::StallReply);
        ledger.send(&board, &[(b'P', "\0SELECT 1\0\0\0"), (b'B', "\0\0\0\0\0\0\0\0"), (b'E', "\0\0\0\0\0")]);
        assert_eq!(rule.seen(), 0);
        ledger.send(&board, &[(b'S', ""), (b'Q', "SELECT 1\0")]);
        assert_eq!(rule.seen(), 2);
    }

    #[test]
    fn copied_data_has_one_answer_for_two_syncs() {
        let (mut ledger, board, _) = session(Trigger::Statement("copy".to_owned()), Fault::CutReply);
        ledger.send(&board, &[(b'P', "s\0COPY a FROM STDIN\0\0\0"), (b'S', "")]);
        assert_eq!(ledger.replies(b"1Z"), "pp");
        ledger.send(&board, &[(b'B', "\0s\0\0\0\0\0\0\0"), (b'E', "\0\0\0\0\0"), (b'S', "")]);
        // The client waits for the word to begin.
        assert_eq!(ledger.replies(b"2G"), "kr");
        ledger.send(&board, &[(b'd', "data"), (b'c', ""), (b'S', ""), (b'Q', "SELECT 1\0")]);
        assert_eq!(ledger.replies(b"CZTDCZ"), "klpppp");
    }

    #[test]
    fn a_simple_copy_has_the_answer_of_its_query() {
        let (mut ledger, board, _) = session(Trigger::Commit, Fault::CutReply);
        ledger.send(&board, &[(b'Q', "COPY a FROM STDIN\0"), (b'd', "data"), (b'c', ""), (b'Q', "COMMIT\0")]);
        assert_eq!(ledger.replies(b"GCZCZ"), "pppkl");
    }

    #[test]
    fn a_session_that_is_taken_still_proves_who_it_is() {
        let taken = Taken { rule: 0, fault: Fault::StallReply };
        let mut ledger = PostgresLedger::new(Some(taken));
        assert_eq!(ledger.replies(b"RRRSSKZ"), "rrrkkkl");
    }
}
