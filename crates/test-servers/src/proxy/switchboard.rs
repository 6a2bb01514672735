//! What all connections of a proxy share: the rules, what became of them, and who is connected.

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::rule::{Fault, Occasion, Rule};

#[derive(Debug)]
pub(super) struct Switchboard {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    server: SocketAddr,
    rules: Vec<Entry>,
    /// Both ends of each connection.
    connections: BTreeMap<u64, [TcpStream; 2]>,
    next_connection: u64,
    over: bool,
}

/// A rule and its counts. Entries stay where they are, so that their place is their name.
#[derive(Debug)]
struct Entry {
    rule: Rule,
    seen: u64,
    taken: u64,
    fired: u64,
    lifted: bool,
}

/// A rule that has taken something and has still to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) rule: usize,
    pub(super) fault: Fault,
}

/// A rule in force. Dropping this changes nothing.
#[derive(Clone, Debug)]
pub struct Injected {
    switchboard: Arc<Switchboard>,
    rule: usize,
}

impl Injected {
    /// How often what the rule waits for has come, whether it was taken or let go.
    pub fn seen(&self) -> u64 {
        self.switchboard.state().rules[self.rule].seen
    }

    /// How often the rule has acted. It is counted before the client can notice, and for a reply that is cut or stalled
    /// not before the server has answered.
    pub fn fired(&self) -> u64 {
        self.switchboard.state().rules[self.rule].fired
    }

    /// Waits until the rule has acted so often; `false` if it takes too long.
    #[must_use]
    pub fn wait_fired(&self, times: u64, patience: Duration) -> bool {
        let state = self.switchboard.wait(Some(patience), |state| state.rules[self.rule].fired >= times);
        state.rules[self.rule].fired >= times
    }

    /// Takes the rule out of force, and lets go what it has stalled.
    pub fn lift(&self) {
        self.switchboard.change(|state| state.rules[self.rule].lifted = true);
    }
}

impl Switchboard {
    pub(super) fn to(server: SocketAddr) -> Self {
        let (rules, connections) = (Vec::new(), BTreeMap::new());
        let state = State { server, rules, connections, next_connection: 0, over: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(super) fn inject(self: &Arc<Self>, rule: Rule) -> Injected {
        let entry = Entry { rule, seen: 0, taken: 0, fired: 0, lifted: false };
        let rule = self.change(|state| {
            state.rules.push(entry);
            state.rules.len() - 1
        });
        Injected { switchboard: Arc::clone(self), rule }
    }

    /// Counts the occasion for every rule that waits for it, and answers the first that takes it.
    pub(super) fn ask(&self, occasion: Occasion<'_>) -> Option<Taken> {
        self.change(|state| {
            let mut taken = None;
            let waiting = |entry: &Entry| !entry.lifted && entry.rule.trigger.is(occasion);
            for (rule, entry) in state.rules.iter_mut().enumerate().filter(|(_, entry)| waiting(entry)) {
                entry.seen += 1;
                if taken.is_none() && entry.seen > entry.rule.after && entry.taken < entry.rule.times {
                    entry.taken += 1;
                    taken = Some(Taken { rule, fault: entry.rule.fault });
                }
            }
            taken
        })
    }

    pub(super) fn fired(&self, taken: Taken) {
        self.change(|state| state.rules[taken.rule].fired += 1);
    }

    /// Waits until a rule is lifted; `false` if the connection ends before.
    pub(super) fn wait_lifted(&self, taken: Taken, connection: u64) -> bool {
        let state = self.wait(None, |state| {
            state.rules[taken.rule].lifted || !state.connections.contains_key(&connection)
        });
        state.connections.contains_key(&connection)
    }

    pub(super) fn server(&self) -> SocketAddr {
        self.state().server
    }

    pub(super) fn lead_to(&self, server: SocketAddr) {
        self.state().server = server;
    }

    pub(super) fn connections(&self) -> usize {
        self.state().connections.len()
    }

    /// Takes note of a connection, so that it can be cut.
    pub(super) fn connected(&self, client: &TcpStream, server: &TcpStream) -> io::Result<u64> {
        let ends = [client.try_clone()?, server.try_clone()?];
        self.change(|state| {
            if state.over {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            let connection = state.next_connection;
            state.next_connection += 1;
            state.connections.insert(connection, ends);
            Ok(connection)
        })
    }

    /// Ends a connection, if nobody has done it yet.
    pub(super) fn cut(&self, connection: u64) {
        self.change(|state| {
            state.connections.remove(&connection).iter().for_each(shut);
        });
    }

    pub(super) fn cut_all(&self) -> usize {
        self.change(|state| {
            let connections = std::mem::take(&mut state.connections);
            connections.values().for_each(shut);
            connections.len()
        })
    }

    pub(super) fn end(&self) {
        self.change(|state| state.over = true);
        self.cut_all();
    }

    pub(super) fn is_over(&self) -> bool {
        self.state().over
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.state());
        self.changed.notify_all();
        result
    }

    fn wait(&self, patience: Option<Duration>, until: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let waiting = |state: &mut State| !until(state);
        match patience {
            None => self.changed.wait_while(self.state(), waiting).unwrap_or_else(PoisonError::into_inner),
            Some(patience) => {
                let waited = self.changed.wait_timeout_while(self.state(), patience, waiting);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }
}

/// One that has been closed already needs no shutting.
fn shut(ends: &[TcpStream; 2]) {
    for end in ends {
        drop(end.shutdown(Shutdown::Both));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::Trigger;

    fn board() -> Arc<Switchboard> {
        Arc::new(Switchboard::to(([127, 0, 0, 1], 1).into()))
    }

    #[test]
    fn some_are_let_go_and_some_are_taken() {
        let board = board();
        let rule = board.inject(Rule::new(Trigger::Request, Fault::CutBefore).after(2).times(2));
        let taken: Vec<bool> = (0..6).map(|_| board.ask(Occasion::Request).is_some()).collect();
        assert_eq!(taken, [false, false, true, true, false, false]);
        assert_eq!((rule.seen(), rule.fired()), (6, 0));
    }

    #[test]
    fn the_oldest_rule_takes_it_and_every_one_counts_it() {
        let board = board();
        let first = board.inject(Rule::new(Trigger::Commit, Fault::CutReply));
        let second = board.inject(Rule::new(Trigger::Commit, Fault::StallReply).always());
        let faults: Vec<_> =
            (0..2).map(|_| board.ask(Occasion::Statement("COMMIT")).map(|taken| taken.fault)).collect();
        assert_eq!(faults, [Some(Fault::CutReply), Some(Fault::StallReply)]);
        assert_eq!((first.seen(), second.seen()), (2, 2));
        second.lift();
        assert_eq!(board.ask(Occasion::Statement("COMMIT")), None);
        assert_eq!(second.seen(), 2);
    }
}
