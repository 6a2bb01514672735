//! One process owns a directory.

use libtest_mimic::Failed;
use redrive_store::StoreError;
use redrive_store_embedded::{Durability, EmbeddedStore};

use crate::history::History;
use crate::look::{hold, look};
use crate::victim::{Plan, Victim};

pub(crate) fn a_second_process_is_refused_until_the_first_is_dead() -> Result<(), Failed> {
    let parent = tempfile::tempdir()?;
    let dir = parent.path().join("store");
    let plan = Plan { seed: 21, life: 1, segment_bytes: 64 * 1024, durability: Durability::Sync };
    let victim = Victim::start(&dir, &plan);
    let mut history = History::default();
    let mut read =
        |victim: &Victim| victim.line().map(|line| history.read(line)).ok_or("the first has ended");
    for _ in 0..100 {
        read(&victim)?;
    }
    match EmbeddedStore::open(&dir, plan.options()) {
        Err(StoreError::Unavailable(cause)) => {
            let cause = cause.to_string();
            assert!(cause.contains(&dir.display().to_string()), "does not name the directory: {cause}");
        }
        Err(other) => return Err(format!("refused, but as {other:?}").into()),
        Ok(_) => return Err("two processes have the directory".into()),
    }
    // The attempt has not touched anything: the first goes on, and all of it is found.
    for _ in 0..400 {
        read(&victim)?;
    }
    victim.kill().into_iter().for_each(|line| history.read(line));
    let store = EmbeddedStore::open(&dir, plan.options())?;
    hold("after the first was killed", &look(&store, &mut history));
    Ok(())
}
