//! What the proxy knows of Redis: every request has one answer, in the order of the requests.
//!
//! What is pushed by RESP3 answers nobody. A request to subscribe has as many answers as it has channels, or, by RESP3, none;
//! so none is awaited. By RESP2 a message of a channel may then be taken for the answer of what is asked meanwhile.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;

use super::connection;
use super::ledger::{Ledger, Reply};
use super::rule::{Fault, Occasion};
use super::switchboard::{Switchboard, Taken};
use crate::redis::resp::Frame;

/// Serves a client until one side ends, or a rule ends both.
pub(super) fn serve(client: &TcpStream, switchboard: &Switchboard) -> io::Result<()> {
    connection::session::<RedisLedger>(&[], BufReader::new(client), client, switchboard)
}

/// The ledger of one connection.
#[derive(Debug)]
struct RedisLedger {
    /// Who has taken the first answer. The server says nothing before it is asked.
    first: Option<Taken>,
    /// The answers that are awaited, and who has an eye on each.
    answers: VecDeque<Option<Taken>>,
}

impl Ledger for RedisLedger {
    type Message = Frame;

    fn new(taken: Option<Taken>) -> Self {
        Self { first: taken, answers: VecDeque::new() }
    }

    fn read(from: &mut impl BufRead) -> io::Result<Option<Frame>> {
        Frame::read(from)
    }

    fn write(frame: &Frame, to: &mut impl Write) -> io::Result<()> {
        frame.write(to)
    }

    fn sent(&mut self, request: &Frame, rules: &Switchboard) -> Option<Taken> {
        let mut taken = self.first.take();
        let text = request.text(" ");
        for occasion in [Occasion::Statement(&text), Occasion::Request] {
            let asked = rules.ask(occasion);
            if asked.is_some_and(|asked| asked.fault == Fault::CutBefore) {
                return asked;
            }
            taken = taken.or(asked);
        }
        if !subscribes(request) {
            self.answers.push_back(taken);
        }
        None
    }

    fn received(&mut self, reply: &Frame) -> Reply {
        let pushed = reply.kind() == b'>';
        let taken = if pushed { None } else { self.answers.pop_front().flatten() };
        taken.map_or(Reply::Pass, Reply::Last)
    }
}

/// `SUBSCRIBE` and its kind, and what takes it back.
fn subscribes(request: &Frame) -> bool {
    let name = request.words().next().unwrap_or_default().to_ascii_uppercase();
    name.ends_with(b"SUBSCRIBE")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::proxy::{Injected, Rule, Trigger};

    fn session(trigger: Trigger, fault: Fault) -> (RedisLedger, Arc<Switchboard>, Injected) {
        let board = Arc::new(Switchboard::to(([127, 0, 0, 1], 1).into()));
        let rule = board.inject(Rule::new(trigger, fault));
        (RedisLedger::new(None), board, rule)
    }

    impl RedisLedger {
        fn send(&mut self, board: &Switchboard, words: &[&str]) -> bool {
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            self.sent(&Frame::request(&words), board).is_some()
        }

        /// One letter a reply: passed or last.
        fn replies(&mut self, replies: &[&str]) -> String {
            let letter = |reply: &&str| {
                let frame = Frame::read(&mut reply.as_bytes()).unwrap().unwrap();
                if self.received(&frame) == Reply::Pass { 'p' } else { 'l' }
            };
            replies.iter().map(letter).collect()
        }
    }

    #[test]
    fn only_the_answer_of_that_request_is_taken() {
        let (mut ledger, board, rule) = session(Trigger::Statement("set b".to_owned()), Fault::CutReply);
        for words in [["SET", "a", "1"], ["SET", "b", "2"], ["SET", "c", "3"]] {
            assert!(!ledger.send(&board, &words));
        }
        assert_eq!(rule.seen(), 1);
        assert_eq!(ledger.replies(&["+OK\r\n", "-ERR\r\n", "+OK\r\n"]), "plp");
    }

    #[test]
    fn a_request_that_must_not_pass_is_stopped_before_the_server_sees_it() {
        let (mut ledger, board, rule) = session(Trigger::Request, Fault::CutBefore);
        assert!(ledger.send(&board, &["PING"]));
        assert_eq!((rule.seen(), rule.fired()), (1, 0));
    }

    #[test]
    fn what_is_pushed_or_published_is_nobodys_answer() {
        let (mut ledger, board, _) = session(Trigger::Statement("get".to_owned()), Fault::StallReply);
        ledger.send(&board, &["subscribe", "a", "b"]);
        assert_eq!(ledger.replies(&["*1\r\n+a\r\n", "*1\r\n+b\r\n"]), "pp");
        ledger.send(&board, &["GET", "a"]);
        assert_eq!(ledger.replies(&[">1\r\n+message\r\n", "$1\r\na\r\n"]), "pl");
    }

    #[test]
    fn a_connection_that_is_taken_has_its_first_answer_taken() {
        let (_, board, _) = session(Trigger::Connect, Fault::CutReply);
        let mut ledger = RedisLedger::new(board.ask(Occasion::Connect));
        ledger.send(&board, &["HELLO", "3"]);
        ledger.send(&board, &["PING"]);
        assert_eq!(ledger.replies(&["%0\r\n", "+PONG\r\n"]), "lp");
    }
}
