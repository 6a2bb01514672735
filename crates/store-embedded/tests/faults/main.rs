//! The store on a disk that loses, tears, fails and lies: what was answered is there, whatever happens.
//!
//! A history is made from a seed: random calls through the [`Store`](redrive_store::Store) trait on a store without
//! threads, over a simulated disk with small segments, so that rolling, cleaning and recycling happen often. The
//! reference store follows every answer. Then something goes wrong, the store is opened again, and everything that can
//! be seen must be what the reference says: every message in exactly one state, with its attempts and its lease. A call
//! whose answer was "unknown" may have happened or not, a frame as a whole.
//!
//! `REDRIVE_SEED=0x... cargo test -p redrive-store-embedded --test faults` replays one history, and `REDRIVE_TIMES=20`
//! tries twenty times as many as usual.

mod bits;
mod clock;
mod command;
mod compare;
mod forgery;
mod layout;
mod logs;
mod oracle;
mod rounds;
mod sabotage;
mod seeds;
mod sweep;
mod workload;
mod world;

use seeds::Kind;

pub(crate) const POWER_CUTS: Kind = Kind { name: "power cuts", number: 1, history: rounds::power_cuts };
pub(crate) const KILLS: Kind = Kind { name: "kills", number: 2, history: rounds::kills };
pub(crate) const BOTH: Kind =
    Kind { name: "kills and power cuts", number: 3, history: rounds::kills_and_power_cuts };
pub(crate) const ERRORS: Kind = Kind { name: "errors", number: 4, history: rounds::errors };
pub(crate) const FLIPS: Kind = Kind { name: "flips", number: 5, history: rounds::flips };
pub(crate) const FULL_DISKS: Kind = Kind { name: "full disks", number: 6, history: rounds::full_disks };

#[test]
fn a_power_cut_at_any_call_loses_nothing_that_was_answered() {
    let tally = POWER_CUTS.hold(1_800);
    if seeds::asked().is_none() {
        assert!(tally.unknown > 500, "the power is cut in the middle of something: {tally:?}");
        assert!(tally.cleaned > 100, "the cleaner is at work: {tally:?}");
    }
}

#[test]
fn a_kill_at_any_call_loses_nothing_that_was_answered() {
    KILLS.hold(500);
}

#[test]
fn what_a_killed_process_left_in_the_cache_is_not_built_upon_unsynced() {
    BOTH.hold(900);
}

#[test]
fn an_error_at_any_call_leads_to_no_false_answer() {
    let tally = ERRORS.hold(1_300);
    assert!(seeds::asked().is_some() || tally.unknown > 500, "calls fail: {tally:?}");
}

#[test]
fn a_flipped_bit_is_refused_with_its_place_or_changes_nothing() {
    let tally = FLIPS.hold(550);
    assert!(seeds::asked().is_some() || tally.refused > 500, "bits that matter are flipped: {tally:?}");
}

#[test]
fn a_full_disk_refuses_what_is_new_and_nothing_else() {
    let tally = FULL_DISKS.hold(100);
    assert!(seeds::asked().is_some() || tally.full > 100, "the disk gets full: {tally:?}");
}
