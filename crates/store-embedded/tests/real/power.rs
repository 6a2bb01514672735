//! Power cuts: the process is killed, then its file system ends without a word to the disk. In this order: a sync
//! that races the end of the file system is told a success that did not happen, and that is not the store's fault.

use libtest_mimic::Failed;
use redrive_store_embedded::Durability;
use redrive_test_servers::LoopFs;

use crate::kill::SMALL;
use crate::series::Series;
use crate::victim::Plan;

/// Cuts in each of the two series.
const CUTS: u64 = 22;
/// Cuts of the control.
const CONTROL_CUTS: u64 = 4;

pub(crate) fn a_power_cut_loses_nothing_that_was_acknowledged() -> Result<(), Failed> {
    for (seed, segment_bytes) in [(31, SMALL), (32, 2 * 1024 * 1024)] {
        let fs = LoopFs::new(256)?;
        let plan = Plan { seed, life: 0, segment_bytes, durability: Durability::Sync };
        let mut series = Series::new(fs.root().join("store"), plan);
        for _ in 0..CUTS {
            let lines = series.lines();
            series.live(lines);
            fs.cut()?;
            series.survive();
        }
        let (told, cleaned) = (series.history.told, series.history.cleaned);
        println!(
            "{CUTS} power cuts, segments of {segment_bytes} bytes, {cleaned} of them cleaned: \
             all {told} answers hold"
        );
        if segment_bytes == SMALL && cleaned < CUTS {
            return Err("too few segments were cleaned: the cuts have not tested cleaning".into());
        }
    }
    Ok(())
}

/// The control: without syncing the same cut must lose something, or it does not cut.
pub(crate) fn without_syncing_a_power_cut_is_seen_to_lose() -> Result<(), Failed> {
    let mut losses = 0;
    for seed in 0..CONTROL_CUTS {
        let fs = LoopFs::new(256)?;
        let plan = Plan { seed, life: 0, segment_bytes: 2 * 1024 * 1024, durability: Durability::None };
        let mut series = Series::new(fs.root().join("store"), plan);
        series.live(1_000);
        fs.cut()?;
        let lost = match series.look() {
            Ok((_, looked)) => looked.problems.len(),
            Err(error) => {
                println!("after a power cut without syncing: {error}");
                1
            }
        };
        println!("a power cut without syncing: {} answers, {lost} problems", series.history.told);
        losses += u64::from(lost > 0);
    }
    if losses == 0 { Err("the power cut tool does not cut".into()) } else { Ok(()) }
}
