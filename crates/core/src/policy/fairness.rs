//! Fairness: deficit round robin over the keys that have work.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;

use crate::invalid::Invalid;
use crate::limits::WEIGHT_MAX;

/// How many messages a key is served in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(u32);

impl Weight {
    /// The weight of a key that was given none.
    pub const ONE: Self = Self(1);

    /// Refuses 0 (pause the key instead) and anything above [`WEIGHT_MAX`].
    pub fn new(weight: u32) -> Result<Self, Invalid> {
        if (1..=WEIGHT_MAX).contains(&weight) {
            Ok(Self(weight))
        } else {
            Err(Invalid::out_of_range("weights", 1, WEIGHT_MAX))
        }
    }

    /// The weight as a number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self::ONE
    }
}

/// What a key in the ring can do for one pick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It has what is asked for.
    Serves(Weight),
    /// It has work, but none that this call asked for; it keeps its place.
    Passes,
    /// It has no work, or is paused; it leaves the ring.
    Leaves,
}

/// The ring: whose turn it is, and how much of the turn is left.
///
/// A key joins at the back when it becomes active, so everyone ahead of it is served at most one turn before
/// it, however many keys join later. A turn is `weight` messages; the deficit that is left of a turn stays with
/// the key between calls, so calls of one message serve the same shares as calls of a thousand. Messages cost 1
/// each, which is why a turn always comes out even and no deficit survives it.
#[derive(Debug, Clone)]
pub struct Ring<K> {
    /// The keys in the order of their turns, with what is left of a turn that has begun.
    turns: VecDeque<(K, Option<u32>)>,
    /// The same keys, to know who is in the ring. A pick does not ask: with a million keys it would be a miss each.
    members: HashSet<K>,
}

impl<K> Default for Ring<K> {
    fn default() -> Self {
        Self { turns: VecDeque::new(), members: HashSet::new() }
    }
}

impl<K: Clone + Eq + Hash> Ring<K> {
    /// Puts a key that has work at the back, unless it is in the ring already.
    pub fn join(&mut self, key: &K) {
        if self.members.insert(key.clone()) {
            self.turns.push_back((key.clone(), None));
        }
    }

    /// Whose message is served next. `standing` says what each key can do; keys are asked in the order of their
    /// turns, and only until one serves, so a pick that asks for nothing special costs the same for any number
    /// of keys. Nothing is charged before the message is handed out: see [`Ring::serve`].
    pub fn next(&mut self, mut standing: impl FnMut(&K) -> Standing) -> Option<(K, Weight)> {
        let mut at = 0;
        while let Some((key, _)) = self.turns.get(at).cloned() {
            match standing(&key) {
                Standing::Serves(weight) => return Some((key, weight)),
                Standing::Passes => at += 1,
                Standing::Leaves => {
                    self.turns.remove(at);
                    self.members.remove(&key);
                }
            }
        }
        None
    }

    /// Takes one message off the turn of a key that [`Ring::next`] named. A weight that was changed acts here at
    /// once.
    pub fn serve(&mut self, key: &K, weight: Weight) {
        // Whoever is served is the first, unless a filter passed some over.
        let Some(at) = self.turns.iter().position(|(other, _)| other == key) else {
            return;
        };
        let Some((_, turn)) = self.turns.get_mut(at) else { return };
        let left = turn.unwrap_or(weight.get()).min(weight.get()).saturating_sub(1);
        *turn = Some(left).filter(|left| *left > 0);
        if turn.is_none()
            && let Some(served) = self.turns.remove(at)
        {
            self.turns.push_back(served);
        }
    }

    /// The keys in the order of their turns.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.turns.iter().map(|(key, _)| key)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Backlogs that never run dry, with a weight each.
    fn serve(ring: &mut Ring<usize>, weights: &[u32], picks: usize) -> Vec<usize> {
        (0..picks)
            .map(|_| pick(ring, |key| Standing::Serves(Weight(weights[*key]))).expect("a key with work"))
            .collect()
    }

    fn pick(ring: &mut Ring<usize>, standing: impl FnMut(&usize) -> Standing) -> Option<usize> {
        let (key, weight) = ring.next(standing)?;
        ring.serve(&key, weight);
        Some(key)
    }

    fn ring_of(keys: usize) -> Ring<usize> {
        let mut ring = Ring::default();
        (0..keys).for_each(|key| ring.join(&key));
        ring
    }

    fn count(served: &[usize]) -> BTreeMap<usize, u32> {
        served.iter().fold(BTreeMap::new(), |mut count, key| {
            *count.entry(*key).or_default() += 1;
            count
        })
    }

    fn weights() -> impl Strategy<Value = Vec<u32>> {
        prop::collection::vec(1u32..20, 1..12)
    }

    proptest! {
        #[test]
        fn one_round_serves_each_key_its_weight(weights in weights(), rounds in 1usize..5) {
            let mut ring = ring_of(weights.len());
            let round = weights.iter().sum::<u32>() as usize;
            for _ in 0..rounds {
                let served = count(&serve(&mut ring, &weights, round));
                for (key, weight) in weights.iter().enumerate() {
                    prop_assert_eq!(served[&key], *weight);
                }
            }
        }

        #[test]
        fn over_any_stretch_shares_are_within_one_quantum(weights in weights(), from in 0usize..100, picks in 1usize..300) {
            let mut ring = ring_of(weights.len());
            serve(&mut ring, &weights, from);
            let served = count(&serve(&mut ring, &weights, picks));
            let turns = |key: usize| f64::from(*served.get(&key).unwrap_or(&0)) / f64::from(weights[key]);
            for a in 0..weights.len() {
                for b in 0..weights.len() {
                    prop_assert!((turns(a) - turns(b)).abs() <= 1.0 + 1e-9, "{a}: {}, {b}: {}", turns(a), turns(b));
                }
            }
        }

        #[test]
        fn a_key_that_becomes_active_is_served_within_one_round(weights in weights(), before in 0usize..100) {
            let newcomer = weights.len() - 1;
            let mut ring = ring_of(newcomer);
            if newcomer > 0 {
                serve(&mut ring, &weights, before);
            }
            ring.join(&newcomer);
            let round = weights.iter().sum::<u32>() as usize;
            let served = serve(&mut ring, &weights, round);
            let wait = served.iter().position(|key| *key == newcomer);
            prop_assert!(wait.is_some(), "not served in one round");
            for (key, turns) in count(&served[..wait.unwrap()]) {
                prop_assert!(turns <= weights[key], "key {key} had more than one turn first");
            }
        }

        #[test]
        fn keys_that_join_later_never_go_first(keys in 2usize..20, newcomers in 1usize..200) {
            let mut ring = ring_of(keys);
            let mut waiting: Vec<usize> = (0..keys).collect();
            for newcomer in 0..newcomers {
                ring.join(&(keys + newcomer));
                let served = pick(&mut ring, |_| Standing::Serves(Weight::ONE)).unwrap();
                if !waiting.is_empty() {
                    prop_assert_eq!(served, waiting.remove(0));
                }
            }
        }

        #[test]
        fn a_filtered_pick_serves_only_what_was_asked_for_and_keeps_the_others_turns(
            weights in weights(), allowed in prop::collection::vec(any::<bool>(), 12), picks in 1usize..60,
        ) {
            let mut ring = ring_of(weights.len());
            let order: Vec<usize> = ring.keys().copied().filter(|key| !allowed[*key]).collect();
            for _ in 0..picks {
                let served = pick(&mut ring, |key| {
                    if allowed[*key] { Standing::Serves(Weight(weights[*key])) } else { Standing::Passes }
                });
                prop_assert_eq!(served.is_some(), (0..weights.len()).any(|key| allowed[key]));
                prop_assert!(served.is_none_or(|key| allowed[key]));
            }
            let after: Vec<usize> = ring.keys().copied().filter(|key| !allowed[*key]).collect();
            prop_assert_eq!(after, order);
        }

        #[test]
        fn filtered_picks_keep_the_weights(weights in weights(), rounds in 1u32..4) {
            // The last key passes every time; the others still get exactly their weights.
            let mut ring = ring_of(weights.len());
            let last = weights.len() - 1;
            let round: u32 = weights[..last].iter().sum();
            let served: Vec<usize> = (0..round * rounds)
                .filter_map(|_| pick(&mut ring, |key| {
                    if *key == last { Standing::Passes } else { Standing::Serves(Weight(weights[*key])) }
                }))
                .collect();
            for (key, got) in count(&served) {
                prop_assert_eq!(got, weights[key] * rounds);
            }
        }
    }

    #[test]
    fn a_key_that_leaves_starts_a_new_turn_when_it_returns() {
        let mut ring = ring_of(2);
        let heavy = |key: &usize| Standing::Serves(Weight(if *key == 0 { 3 } else { 1 }));
        assert_eq!(pick(&mut ring, heavy), Some(0));
        assert_eq!(pick(&mut ring, |key| if *key == 0 { Standing::Leaves } else { heavy(key) }), Some(1));
        ring.join(&0);
        let served: Vec<usize> = (0..5).filter_map(|_| pick(&mut ring, heavy)).collect();
        assert_eq!(served, [1, 0, 0, 0, 1]);
    }

    #[test]
    fn a_lower_weight_cuts_the_turn_short() {
        let mut ring = ring_of(2);
        assert_eq!(pick(&mut ring, |_| Standing::Serves(Weight(100))), Some(0));
        let served: Vec<usize> =
            (0..4).filter_map(|_| pick(&mut ring, |_| Standing::Serves(Weight::ONE))).collect();
        assert_eq!(served, [0, 1, 0, 1]);
    }

    #[test]
    fn what_is_not_handed_out_is_not_charged() {
        let mut ring = ring_of(2);
        let one = |_: &usize| Standing::Serves(Weight::ONE);
        assert_eq!(ring.next(one), Some((0, Weight::ONE)));
        assert_eq!(ring.next(one), Some((0, Weight::ONE)), "asking is not serving");
        ring.serve(&0, Weight::ONE);
        assert_eq!(ring.next(one), Some((1, Weight::ONE)));
    }

    #[test]
    fn a_ring_without_work_is_empty() {
        let mut ring = ring_of(3);
        assert_eq!(pick(&mut ring, |_| Standing::Leaves), None);
        assert_eq!(ring.keys().count(), 0);
    }

    #[test]
    fn a_weight_outside_its_range_is_refused_by_name() {
        assert_eq!(Weight::new(0).unwrap_err().field, "weights");
        assert!(Weight::new(WEIGHT_MAX + 1).is_err());
    }
}
