//! Pauses: a queue, or one fairness key of it, hands nothing out for a while. Everything else goes on.

use std::collections::BTreeMap;

use crate::invalid::Invalid;
use crate::limits::KEY_SETTINGS_MAX;
use crate::message::FairnessKey;
use crate::time::Timestamp;

/// How long a pause lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pause {
    /// Until somebody resumes.
    UntilResumed,
    /// Until this time, or until somebody resumes.
    Until(Timestamp),
}

impl Pause {
    /// Whether it still holds.
    pub fn holds(self, now: Timestamp) -> bool {
        match self {
            Self::UntilResumed => true,
            Self::Until(end) => now < end,
        }
    }

    /// When it ends by itself.
    pub fn end(self) -> Option<Timestamp> {
        match self {
            Self::UntilResumed => None,
            Self::Until(end) => Some(end),
        }
    }
}

/// What of a queue is paused. A pause that ran out is as good as gone; nothing has to take it away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pauses {
    /// The pause of the whole queue.
    pub queue: Option<Pause>,
    /// The pauses of single keys.
    pub keys: BTreeMap<FairnessKey, Pause>,
}

impl Pauses {
    /// Sets or takes away the pause of the queue, or of one key.
    pub fn set(
        &mut self,
        key: Option<FairnessKey>,
        pause: Option<Pause>,
        now: Timestamp,
    ) -> Result<(), Invalid> {
        let Some(key) = key else {
            self.queue = pause;
            return Ok(());
        };
        self.keys.retain(|_, pause| pause.holds(now));
        let Some(pause) = pause else {
            self.keys.remove(&key);
            return Ok(());
        };
        let others = self.keys.len() - usize::from(self.keys.contains_key(&key));
        Invalid::check_length("paused", others + 1, KEY_SETTINGS_MAX, "keys")?;
        self.keys.insert(key, pause);
        Ok(())
    }

    /// Whether the whole queue is paused.
    pub fn holds_queue(&self, now: Timestamp) -> bool {
        self.queue.is_some_and(|pause| pause.holds(now))
    }

    /// Whether that key is paused.
    pub fn holds_key(&self, key: &FairnessKey, now: Timestamp) -> bool {
        self.keys.get(key).is_some_and(|pause| pause.holds(now))
    }

    /// When the next pause ends by itself.
    pub fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        let all = self.queue.iter().chain(self.keys.values());
        all.filter(|pause| pause.holds(now)).filter_map(|pause| pause.end()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_pause_with_an_end_ends_by_itself() {
        let mut pauses = Pauses::default();
        pauses.set(None, Some(Pause::Until(at(10))), at(0)).unwrap();
        assert!(pauses.holds_queue(at(9)));
        assert!(!pauses.holds_queue(at(10)));
        assert_eq!((pauses.next_end(at(9)), pauses.next_end(at(10))), (Some(at(10)), None));
    }

    #[test]
    fn keys_are_paused_apart_and_resumed() {
        let (a, b) = (FairnessKey::new("a").unwrap(), FairnessKey::new("b").unwrap());
        let mut pauses = Pauses::default();
        pauses.set(Some(a.clone()), Some(Pause::UntilResumed), at(0)).unwrap();
        assert!(
            pauses.holds_key(&a, at(u64::MAX)) && !pauses.holds_key(&b, at(0)) && !pauses.holds_queue(at(0))
        );
        pauses.set(Some(a.clone()), None, at(1)).unwrap();
        assert!(!pauses.holds_key(&a, at(1)));
    }

    #[test]
    fn only_so_many_keys_can_be_paused() {
        let mut pauses = Pauses::default();
        let mut pause = |n: usize, end| {
            let key = FairnessKey::new(format!("key {n}")).unwrap();
            pauses.set(Some(key), Some(Pause::Until(end)), at(5))
        };
        (0..KEY_SETTINGS_MAX).for_each(|n| pause(n, at(10)).unwrap());
        pause(0, at(11)).expect("a key that is paused already can be paused longer");
        assert_eq!(pause(KEY_SETTINGS_MAX, at(10)).unwrap_err().field, "paused");
    }
}
