//! SIGKILL at any moment, also while the store recovers from the last one.

use libtest_mimic::Failed;
use redrive_core::time::Millis;
use redrive_store_embedded::Durability;

use crate::series::Series;
use crate::victim::Plan;

/// What the series differ in, and how many processes each kills.
const SERIES: [(u64, u32, Durability, u64); 4] = [
    (11, 64 * 1024, Durability::Sync, 40),
    (12, 4 * 1024 * 1024, Durability::Sync, 30),
    (13, 64 * 1024, Durability::None, 25),
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
        println!("{kills} kills, {durability:?}, segments of {segment_bytes} bytes: all {told} answers hold");
        if segment_bytes == 64 * 1024 && cleaned == 0 {
            return Err("no segment was cleaned: the kills have not tested cleaning".into());
        }
    }
    Ok(())
}
