//! How a batch is applied: item by item, and taken back as a whole where it must be all or nothing.

use redrive_store::Batch;

use crate::core::Core;

impl Core {
    /// Applies a batch in order. Where it is all or nothing and an item was not applied, everything is as it was
    /// before, and the items that would have been applied say so.
    pub(crate) fn apply<T, O>(
        &mut self,
        batch: Batch<T>,
        mut one: impl FnMut(&mut Self, T) -> O,
        applied: impl Fn(&O) -> bool,
        aborted: impl Fn() -> O,
    ) -> Vec<O> {
        let whole = batch.is_all_or_nothing();
        if whole {
            self.begin_undo();
        }
        let mut outcomes: Vec<O> = batch.into_items().into_iter().map(|item| one(self, item)).collect();
        if whole && !outcomes.iter().all(&applied) {
            self.take_back();
            for outcome in outcomes.iter_mut().filter(|outcome| applied(outcome)) {
                *outcome = aborted();
            }
        }
        self.undo = None;
        outcomes
    }
}
