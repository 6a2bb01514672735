//! What `appendfsync everysec` promises: what was acknowledged before a sync that has ended is there. Servers begin one every second
//! and answer meanwhile, so that what a power cut takes is the last second, and as long as a sync takes.

use std::collections::BTreeSet;

use libtest_mimic::Failed;
use redrive_core::message::Message;
use redrive_store::Settled;
use redrive_test_servers::{AppendFsync, Redis};

use crate::ledger::present;
use crate::world::{PATIENCE, World, hasty};
use crate::{Site, run};

const CUTS: usize = 3;

/// Whether a sync is under way.
fn syncs(server: &Redis) -> bool {
    server.command(&["INFO", "persistence"]).unwrap().contains("aof_pending_bio_fsync:1")
}

/// Waits for a sync that begins after this was called, and for its end. What is acknowledged by then is in the file before it
/// begins. A sync that nobody has seen is followed by another: there is always something more to sync.
async fn synced(world: &World, server: &Redis) {
    let seen = async {
        while syncs(server) {
            tokio::task::yield_now().await;
        }
        while !syncs(server) {
            world.put(1).await;
        }
        while syncs(server) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.expect("it syncs every second");
}

pub(crate) fn what_was_synced_within_the_second_is_there_after_a_power_cut() -> Result<(), Failed> {
    let mut site = Site::new(AppendFsync::EverySecond)?;
    run(async {
        let mut world = World::open(hasty(&site.server.url())).await;
        let (mut given, mut lost) = (BTreeSet::new(), 0);
        for round in 0..CUTS {
            let kept = world.put(50).await;
            let leased = world.lease(20).await;
            world.ack(&leased[..10]).await?;
            synced(&world, &site.server).await;

            let tail = world.put(50).await;
            let late = world.lease(20).await;
            site.cut()?;

            world = World::beside(hasty(&site.server.url())).await;
            let there = present(&world, &kept.iter().chain(&tail).copied().collect()).await;
            lost += tail.iter().filter(|id| !there.contains(id)).count();
            let acked: BTreeSet<_> = leased[..10].iter().map(Message::id).collect();
            assert!(kept.iter().all(|id| there.contains(id) != acked.contains(id)), "round {round}");
            assert!(present(&world, &acked).await.is_empty(), "round {round}: what was acked is back");
            // What was handed out and synced goes on; what was not is refused, or was kept by chance.
            assert!(world.ack(&leased[10..]).await?.iter().all(Settled::is_applied), "round {round}");
            for (message, settled) in late.iter().zip(world.ack(&late).await?) {
                let is_there = !present(&world, &[message.id()].into()).await.is_empty();
                assert_eq!(is_there, settled == Settled::LeaseLost, "round {round}: {settled:?}");
            }
            let again = world.lease(100).await;
            for message in leased.iter().chain(&late).chain(&again) {
                let id = message.lease().expect("leased").id;
                assert!(given.insert(id), "round {round}: {id:?} is given out twice");
            }
            world.ack(&again).await?;
        }
        println!("{CUTS} power cuts: {lost} of {} messages lost that were not synced yet", 50 * CUTS);
        Ok(())
    })
}
