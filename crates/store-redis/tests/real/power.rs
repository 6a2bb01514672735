//! What `appendfsync always` promises, and that the cut would show it if it were not so.

use libtest_mimic::Failed;
use redrive_store::Store;
use redrive_test_servers::AppendFsync;

use crate::ledger::{Ledger, Problems};
use crate::world::{World, hasty, until_it_works};
use crate::{Site, run};

const CUTS: usize = 6;
/// Cuts of the control.
const CONTROL_CUTS: usize = 2;
/// Messages that are acknowledged before a cut, at least; more in each round, so that it meets another moment.
const ENOUGH: usize = 200;

pub(crate) fn a_power_cut_loses_nothing_that_was_acknowledged() -> Result<(), Failed> {
    let mut site = Site::new(AppendFsync::Always)?;
    run(async {
        let mut world = World::open(hasty(&site.server.url())).await;
        let mut told = Ledger::default();
        for round in 0..CUTS {
            told.live(&world, ENOUGH + 40 * round, || site.cut()).await?;
            // An instance that has seen it, and one that has not.
            if round % 2 == 1 {
                world = World::beside(hasty(&site.server.url())).await;
            }
            until_it_works(async || world.store.get_queue(&world.queue).await).await;
            assert_eq!(told.check(&world).await, Problems::default(), "after cut {round}");
        }
        println!("{CUTS} power cuts: {} enqueues and {} acks hold", told.enqueued.len(), told.acked.len());
        Ok(())
    })
}

/// The control: without syncing the same cut must lose something, or it does not cut.
pub(crate) fn without_syncing_a_power_cut_is_seen_to_lose() -> Result<(), Failed> {
    let mut losses = 0;
    for _ in 0..CONTROL_CUTS {
        let mut site = Site::new(AppendFsync::No)?;
        let problems = run(async {
            let world = World::open(hasty(&site.server.url())).await;
            let mut told = Ledger::default();
            told.live(&world, ENOUGH, || site.cut()).await?;
            let world = World::beside(hasty(&site.server.url())).await;
            Ok::<_, Failed>(told.check(&world).await)
        })?;
        println!("a power cut without syncing: {problems:?}");
        losses += problems.lost;
    }
    if losses == 0 { Err("the power cut tool does not cut".into()) } else { Ok(()) }
}
