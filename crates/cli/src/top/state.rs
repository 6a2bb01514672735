//! What is known of a server, and what the keys do with it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use redrive_core::time::{Millis, Timestamp};
use redrive_wire::QueueStats;

use super::look::Snapshot;

/// How the server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Link {
    /// Nothing has been heard yet.
    Connecting,
    Live,
    /// Nothing is heard since then, and why.
    Lost {
        since: Timestamp,
        why: String,
    },
}

/// A line of the table of queues.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QueueLine {
    pub(super) stats: QueueStats,
    pub(super) paused: bool,
    /// Messages a second that came in, and that were done, since the look before; `None` at the first.
    pub(super) rates: Option<(f64, f64)>,
}

/// A line of the table of leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeaseLine {
    pub(super) message: String,
    pub(super) consumer: String,
    pub(super) attempt: u32,
    pub(super) deadline: Timestamp,
}

/// What a key asks of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    GoOn,
    Quit,
}

/// What is known, and what is shown of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    pub(super) url: String,
    pub(super) link: Link,
    pub(super) queues: Vec<QueueLine>,
    pub(super) more: bool,
    pub(super) leases: Vec<LeaseLine>,
    /// The queue that is chosen, and the one whose leases are here.
    chosen: Option<String>,
    pub(super) leases_of: Option<String>,
    /// How far the server's clock is ahead of this machine's, in milliseconds.
    pub(super) offset: Option<i64>,
    /// The picture stands still.
    pub(super) paused: bool,
    pub(super) help: bool,
}

impl State {
    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.trim_end_matches('/').to_owned(),
            link: Link::Connecting,
            queues: Vec::new(),
            more: false,
            leases: Vec::new(),
            chosen: None,
            leases_of: None,
            offset: None,
            paused: false,
            help: false,
        }
    }

    /// The queue whose leases are wanted.
    pub(super) fn chosen(&self) -> Option<String> {
        self.chosen.clone()
    }

    /// The line of the chosen queue.
    pub(super) fn at(&self) -> Option<usize> {
        let chosen = self.chosen.as_deref()?;
        self.queues.iter().position(|line| line.stats.queue == chosen)
    }

    /// What time it is for the server, where `now` is the time of this machine.
    pub(super) fn server_time(&self, now: Timestamp) -> Timestamp {
        match self.offset {
            Some(ahead) if ahead >= 0 => now.plus(Millis::new(ahead.unsigned_abs())),
            Some(behind) => now.minus(Millis::new(behind.unsigned_abs())),
            None => now,
        }
    }

    /// The server was looked at.
    pub(super) fn saw(&mut self, snapshot: Snapshot) {
        self.link = Link::Live;
        if self.paused {
            return;
        }
        self.offset = snapshot.queues.first().map(|queue| apart(queue.stats.at.0, snapshot.at.as_millis()));
        let before = std::mem::take(&mut self.queues);
        let line = |queue: super::look::QueueLook| {
            let known = before.iter().find(|line| line.stats.queue == queue.stats.queue);
            let rates = known.and_then(|line| rates(&line.stats, &queue.stats).or(line.rates));
            QueueLine { stats: queue.stats, paused: queue.paused, rates }
        };
        self.queues = snapshot.queues.into_iter().map(line).collect();
        self.more = snapshot.more;
        if self.at().is_none() {
            self.chosen.clone_from(&snapshot.chosen);
        }
        self.leases_of = snapshot.chosen;
        let lease = |message: redrive_wire::MessageView| {
            let lease = message.lease?;
            Some(LeaseLine {
                message: message.id,
                consumer: lease.consumer,
                attempt: message.attempts,
                deadline: Timestamp::from_millis(lease.deadline.0),
            })
        };
        self.leases = snapshot.leases.into_iter().filter_map(lease).collect();
        self.leases.sort_by(|one, other| (one.deadline, &one.message).cmp(&(other.deadline, &other.message)));
    }

    /// The server was not reached. What was known stays.
    pub(super) fn lost(&mut self, why: String, now: Timestamp) {
        let since = match &self.link {
            Link::Lost { since, .. } => *since,
            Link::Connecting | Link::Live => now,
        };
        self.link = Link::Lost { since, why };
    }

    pub(super) fn pressed(&mut self, key: KeyEvent) -> Act {
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Act::Quit,
            KeyCode::Char('q') => return Act::Quit,
            KeyCode::Esc if !self.help => return Act::Quit,
            KeyCode::Esc => self.help = false,
            KeyCode::Char('?' | 'h') => self.help = !self.help,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Down | KeyCode::Tab | KeyCode::Char('j') => self.choose(1),
            KeyCode::Up | KeyCode::BackTab | KeyCode::Char('k') => {
                self.choose(self.queues.len().saturating_sub(1));
            }
            _ => {}
        }
        Act::GoOn
    }

    /// Chooses the queue so many lines further, round and round.
    fn choose(&mut self, further: usize) {
        let Some(count) = std::num::NonZeroUsize::new(self.queues.len()) else { return };
        let at = self.at().map_or(0, |at| (at + further) % count);
        self.chosen = self.queues.get(at).map(|line| line.stats.queue.clone());
    }

    /// What a person should look at, in words.
    pub(super) fn attention(&self) -> Vec<String> {
        let of = |line: &QueueLine| {
            let states = &line.stats.states;
            let counted = |n: u64, what: &str| (n > 0).then(|| format!("{n} {what}"));
            let paused = line.paused.then(|| "paused".to_owned());
            let said = [counted(line.stats.overdue, "overdue"), counted(states.dead, "dead"), paused];
            let said: Vec<String> = said.into_iter().flatten().collect();
            (!said.is_empty()).then(|| format!("{}: {}", line.stats.queue, said.join(", ")))
        };
        self.queues.iter().filter_map(of).collect()
    }
}

/// How far one time is ahead of another.
fn apart(one: u64, other: u64) -> i64 {
    let far = i64::try_from(one.abs_diff(other)).unwrap_or(i64::MAX);
    if one >= other { far } else { -far }
}

/// What came in and what was done a second between two looks; `None` where no time has passed between them.
fn rates(before: &QueueStats, now: &QueueStats) -> Option<(f64, f64)> {
    let ms = now.at.0.checked_sub(before.at.0).filter(|ms| *ms > 0)?;
    let total = |stats: &QueueStats, name: &str| stats.totals.get(name).copied().unwrap_or_default();
    let rate = |names: &[&str]| {
        let more: u64 = names.iter().map(|name| total(now, name).saturating_sub(total(before, name))).sum();
        #[expect(clippy::cast_precision_loss, reason = "what happens in a second is far below 2^53")]
        let rate = more as f64 * 1_000.0 / ms as f64;
        rate
    };
    Some((rate(&["enqueue", "moved_in"]), rate(&["ack"])))
}

#[cfg(test)]
pub(super) mod tests;
