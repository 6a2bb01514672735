//! How a batch is applied: item by item, and taken back as a whole where it must be all or nothing.

use redrive_store::Batch;

use crate::state::State;

impl State {
    /// Applies a batch in order. Where it is all or nothing and an item was not applied, everything is as it was
    /// before, and the items that would have been applied say so.
    pub(crate) fn apply<T, O>(
        &mut self,
        batch: Batch<T>,
        mut one: impl FnMut(&mut Self, T) -> O,
        applied: impl Fn(&O) -> bool,
        aborted: impl Fn() -> O,
    ) -> Vec<O> {
        let before = batch.is_all_or_nothing().then(|| self.clone());
        let mut outcomes: Vec<O> = batch.into_items().into_iter().map(|item| one(self, item)).collect();
        if let Some(before) = before
            && !outcomes.iter().all(&applied)
        {
            *self = before;
            for outcome in outcomes.iter_mut().filter(|outcome| applied(outcome)) {
                *outcome = aborted();
            }
        }
        outcomes
    }
}
