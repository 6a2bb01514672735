//! Calls of a kind that arrive while one is under way, and go together in the next one.
//!
//! A commit waits for the disk, and a statement or a script costs more than the message in it: sixty-four callers with a message
//! each would pay for sixty-four of them. Whoever comes first goes at once; who comes meanwhile waits for that one, and then
//! all who wait go as one. The work runs in a task of its own, so that a caller who goes away takes nobody along.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use crate::turns::{Place, Turn};

/// Most items that go together.
const ROUND_ITEMS: usize = 256;
/// Most bytes that go together, well below what a batch may weigh.
const ROUND_BYTES: usize = 4 << 20;
/// So many items are worth a call of their own: they do not wait for their turn.
const ROUND_FULL: usize = 32;
/// Longest that a round waits for its turn: whoever has it may be waiting for a server that is away.
const TURN_MAX: Duration = Duration::from_millis(50);
/// Most callers that wait in one line; whoever finds it full goes alone.
const LINE_MAX: usize = 4_096;

/// What a call asks for, and how much that is.
pub(crate) trait Ask: Send + 'static {
    fn items(&self) -> usize;
    fn bytes(&self) -> usize;
}

struct Waiting<T, R> {
    ask: T,
    answer: oneshot::Sender<R>,
}

/// Those who wait for the next round.
struct Line<T, R> {
    waiting: VecDeque<Waiting<T, R>>,
    items: usize,
    /// Told when there is enough for a round.
    full: Arc<Notify>,
}

impl<T, R> Default for Line<T, R> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), items: 0, full: Arc::default() }
    }
}

impl<T: Ask, R> Line<T, R> {
    fn push(&mut self, next: Waiting<T, R>) {
        self.items += next.ask.items();
        self.waiting.push_back(next);
        if self.items >= ROUND_FULL {
            self.full.notify_one();
        }
    }

    fn pop(&mut self) -> Option<Waiting<T, R>> {
        let next = self.waiting.pop_front()?;
        self.items -= next.ask.items();
        Some(next)
    }
}

type Lines<K, T, R> = HashMap<K, Line<T, R>>;

/// The lines of calls of one kind, by what they must have in common. A line is there for as long as somebody works on it.
pub(crate) struct Together<K, T, R> {
    lines: Mutex<Lines<K, T, R>>,
}

impl<K, T, R> Default for Together<K, T, R> {
    fn default() -> Self {
        Self { lines: Mutex::default() }
    }
}

impl<K, T, R> std::fmt::Debug for Together<K, T, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Together").finish_non_exhaustive()
    }
}

/// Why a call was not carried out together with others.
pub(crate) enum Apart<T> {
    /// Too many wait already: here is what was asked, and nothing has happened.
    Full(T),
    /// Whoever worked on it ended without an answer: it may have happened.
    Lost,
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static, T: Ask, R: Send + 'static> Together<K, T, R> {
    fn lines(&self) -> MutexGuard<'_, Lines<K, T, R>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has it carried out, by `work`, together with whoever else waits under the same key. `work` answers each of those it
    /// is given, in their order. Where rounds take turns, whoever comes before the turn of one goes with it.
    pub(crate) async fn call<F: Future<Output = Vec<R>> + Send>(
        self: &Arc<Self>,
        key: K,
        ask: T,
        turn: impl FnOnce() -> Option<Turn>,
        work: impl Fn(Vec<T>) -> F + Send + Sync + 'static,
    ) -> Result<R, Apart<T>> {
        let (answer, answered) = oneshot::channel();
        let first = {
            let mut lines = self.lines();
            let is_new = !lines.contains_key(&key);
            let line = lines.entry(key.clone()).or_default();
            if line.waiting.len() >= LINE_MAX {
                return Err(Apart::Full(ask));
            }
            line.push(Waiting { ask, answer });
            is_new.then(|| Arc::clone(&line.full))
        };
        if let Some(full) = first {
            let mut leading = Leading { together: Arc::clone(self), key, is_over: false };
            let turn = turn();
            tokio::spawn(async move {
                loop {
                    let place = match &turn {
                        Some(turn) => leading.their_turn(turn, &full).await,
                        None => None,
                    };
                    let Some((asks, answers)) = leading.next() else { break };
                    let outcomes = work(asks).await;
                    drop(place);
                    for (answer, outcome) in answers.into_iter().zip(outcomes) {
                        // Whoever went away does not want it.
                        drop(answer.send(outcome));
                    }
                    // Who has just been answered may have the next thing to ask, and goes with the next round if it may ask first.
                    tokio::task::yield_now().await;
                }
            });
        }
        answered.await.map_err(|_| Apart::Lost)
    }
}

/// Who works on a line. However that ends, nobody waits in it for ever.
struct Leading<K: Eq + Hash, T, R> {
    together: Arc<Together<K, T, R>>,
    key: K,
    /// Whether the line has ended. One of the same key may have begun since, and somebody else works on that.
    is_over: bool,
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static, T: Ask, R: Send + 'static> Leading<K, T, R> {
    /// Until it is their turn, of which the place is answered, or there are enough for a round, or they have waited long enough.
    async fn their_turn<'t>(&self, turn: &'t Turn, full: &Notify) -> Option<Place<'t>> {
        let turn_or_enough = async {
            loop {
                if let Some(place) = turn.try_take() {
                    return Some(place);
                }
                if self.is_full() {
                    return None;
                }
                tokio::select! {
                    biased;
                    place = turn.take() => return Some(place),
                    // It may have been told of those who went with the last round.
                    () = full.notified() => {}
                }
            }
        };
        timeout(TURN_MAX, turn_or_enough).await.ok().flatten()
    }

    fn is_full(&self) -> bool {
        self.together.lines().get(&self.key).is_some_and(|line| line.items >= ROUND_FULL)
    }
}

type Round<T, R> = (Vec<T>, Vec<oneshot::Sender<R>>);

impl<K: Clone + Eq + Hash + Send + Sync + 'static, T: Ask, R: Send + 'static> Leading<K, T, R> {
    /// Those who go next; the line ends where there are none.
    fn next(&mut self) -> Option<Round<T, R>> {
        let mut lines = self.together.lines();
        let line = lines.get_mut(&self.key)?;
        let (mut asks, mut answers) = (Vec::new(), Vec::new());
        let (mut items, mut bytes) = (0, 0);
        while let Some(next) = line.waiting.front() {
            if next.answer.is_closed() {
                line.pop();
                continue;
            }
            (items, bytes) = (items + next.ask.items(), bytes + next.ask.bytes());
            if !asks.is_empty() && (items > ROUND_ITEMS || bytes > ROUND_BYTES) {
                break;
            }
            let Some(next) = line.pop() else { break };
            asks.push(next.ask);
            answers.push(next.answer);
        }
        if asks.is_empty() {
            lines.remove(&self.key);
            self.is_over = true;
            return None;
        }
        Some((asks, answers))
    }
}

impl<K: Eq + Hash, T, R> Drop for Leading<K, T, R> {
    fn drop(&mut self) {
        // Only where the work panicked or its runtime ended.
        if !self.is_over {
            let mut lines = self.together.lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use redrive_core::queue::QueueName;
    use tokio::sync::Semaphore;

    use crate::turns::Turns;

    use super::*;

    impl Ask for usize {
        fn items(&self) -> usize {
            1
        }

        fn bytes(&self) -> usize {
            0
        }
    }

    type Numbers = Together<&'static str, usize, usize>;

    /// Doubles each number once it may, and counts the rounds.
    struct Doubler {
        together: Arc<Numbers>,
        turns: Option<Arc<Turns>>,
        may: Arc<Semaphore>,
        rounds: Arc<AtomicUsize>,
    }

    impl Doubler {
        fn new() -> Self {
            Self {
                together: Arc::default(),
                turns: None,
                may: Arc::new(Semaphore::new(0)),
                rounds: Arc::default(),
            }
        }

        fn call(&self, key: &'static str, number: usize) -> tokio::task::JoinHandle<Option<usize>> {
            let (together, may, rounds) =
                (Arc::clone(&self.together), Arc::clone(&self.may), Arc::clone(&self.rounds));
            let turns = self.turns.clone();
            tokio::spawn(async move {
                let work = move |asks: Vec<usize>| {
                    let (may, rounds) = (Arc::clone(&may), Arc::clone(&rounds));
                    async move {
                        may.acquire().await.expect("open").forget();
                        rounds.fetch_add(1, Ordering::Relaxed);
                        asks.into_iter().map(|ask| ask.checked_mul(2).expect("small enough")).collect()
                    }
                };
                let turn = || turns.map(|turns| turns.of(&QueueName::new("jobs").expect("a good name")));
                together.call(key, number, turn, work).await.ok()
            })
        }

        /// Until so many wait behind the one under way.
        async fn waiting(&self, key: &'static str, callers: usize) {
            while self.together.lines().get(key).map(|line| line.waiting.len()) != Some(callers) {
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn who_comes_meanwhile_goes_together_in_the_next_one() {
        let doubler = Doubler::new();
        let first = doubler.call("a", 1);
        doubler.waiting("a", 0).await;
        let others: Vec<_> = (2..10).map(|number| doubler.call("a", number)).collect();
        doubler.waiting("a", 8).await;
        doubler.may.add_permits(2);
        assert_eq!(first.await.expect("it ends"), Some(2));
        for (number, other) in (2..10).zip(others) {
            assert_eq!(other.await.expect("it ends"), Some(number * 2), "each gets its own answer");
        }
        assert_eq!(doubler.rounds.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn where_rounds_take_turns_a_small_one_waits_and_a_full_one_does_not() {
        let doubler = Doubler { turns: Some(Arc::default()), ..Doubler::new() };
        let under_way = [doubler.call("a", 1), doubler.call("b", 2)];
        doubler.waiting("a", 0).await;
        doubler.waiting("b", 0).await;
        let small = doubler.call("c", 3);
        let others: Vec<_> = (0..ROUND_FULL).map(|number| doubler.call("d", number)).collect();
        doubler.waiting("d", 0).await;
        doubler.waiting("c", 1).await;
        doubler.may.add_permits(3);
        for (number, other) in others.into_iter().enumerate() {
            assert_eq!(other.await.expect("it ends"), Some(number * 2));
        }
        for (number, one) in (1..).zip(under_way) {
            assert_eq!(one.await.expect("it ends"), Some(number * 2));
        }
        doubler.may.add_permits(1);
        assert_eq!(small.await.expect("it ends"), Some(6));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever_for_one_whose_server_is_away() {
        let doubler = Doubler { turns: Some(Arc::default()), ..Doubler::new() };
        let under_way = [doubler.call("a", 1), doubler.call("b", 2)];
        doubler.waiting("a", 0).await;
        doubler.waiting("b", 0).await;
        let third = doubler.call("c", 3);
        doubler.waiting("c", 1).await;
        tokio::time::advance(TURN_MAX * 2).await;
        doubler.waiting("c", 0).await;
        doubler.may.add_permits(3);
        assert_eq!(third.await.expect("it ends"), Some(6));
        for (number, one) in (1..).zip(under_way) {
            assert_eq!(one.await.expect("it ends"), Some(number * 2));
        }
    }

    #[tokio::test]
    async fn another_key_waits_for_nobody() {
        let doubler = Doubler::new();
        let first = doubler.call("a", 1);
        doubler.waiting("a", 0).await;
        let other = doubler.call("b", 2);
        doubler.waiting("b", 0).await;
        doubler.may.add_permits(2);
        assert_eq!((first.await.expect("it ends"), other.await.expect("it ends")), (Some(2), Some(4)));
    }

    #[tokio::test]
    async fn who_goes_away_takes_nobody_along() {
        let doubler = Doubler::new();
        let first = doubler.call("a", 1);
        doubler.waiting("a", 0).await;
        let (second, third) = (doubler.call("a", 2), doubler.call("a", 3));
        doubler.waiting("a", 2).await;
        // The first is under way, the second waits.
        for gone in [first, second] {
            gone.abort();
            assert!(gone.await.expect_err("it was aborted").is_cancelled());
        }
        doubler.may.add_permits(2);
        assert_eq!(third.await.expect("it ends"), Some(6));
        assert_eq!(doubler.rounds.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn nobody_waits_for_one_that_panicked() {
        let doubler = Doubler::new();
        let first = doubler.call("a", usize::MAX);
        doubler.waiting("a", 0).await;
        let second = doubler.call("a", 2);
        doubler.waiting("a", 1).await;
        doubler.may.add_permits(2);
        assert_eq!((first.await.expect("it ends"), second.await.expect("it ends")), (None, None));
        assert_eq!(doubler.call("a", 3).await.expect("it ends"), Some(6), "the line is open again");
    }

    #[test]
    fn who_is_done_with_a_line_leaves_the_next_one_of_its_key_alone() {
        let together: Arc<Numbers> = Arc::default();
        let mut leading = Leading { together: Arc::clone(&together), key: "a", is_over: false };
        together.lines().entry("a").or_default();
        assert!(leading.next().is_none());
        // Somebody came before we were gone.
        let (answer, mut answered) = oneshot::channel();
        together.lines().entry("a").or_default().push(Waiting { ask: 1, answer });
        drop(leading);
        assert_eq!(together.lines()["a"].waiting.len(), 1);
        assert!(matches!(answered.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
    }
}
