//! Leases that a server has forgotten: it was told not to sync, and lost its power. Their holders must not be taken for those to whom
//! it hands out the same messages later.

use std::collections::BTreeSet;

use libtest_mimic::Failed;
use redrive_core::message::{Message, State};
use redrive_store::{Settled, Store};
use redrive_test_servers::AppendFsync;

use crate::world::{World, hasty, until_it_works};
use crate::{Site, run};

fn ids(messages: &[Message]) -> BTreeSet<redrive_core::lease::LeaseId> {
    messages.iter().map(|message| message.lease().expect("leased").id).collect()
}

/// The holders of leases that were lost find that they have none, and those of the new ones are not disturbed.
async fn apart(world: &World, lost: &[Message], count: usize) -> Result<(), Failed> {
    let early = world.ack(lost).await?;
    assert!(early.iter().all(|settled| *settled == Settled::LeaseLost), "{early:?}");
    let again = world.lease(count).await;
    assert_eq!(again.len(), count, "all of them are ready again");
    assert!(ids(&again).is_disjoint(&ids(lost)), "an id is given out twice");
    let late = world.ack(lost).await?;
    assert!(late.iter().all(|settled| *settled == Settled::LeaseLost), "{late:?}");
    assert_eq!(world.stats().await.states.of(State::Leased), count as u64, "and nothing was changed");
    assert!(world.ack(&again).await?.iter().all(Settled::is_applied));
    Ok(())
}

/// One instance that has seen the cut, and one that has not.
async fn instances(site: &Site, world: World) -> [World; 2] {
    until_it_works(async || world.store.get_queue(&world.queue).await).await;
    [world, World::beside(hasty(&site.server.url())).await]
}

pub(crate) fn a_lease_that_was_lost_changes_nothing_and_its_id_is_given_to_nobody_else() -> Result<(), Failed>
{
    for which in 0..2 {
        let mut site = Site::new(AppendFsync::No)?;
        run(async {
            let world = World::open(hasty(&site.server.url())).await;
            world.put(20).await;
            site.disk.sync()?;
            let lost = world.lease(20).await;
            site.cut()?;
            apart(&instances(&site, world).await[which], &lost, 20).await
        })?;
    }
    Ok(())
}

/// That something is lost is known to whoever has seen more of it, and to nobody else: a server that was only killed looks the same.
pub(crate) fn an_instance_that_was_given_more_than_the_server_knows_refuses_the_leases_of_before()
-> Result<(), Failed> {
    for knows in [true, false] {
        let mut site = Site::new(AppendFsync::No)?;
        run(async {
            let mut world = World::open(hasty(&site.server.url())).await;
            world.put(20).await;
            let kept = world.lease(10).await;
            site.disk.sync()?;
            let lost = world.lease(10).await;
            site.cut()?;
            if !knows {
                world = World::beside(hasty(&site.server.url())).await;
            }
            let acked = until_it_works(async || world.ack(&kept).await).await;
            let refused = acked.iter().filter(|settled| **settled == Settled::LeaseLost).count();
            assert_eq!(refused, if knows { 10 } else { 0 }, "{acked:?}");
            let acked = world.ack(&lost).await?;
            assert!(acked.iter().all(|settled| *settled == Settled::LeaseLost), "{acked:?}");
            Ok::<_, Failed>(())
        })?;
    }
    Ok(())
}

/// The server is started again, which raises the epoch, and forgets that as well.
pub(crate) fn an_epoch_that_was_lost_gives_no_id_out_again() -> Result<(), Failed> {
    for which in 0..2 {
        let mut site = Site::new(AppendFsync::No)?;
        run(async {
            let world = World::open(hasty(&site.server.url())).await;
            world.put(20).await;
            site.disk.sync()?;
            site.server.kill()?;
            site.server.restart()?;
            until_it_works(async || world.store.get_queue(&world.queue).await).await;
            let lost = world.lease(20).await;
            assert_eq!(lost.len(), 20);
            site.cut()?;
            apart(&instances(&site, world).await[which], &lost, 20).await
        })?;
    }
    Ok(())
}
