//! Queues as the rows of a table: in an order, a page at a time.

use std::cmp::{Ordering, Reverse};
use std::fmt;
use std::str::FromStr;
use std::sync::PoisonError;

use redrive_core::access::{On, Use};
use redrive_core::invalid::Invalid;
use redrive_core::message::State;
use redrive_core::policy::BreakerState;
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{Limit, QueueError, QueueStats};

use crate::access::Caller;
use crate::broker::Broker;
use crate::error::BrokerError;
use crate::history::{History, Rates, Times};

/// By what queues are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StatsOrder {
    /// Their name.
    #[default]
    Name,
    /// How many messages are ready.
    Ready,
    /// How many are leased.
    Leased,
    /// How many are delayed.
    Delayed,
    /// How many are dead.
    Dead,
    /// How long the oldest ready message has been ready.
    Oldest,
    /// How many attempts failed in the last minute.
    Failed,
}

impl StatsOrder {
    /// Every one of them.
    pub const ALL: [Self; 7] =
        [Self::Name, Self::Ready, Self::Leased, Self::Delayed, Self::Dead, Self::Oldest, Self::Failed];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Ready => "ready",
            Self::Leased => "leased",
            Self::Delayed => "delayed",
            Self::Dead => "dead",
            Self::Oldest => "oldest",
            Self::Failed => "failed",
        }
    }

    /// What of the last sample is compared; `None` where there is none.
    fn of(self, history: &History) -> Option<u64> {
        let sample = history.last()?;
        Some(match self {
            Self::Name => 0,
            Self::Ready => sample.states.of(State::Ready),
            Self::Leased => sample.states.of(State::Leased),
            Self::Delayed => sample.states.of(State::Delayed),
            Self::Dead => sample.states.of(State::Dead),
            // An age would be another one by the next page.
            Self::Oldest => history.oldest_ready().map_or(0, |since| u64::MAX - since.as_millis()),
            Self::Failed => history.failed_lately(),
        })
    }
}

/// Where a page of rows ended: what was compared of the last queue, where it was, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatsCursor {
    rank: Option<u64>,
    queue: QueueName,
}

impl fmt::Display for StatsCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rank.map_or(Ok(()), |rank| write!(f, "{rank}"))?;
        write!(f, ":{}", self.queue)
    }
}

impl FromStr for StatsCursor {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let wrong = || Invalid::unusable("cursor", "must be the next_cursor of a page");
        let (rank, queue) = text.split_once(':').ok_or_else(wrong)?;
        let rank = if rank.is_empty() { None } else { Some(rank.parse().map_err(|_| wrong())?) };
        Ok(Self { rank, queue: QueueName::new(queue)? })
    }
}

/// Which rows somebody wants to see.
#[derive(Debug, Clone)]
pub struct RowsWanted {
    /// Of queues with this in their name, in small letters or capitals; the empty part is in every name.
    pub name: String,
    /// By what they are ordered.
    pub order: StatsOrder,
    /// The other way around.
    pub descending: bool,
    /// At most so many.
    pub limit: Limit,
    /// Where the last page ended.
    pub after: Option<StatsCursor>,
}

/// A queue, as a row.
#[derive(Debug, Clone)]
pub struct QueueRow {
    /// The queue at this moment.
    pub stats: QueueStats,
    /// How fast it went in the last minute of samples.
    pub rates: Rates,
    /// How long messages waited lately.
    pub wait: Option<Times>,
    /// How long messages ran lately.
    pub run: Option<Times>,
    /// How its breaker stands.
    pub breaker: Option<BreakerState>,
    /// How full it was lately, the oldest first.
    pub depths: Vec<u64>,
}

/// A page of rows.
#[derive(Debug, Clone)]
pub struct Rows {
    /// When.
    pub at: Timestamp,
    /// The queues.
    pub rows: Vec<QueueRow>,
    /// How many match in all.
    pub total: usize,
    /// How many of them were compared.
    pub ranked: usize,
    /// Where the next page begins.
    pub next: Option<StatsCursor>,
}

impl Caller {
    /// A page of the queues that the caller may see, with their numbers.
    pub async fn rows(&self, wanted: RowsWanted) -> Result<Rows, BrokerError> {
        let broker = self.may(Use::Look, On::Some)?;
        let mut found = self.matching(broker, &wanted).await?;
        let (total, ranked) = (found.len(), found.iter().filter(|one| one.rank.is_some()).count());
        let by_name = wanted.order == StatsOrder::Name;
        let order = |one: &StatsCursor, other: &StatsCursor| compare(one, other, &wanted);
        found.sort_unstable_by(order);
        if let Some(after) = &wanted.after {
            found.retain(|one| order(one, after) == Ordering::Greater);
        }
        let next = found.get(wanted.limit.get() - 1).filter(|_| found.len() > wanted.limit.get()).cloned();
        let mut rows = Vec::new();
        for one in found.iter().take(wanted.limit.get()) {
            // One that was deleted since is no row.
            rows.extend(broker.row(&one.queue).await?);
        }
        let ranked = if by_name { total } else { ranked };
        Ok(Rows { at: broker.now(), rows, total, ranked, next })
    }

    /// The queues that match, with what is compared of each.
    async fn matching(&self, broker: &Broker, wanted: &RowsWanted) -> Result<Vec<StatsCursor>, BrokerError> {
        let part = wanted.name.to_ascii_lowercase();
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = broker.list_queues(after.as_ref(), Limit::MAX).await?;
            let last = page.len() < Limit::MAX.get();
            after = page.last().map(|queue| queue.name.clone());
            for queue in page {
                let matches = queue.name.as_str().to_ascii_lowercase().contains(&part);
                if matches && self.sees(Use::Look, &queue.name) {
                    let rank = broker.rank(&queue.name, wanted.order);
                    found.push(StatsCursor { rank, queue: queue.name });
                }
            }
            if last {
                return Ok(found);
            }
        }
    }
}

/// Which of two comes first. What was never sampled comes last, and what is alike comes by name.
fn compare(one: &StatsCursor, other: &StatsCursor, wanted: &RowsWanted) -> Ordering {
    let names = one.queue.cmp(&other.queue);
    match (wanted.order, wanted.descending) {
        (StatsOrder::Name, false) => names,
        (StatsOrder::Name, true) => names.reverse(),
        (_, descending) => {
            let ranks = match (one.rank, other.rank) {
                (Some(one), Some(other)) if descending => Reverse(one).cmp(&Reverse(other)),
                (Some(one), Some(other)) => one.cmp(&other),
                (one, other) => one.is_none().cmp(&other.is_none()),
            };
            ranks.then(names)
        }
    }
}

impl Broker {
    fn rank(&self, queue: &QueueName, order: StatsOrder) -> Option<u64> {
        if order == StatsOrder::Name {
            return None;
        }
        let live = self.queues.known(queue)?;
        let history = live.history.lock().unwrap_or_else(PoisonError::into_inner);
        order.of(&history)
    }

    /// The row of a queue; `None` where it is gone.
    async fn row(&self, queue: &QueueName) -> Result<Option<QueueRow>, BrokerError> {
        let stats = match self.store.stats(self.at(), queue).await {
            Ok(stats) => stats,
            Err(QueueError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let Some(live) = self.queues.known(queue) else {
            let (rates, depths) = (Rates::default(), Vec::new());
            return Ok(Some(QueueRow { stats, rates, wait: None, run: None, breaker: None, depths }));
        };
        let breaker = live.rules().breaker.as_ref().map(|breaker| breaker.state(stats.at));
        let history = live.history.lock().unwrap_or_else(PoisonError::into_inner);
        let ((wait, run), depths) = (history.times(stats.at), history.depths(stats.at));
        let rates = history.rates();
        drop(history);
        Ok(Some(QueueRow { stats, rates, wait, run, breaker, depths }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(rank: Option<u64>, name: &str) -> StatsCursor {
        StatsCursor { rank, queue: QueueName::new(name).unwrap() }
    }

    fn ordered(order: StatsOrder, descending: bool) -> Vec<String> {
        let wanted = RowsWanted { name: String::new(), order, descending, limit: Limit::MAX, after: None };
        let mut all = [cursor(Some(2), "b"), cursor(None, "a"), cursor(Some(9), "c"), cursor(Some(2), "a2")];
        all.sort_by(|one, other| compare(one, other, &wanted));
        all.iter().map(|one| one.queue.as_str().to_owned()).collect()
    }

    #[test]
    fn what_was_never_sampled_comes_last_and_what_is_alike_by_name() {
        assert_eq!(ordered(StatsOrder::Ready, true), ["c", "a2", "b", "a"]);
        assert_eq!(ordered(StatsOrder::Ready, false), ["a2", "b", "c", "a"]);
        assert_eq!(ordered(StatsOrder::Name, false), ["a", "a2", "b", "c"]);
        assert_eq!(ordered(StatsOrder::Name, true), ["c", "b", "a2", "a"]);
    }

    #[test]
    fn a_cursor_is_read_as_it_is_written_and_nothing_else_is() {
        for one in [cursor(None, "a.b"), cursor(Some(0), "x"), cursor(Some(u64::MAX), "x")] {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
        for text in ["", "jobs", "x:jobs", "1:", "-1:jobs", "1:jo bs", "99999999999999999999999:a"] {
            assert!(text.parse::<StatsCursor>().is_err(), "{text}");
        }
    }
}
