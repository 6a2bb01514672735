//! What `appendfsync everysec` promises: what was acknowledged before a sync that has ended is there. Servers begin one every second
//! and answer meanwhile, so that what a power cut takes is the last second, and as long as a sync takes: two seconds, where the disk and
//! the machine are not in the way.

use std::collections::BTreeSet;

use libtest_mimic::Failed;
use redrive_core::message::{Message, MessageId};
use redrive_store::Settled;
use redrive_test_servers::{AppendFsync, Redis};

use crate::ledger::present;
use crate::world::{PATIENCE, World, hasty, patient, queue_name};
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

/// How long Redis keeps from the disk what it has answered, at most, where nothing is in its way: in microseconds, as all times here.
const KEPT_MAX: u64 = 2_000_000;
/// For how long answers are given that must be there, in each round, and by how much longer in each, so that the cut meets another
/// moment of the second in which the server syncs.
const JUDGED: (u64, u64) = (1_000_000, 370_000);

/// What was answered by then.
struct Told {
    at: u64,
    /// In a queue from which nobody takes.
    kept: Vec<MessageId>,
    acked: Vec<MessageId>,
}

/// The other queue.
fn beside(world: &World) -> World {
    World { queue: queue_name("kept"), ..world.clone() }
}

/// The time of the server, and whether a sync is under way then.
fn looked_at(server: &Redis) -> (u64, bool) {
    let said = server.command(&["INFO", "server", "persistence"]).unwrap();
    let time = said.lines().find_map(|line| line.trim().strip_prefix("server_time_usec:")).unwrap();
    (time.parse().unwrap(), said.contains("aof_pending_bio_fsync:1"))
}

/// Sends, works, and looks at the server's clock behind each answer, until some answers are so old that they must be on the disk; answers
/// all of them, and the time since when what was answered may be lost.
///
/// A server begins a sync every second, unless the one before is under way or it does not get to run, and what it answers meanwhile is
/// written down behind it. How long that may be is seen by the longest time in which it did not say that no sync is under way: that
/// may put off the writing, the beginning, and the end. On a disk that is never ready there is no end, and that fails.
async fn lived(world: &World, server: &Redis, judged: u64) -> (Vec<Told>, u64) {
    let (begun, _) = looked_at(server);
    let (mut told, mut quiet, mut busy) = (Vec::new(), begun, 0);
    loop {
        let kept = beside(world).put(2).await;
        world.put(1).await;
        let leased = world.lease(1).await;
        assert!(world.ack(&leased).await.unwrap().iter().all(Settled::is_applied));
        let (at, syncs) = looked_at(server);
        told.push(Told { at, kept, acked: leased.iter().map(Message::id).collect() });
        busy = busy.max(at - quiet);
        if !syncs {
            quiet = at;
        }
        let behind = KEPT_MAX + 3 * busy;
        if at - begun >= behind + judged {
            println!("it did not say for {busy} µs at most that no sync is under way");
            return (told, at - behind);
        }
    }
}

pub(crate) fn what_was_answered_two_seconds_before_a_power_cut_is_there() -> Result<(), Failed> {
    let mut site = Site::new(AppendFsync::EverySecond)?;
    run(async {
        let mut world = World::open(hasty(&site.server.url())).await;
        world.create(&beside(&world).queue, patient()).await;
        for round in 0..CUTS {
            let judged = JUDGED.0 + JUDGED.1 * round as u64;
            let life = tokio::time::timeout(PATIENCE, lived(&world, &site.server, judged)).await;
            let (told, since) = life.expect("the disk is ready now and then");
            site.cut()?;

            world = World::beside(hasty(&site.server.url())).await;
            let ids = |which: fn(&Told) -> &Vec<MessageId>| told.iter().flat_map(which).copied().collect();
            let kept = present(&beside(&world), &ids(|told| &told.kept)).await;
            let back = present(&world, &ids(|told| &told.acked)).await;
            let lost = |told: &Told| {
                let gone = told.kept.iter().filter(|id| !kept.contains(id));
                gone.count() + told.acked.iter().filter(|id| back.contains(id)).count()
            };
            let (old, new): (Vec<_>, Vec<_>) = told.iter().partition(|told| told.at <= since);
            assert!(!old.is_empty() && !new.is_empty());
            let count = |some: &[&Told]| some.iter().map(|told| lost(told)).sum::<usize>();
            assert_eq!(count(&old), 0, "round {round}: of {} answers that are old enough", old.len());
            println!(
                "round {round}: {} answers hold; of {} later ones, {} do not",
                old.len(),
                new.len(),
                count(&new)
            );
        }
        Ok(())
    })
}
