//! Why a message is not running, and when it is expected to.

use redrive_core::message::{Lane, Message, MessageId, State};
use redrive_core::policy::{BreakerState, RetryLane};
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{Filter, ListRequest, QueueNotFound};

use crate::broker::Broker;
use crate::error::BrokerError;

/// How many messages of the same key are looked at, at most, to say how many are in front.
const LOOK_AT_MAX: u64 = 10_000;

/// One thing that keeps a message from running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// A consumer has it; it is overdue from then on.
    Leased {
        /// When its lease ends.
        until: Timestamp,
    },
    /// It is dead until somebody redrives it.
    Dead,
    /// It succeeded.
    Done,
    /// Its time has not come.
    NotDue {
        /// When it comes.
        until: Timestamp,
    },
    /// The queue is paused.
    QueuePaused {
        /// When the pause ends by itself.
        until: Option<Timestamp>,
    },
    /// Its fairness key is paused.
    KeyPaused {
        /// When the pause ends by itself.
        until: Option<Timestamp>,
    },
    /// The breaker of the queue lets nothing through, or one probe at a time.
    Breaker {
        /// Open or half-open.
        state: BreakerState,
        /// When the next probe may go out.
        until: Option<Timestamp>,
    },
    /// It is a retry, and as many retries are in flight as may be.
    RetryCap {
        /// How many may be.
        max: u64,
    },
    /// It is a retry, and the queue hands retries only to consumers that ask for them.
    SeparateLane,
    /// Others are in front of it.
    Behind {
        /// How many of its own key and lane.
        messages: u64,
        /// Whether there may be more than were counted.
        at_least: bool,
    },
}

/// Why a message is not running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// The state of the message.
    pub state: State,
    /// What keeps it; nothing where the next consumer that asks gets it.
    pub obstacles: Vec<Obstacle>,
    /// When it can run at the earliest, where that is known.
    pub earliest: Option<Timestamp>,
}

impl Broker {
    /// Why a message is not running, and when it is expected to.
    pub async fn why(&self, queue: &QueueName, id: MessageId) -> Result<Why, BrokerError> {
        let message = self.get(queue, id).await?;
        let now = self.now();
        let state = message.state(now);
        let mut obstacles = Vec::new();
        match state {
            State::Leased => {
                let until = message.lease().map_or(now, |lease| lease.deadline);
                obstacles.push(Obstacle::Leased { until });
            }
            State::Dead => obstacles.push(Obstacle::Dead),
            State::Done => obstacles.push(Obstacle::Done),
            State::Delayed | State::Ready => self.obstacles(&message, now, &mut obstacles).await?,
        }
        let earliest = earliest(&obstacles, state, now);
        Ok(Why { state, obstacles, earliest })
    }

    async fn obstacles(
        &self,
        message: &Message,
        now: Timestamp,
        obstacles: &mut Vec<Obstacle>,
    ) -> Result<(), BrokerError> {
        let name = &message.queue;
        let queue = self.store.get_queue(name).await?.ok_or_else(|| QueueNotFound(name.clone()))?;
        if message.progress.visible_at > now {
            obstacles.push(Obstacle::NotDue { until: message.progress.visible_at });
        }
        if let Some(pause) = queue.pauses.queue.filter(|pause| pause.holds(now)) {
            obstacles.push(Obstacle::QueuePaused { until: pause.end() });
        }
        let key = queue.pauses.keys.get(&message.spec.fairness_key);
        if let Some(pause) = key.filter(|pause| pause.holds(now)) {
            obstacles.push(Obstacle::KeyPaused { until: pause.end() });
        }
        if let Some(breaker) = self.breaker(name).await?.filter(|view| view.state != BreakerState::Closed) {
            obstacles.push(Obstacle::Breaker { state: breaker.state, until: breaker.open_until });
        }
        let settings = self.live(name).await?.settings();
        if message.progress.lane() == Lane::Retry {
            if settings.retry_lane == RetryLane::Separate {
                obstacles.push(Obstacle::SeparateLane);
            }
            if let Some(max) = settings.max_retries_in_flight.map(|max| u64::from(max.get()))
                && self.stats(name).await?.retries_in_flight >= max
            {
                obstacles.push(Obstacle::RetryCap { max });
            }
        }
        let (messages, at_least) = self.in_front_of(message).await?;
        if messages > 0 {
            obstacles.push(Obstacle::Behind { messages, at_least });
        }
        Ok(())
    }

    /// How many messages of the same key and lane are served before this one, and whether there may be more.
    async fn in_front_of(&self, message: &Message) -> Result<(u64, bool), BrokerError> {
        let place = |message: &Message| {
            let progress = &message.progress;
            (std::cmp::Reverse(progress.priority), progress.visible_at, progress.sequence)
        };
        let filter = Filter {
            states: vec![State::Ready, State::Delayed],
            keys: vec![message.spec.fairness_key.clone()],
            ..Filter::default()
        };
        let mut request = ListRequest::new(message.queue.clone(), filter);
        let (mut front, mut seen) = (0, 0);
        loop {
            let page = self.store.list(self.at(), request.clone()).await?;
            seen += page.messages.len() as u64;
            let before = |other: &&Message| {
                other.progress.lane() == message.progress.lane() && place(other) < place(message)
            };
            front += page.messages.iter().filter(before).count() as u64;
            match page.next {
                None => return Ok((front, false)),
                Some(_) if seen >= LOOK_AT_MAX => return Ok((front, true)),
                Some(next) => request.after = Some(next),
            }
        }
    }
}

/// When the last obstacle that ends by itself is gone; nothing where one does not.
fn earliest(obstacles: &[Obstacle], state: State, now: Timestamp) -> Option<Timestamp> {
    if !matches!(state, State::Delayed | State::Ready) {
        return None;
    }
    let mut earliest = now;
    for obstacle in obstacles {
        let until = match obstacle {
            Obstacle::NotDue { until } => Some(*until),
            Obstacle::QueuePaused { until }
            | Obstacle::KeyPaused { until }
            | Obstacle::Breaker { until, .. } => *until,
            Obstacle::Leased { .. }
            | Obstacle::Dead
            | Obstacle::Done
            | Obstacle::RetryCap { .. }
            | Obstacle::SeparateLane
            | Obstacle::Behind { .. } => None,
        };
        earliest = earliest.max(until?);
    }
    Some(earliest)
}
