//! SIGKILL at any moment, also while the store recovers from the last one.

use libtest_mimic::Failed;
use redrive_core::time::Millis;
use redrive_store_embedded::Durability;

use crate::series::Series;
use crate::victim::Plan;

/// Segments that are cleaned all the time.
pub(crate) const SMALL: u32 = 64 * 1024;

/// What the series differ in, and how many processes each kills.
const SERIES: [(u64, u32, Durability, u64); 4] = [
    (11, SMALL, Durability::Sync, 40),
    (12, 4 * 1024 * 1024, Durability::Sync, 30),
    (13, SMALL, Durability::None, 25),
    (14, 256 * 1024, Durability::Interval(Millis::new(5)), 15),
];

pub(crate) fn a_killed_process_loses_nothing_that_was_acknowledged() -> Result<(), Failed> {
    for (seed, segment_bytes, durability, kills) in SERIES {
        let dir = tempfile::tempdir()?;
        let plan = Plan { seed, life: 0, segment_bytes, durability };
        let mut series = Series::new(dir.path().join("store"), plan);
        for _ in 0..kills {
            let lines = series.lines();
            series.live(lines);
            series.survive();
        }
        let (told, cleaned) = (series.history.told, series.history.cleaned);
        println!(
            "{kills} kills, {durability:?}, segments of {segment_bytes} bytes, {cleaned} of them cleaned: \
             all {told} answers hold"
        );
        if segment_bytes == SMALL && cleaned < kills {
            return Err("too few segments were cleaned: the kills have not tested cleaning".into());
        }
    }
    Ok(())
}
