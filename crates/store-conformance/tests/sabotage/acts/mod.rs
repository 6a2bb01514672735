//! The sabotages: each does one thing wrong, the way real queues have.

use std::sync::Arc;

use redrive_core::receipt::Claim;
use redrive_core::time::Timestamp;
use redrive_store::{Batch, Now, Store};

use crate::wrap::{Sabotage, Saboteur};

/// Whether random histories can see a sabotage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByHistories {
    /// They can.
    Found,
    /// They accept any lawful choice of whose turn it is, read queues that fit on one page, ask for no locks, and never end a bulk verb early.
    NotSeen,
}

/// A sabotage and the rule that is there for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Act {
    pub(crate) name: &'static str,
    make: fn() -> Arc<dyn Sabotage>,
    pub(crate) rule: &'static str,
    pub(crate) histories: ByHistories,
}

impl Act {
    pub(crate) fn subject(&self) -> Saboteur {
        Saboteur { name: self.name, make: self.make }
    }
}

macro_rules! acts {
    ($($file:ident::$act:ident: $rule:literal, $histories:ident;)*) => {
        pub(crate) fn all() -> Vec<Act> {
            vec![$(Act {
                name: stringify!($act),
                make: || Arc::new($file::$act::default()),
                rule: $rule,
                histories: ByHistories::$histories,
            }),*]
        }
    };
}

mod inputs;
mod serving;
mod settling;

acts! {
    settling::AckIgnoresLeaseId: "fencing::a_stale_receipt_changes_nothing", Found;
    settling::AckForgetsWho: "ack::whoever_ends_a_lease_is_told_who_had_it", Found;
    settling::NackIgnoresLeaseId: "fencing::a_stale_receipt_changes_nothing", Found;
    settling::ExtendIgnoresLeaseId: "fencing::a_stale_receipt_changes_nothing", Found;
    settling::ReleaseIgnoresLeaseId: "fencing::an_operator_who_names_a_lease_touches_no_other", Found;
    settling::ExtendIsForgotten: "time::an_extend_that_races_the_sweeper_wins", Found;
    settling::AttemptCountedAtNackOnly: "expire::a_dead_consumer_has_had_its_attempt", Found;
    inputs::CapOffByOne: "nack::the_cap_is_exact", Found;
    inputs::RetryOneMillisecondEarly: "time::a_retry_is_not_one_millisecond_early", Found;
    serving::RetryAtTruncatedToSeconds: "nack::a_failed_message_waits_for_its_backoff", Found;
    settling::RetryAfterIgnored: "nack::what_the_consumer_asks_for_is_honoured", Found;
    inputs::RetriesAheadOfFresh: "lanes::the_retry_share_holds_for_any_mix_of_batch_sizes", NotSeen;
    inputs::WeightsIgnored: "fairness::keys_share_by_weight_in_calls_of_any_size", NotSeen;
    inputs::LastInFirstOut: "ordering::the_first_in_is_the_first_out", Found;
    serving::FilterIgnored: "filter::a_consumer_gets_only_the_types_and_sources_it_asks_for", Found;
    settling::DeadLetterCopied: "nack::a_dead_letter_is_moved_not_copied", Found;
    serving::IndexEntryLeftBehind: "ack::an_acked_message_is_gone", Found;
    serving::CounterOutsideTheWrite: "conservation::everything_drains", Found;
    settling::ReleaseIsCharged: "release::a_released_message_is_unharmed", Found;
    inputs::DedupKeyLostWithTheAck: "dedup::a_window_holds_even_after_the_ack_and_over_a_restart", Found;
    inputs::TimeToLiveForgotten: "lapse::a_message_that_is_too_old_is_never_handed_out", Found;
    inputs::PauseIgnored: "lease::a_paused_queue_hands_out_nothing_and_everything_else_goes_on", Found;
    serving::LookingTakesALease: "list::a_look_takes_no_lease", Found;
    settling::AllOrNothingByHalves: "batch::settlements_apply_together_or_not_at_all", Found;
    serving::DryRunIsReal: "redrive::a_dry_run_counts_and_changes_nothing", Found;
    serving::DiscardAlwaysByForce: "discard::a_leased_message_is_discarded_only_by_force", Found;
    serving::RestartEndsLeases: "recovery::a_lease_is_not_handed_out_again_by_a_restart", Found;
    serving::TwoProbes: "breaker::one_probe_means_one_over_all_instances", Found;
    serving::ProbeBurnsAttempts: "breaker::an_open_breaker_burns_no_attempt", Found;
    serving::MoreIsNeverSaid: "lease::more_leases_ran_out_than_one_call_ends", Found;
    serving::NamesAreFolded: "signal::whatever_may_be_told_arrives_as_it_was", NotSeen;
    serving::LocksAreAnybodys: "lock::only_its_owner_lets_go_of_a_lock", NotSeen;
    serving::LogsHaveOneDirection: "log::records_are_read_back_from_anywhere", Found;
    serving::StepsHaveNoEnd: "discard::a_step_ends_where_it_is_told", NotSeen;
    serving::CursorSkipsOne: "list::pages_go_on_where_the_last_one_ended", NotSeen;
}

/// The claim of whatever lease a message has now.
async fn current(store: &dyn Store, claim: &Claim) -> Claim {
    let message = store.get(&claim.queue, claim.message).await.ok().flatten();
    message.as_ref().and_then(Claim::on).unwrap_or_else(|| claim.clone())
}

/// The same batch with other items.
fn rebuilt<T: redrive_store::Item>(all_or_nothing: bool, items: Vec<T>) -> Batch<T> {
    let batch = if all_or_nothing { Batch::all_or_nothing(items) } else { Batch::each(items) };
    batch.expect("it was a good batch before")
}

fn shifted(now: Now, shift: impl Fn(u64) -> u64) -> Now {
    match now {
        Now::At(at) => Now::At(Timestamp::from_millis(shift(at.as_millis()))),
        Now::Store => Now::Store,
    }
}
