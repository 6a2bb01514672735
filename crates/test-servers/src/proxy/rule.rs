//! What a rule waits for, and what it does.

/// What a rule waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A client that has said who it is. Its answer ends when the server takes requests. One of Redis need not say
    /// anything, and its answer is the first.
    Connect,
    /// A statement `COMMIT` or `END`. What commits by itself has a text to wait for.
    Commit,
    /// A statement with these words in it, in capitals or not: also a prepared one, whenever it is executed. For Redis, a
    /// command with its arguments, and a space between any two of them.
    Statement(String),
    /// Any request: a simple query, or the end of a batch in the extended protocol, or a command of Redis, also those by
    /// which a client introduces itself.
    Request,
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Cuts the connection instead of passing the message on: the server never sees it.
    CutBefore,
    /// Passes the message on, waits for the whole answer, and cuts the connection instead of passing it back: the
    /// server has done it, and the client does not know.
    CutReply,
    /// Passes the message on, and keeps the answer until the rule is lifted or the client has gone.
    StallReply,
}

/// What happens when. It happens once, unless told otherwise.
#[derive(Clone, Debug)]
pub struct Rule {
    pub(super) trigger: Trigger,
    pub(super) fault: Fault,
    /// How many are let go first.
    pub(super) after: u64,
    /// How many are taken then.
    pub(super) times: u64,
}

impl Rule {
    /// A rule for the next time.
    pub fn new(trigger: Trigger, fault: Fault) -> Self {
        Self { trigger, fault, after: 0, times: 1 }
    }

    /// Lets the first few go.
    #[must_use]
    pub fn after(self, after: u64) -> Self {
        Self { after, ..self }
    }

    /// Does it so many times.
    #[must_use]
    pub fn times(self, times: u64) -> Self {
        Self { times, ..self }
    }

    /// Does it every time, until it is lifted.
    #[must_use]
    pub fn always(self) -> Self {
        self.times(u64::MAX)
    }
}

/// What happens on a connection, as rules see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occasion<'a> {
    Connect,
    Statement(&'a str),
    Request,
}

impl Trigger {
    pub(super) fn is(&self, occasion: Occasion<'_>) -> bool {
        match (self, occasion) {
            (Self::Connect, Occasion::Connect) | (Self::Request, Occasion::Request) => true,
            (Self::Commit, Occasion::Statement(text)) => commits(text),
            (Self::Statement(words), Occasion::Statement(text)) => {
                text.to_lowercase().contains(&words.to_lowercase())
            }
            _ => false,
        }
    }
}

/// A text may have several statements. A semicolon in quotes only makes for one that nobody takes for a commit.
fn commits(text: &str) -> bool {
    text.split(';').any(|statement| {
        let word = statement.split_whitespace().next().unwrap_or_default();
        word.eq_ignore_ascii_case("commit") || word.eq_ignore_ascii_case("end")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_a_statement_of_its_own() {
        for text in ["COMMIT", " commit ;", "INSERT INTO a VALUES (1); Commit", "END", "commit and chain"] {
            assert!(Trigger::Commit.is(Occasion::Statement(text)), "{text}");
        }
        for text in ["BEGIN", "SELECT 'commit'", "COMMITTED", "", "SHOW synchronous_commit"] {
            assert!(!Trigger::Commit.is(Occasion::Statement(text)), "{text}");
        }
    }

    #[test]
    fn words_are_found_in_any_case_and_only_in_statements() {
        let trigger = Trigger::Statement("Update messages".to_owned());
        assert!(trigger.is(Occasion::Statement("WITH a AS (UPDATE messages SET b = 1) SELECT 1")));
        assert!(!trigger.is(Occasion::Statement("UPDATE queues")));
        assert!(!trigger.is(Occasion::Request) && !trigger.is(Occasion::Connect));
    }
}
