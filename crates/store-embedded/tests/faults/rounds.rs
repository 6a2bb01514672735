//! What goes wrong in a history: rounds of work, each with an end of its own.

use redrive_core::receipt::Claim;
use redrive_core::time::Millis;
use redrive_store::{AckItem, Batch, Filter, Selection, StoreError};
use redrive_store_embedded::Durability;
use redrive_store_embedded::disk::{Call, Disk, SimulatedDisk, Trouble};

use crate::command::{Answer, Command, Failure};
use crate::oracle::Checked;
use crate::workload::queue;
use crate::world::{Dress, Tally, World};

/// A history of one seed.
pub(crate) type History = fn(u64, Dress) -> Checked<Tally>;

/// Calls of one round, more or less; what is to fail fails within them.
const CALLS: u64 = 120;

fn begin(mut world: World) -> Checked<World> {
    world.open()?;
    world.set_up()?;
    Ok(world)
}

/// Opens what is left, which may fail as often as the disk does, and then must work.
fn reopen(world: &mut World, cut: fn(&SimulatedDisk) -> SimulatedDisk, trouble: Trouble) -> Checked {
    let late = world.workload.span();
    world.advance(late);
    for _ in 0..2 {
        if !world.workload.chance(25) {
            break;
        }
        let calls = if trouble == Trouble::PowerCut { &Call::CHANGES[..] } else { &Call::ALL[..] };
        let skip = world.workload.dice.between(0, 12);
        world.disk.fail(calls, skip, trouble);
        match world.try_open() {
            // The power may be cut by then, though the store does not know it yet.
            Ok(()) if !world.disk.is_off() => {
                world.disk.disarm();
                return world.check_opened();
            }
            Ok(()) => world.oracle.opening_failed(world.now()),
            Err(error) => never_damaged(&error)?,
        }
        let left = cut(&world.disk);
        world.end(left);
        let late = world.workload.span();
        world.advance(late);
    }
    world.open()
}

fn never_damaged(error: &StoreError) -> Checked {
    match error {
        StoreError::Damaged { .. } => Err(format!("nothing is damaged, and yet: {error}")),
        _ => Ok(()),
    }
}

/// The power is cut at any call, or between two, again and again.
pub(crate) fn power_cuts(seed: u64, dress: Dress) -> Checked<Tally> {
    cuts(World::new(seed, dress), SimulatedDisk::crash)
}

/// The process is killed at any call, or between two; what it wrote is there, whether or not it waited for the disk.
pub(crate) fn kills(seed: u64, dress: Dress) -> Checked<Tally> {
    let mut world = World::new(seed, dress);
    world.options.durability = match world.workload.dice.between(0, 3) {
        0 => Durability::Interval(Millis::new(100)),
        1 => Durability::None,
        _ => Durability::Sync,
    };
    cuts(world, SimulatedDisk::kill)
}

/// Kills and power cuts in turn: what one process left in the cache, the next must not build on unsynced.
pub(crate) fn kills_and_power_cuts(seed: u64, dress: Dress) -> Checked<Tally> {
    let mut world = begin(World::new(seed, dress))?;
    for round in 0..4 {
        let cut = if round % 2 == 0 { SimulatedDisk::kill } else { SimulatedDisk::crash };
        one_cut(&mut world, cut)?;
    }
    world.steps(5)?;
    world.finish()
}

fn cuts(world: World, cut: fn(&SimulatedDisk) -> SimulatedDisk) -> Checked<Tally> {
    let mut world = begin(world)?;
    for _ in 0..world.workload.dice.between(2, 4) {
        one_cut(&mut world, cut)?;
    }
    world.steps(5)?;
    world.finish()
}

fn one_cut(world: &mut World, cut: fn(&SimulatedDisk) -> SimulatedDisk) -> Checked {
    if world.workload.chance(75) {
        let calls: &[Call] =
            if world.workload.chance(80) { &Call::CHANGES } else { &[Call::Write, Call::Sync] };
        let skip = world.workload.dice.between(0, CALLS);
        world.disk.fail(calls, skip, Trouble::PowerCut);
    }
    let steps = world.workload.dice.between(0, 80);
    world.steps(steps)?;
    let left = cut(&world.disk);
    world.end(left);
    reopen(world, cut, Trouble::PowerCut)
}

/// One call fails with EIO or ENOSPC: an answer that is wrong is worse than none.
pub(crate) fn errors(seed: u64, dress: Dress) -> Checked<Tally> {
    let mut world = begin(World::new(seed, dress))?;
    for _ in 0..world.workload.dice.between(2, 4) {
        let trouble = if world.workload.chance(60) { Trouble::Eio } else { Trouble::Enospc };
        let calls = match world.workload.dice.between(0, 3) {
            0 => &[Call::Sync][..],
            1 => &[Call::Write],
            _ => &Call::ALL,
        };
        let skip = world.workload.dice.between(0, CALLS);
        world.disk.fail(calls, skip, trouble);
        let steps = world.workload.dice.between(10, 50);
        world.steps(steps)?;
        after_error(&mut world, trouble)?;
    }
    world.steps(5)?;
    world.finish()
}

/// A store that has stopped is silent; the machine is started again, and what was answered is there.
pub(crate) fn after_error(world: &mut World, trouble: Trouble) -> Checked {
    if world.is_stopped() {
        world.is_silent()?;
    }
    world.disk.disarm();
    let cut = if world.workload.chance(50) { SimulatedDisk::kill } else { SimulatedDisk::crash };
    let left = cut(&world.disk);
    world.end(left);
    reopen(world, cut, trouble)
}

/// How often a bit is flipped in what one history left behind.
const FLIPS: u64 = 6;

/// A bit is flipped anywhere: the store refuses, and says where, or nothing is different.
pub(crate) fn flips(seed: u64, dress: Dress) -> Checked<Tally> {
    let mut world = begin(World::new(seed, dress))?;
    for _ in 0..world.workload.dice.between(1, 2) {
        let steps = world.workload.dice.between(5, 60);
        world.steps(steps)?;
        let left = world.disk.kill();
        world.end(left);
        for _ in 0..FLIPS {
            one_flip(&mut world)?;
        }
        world.open()?;
    }
    world.finish()
}

fn one_flip(world: &mut World) -> Checked {
    let disk = world.disk.kill();
    let (name, offset, bit) = somewhere(world, &disk)?;
    let at = if world.workload.chance(90) {
        disk.flip(&name, offset, bit);
        format!("bit {bit} of byte {offset} of {name} was flipped")
    } else {
        disk.truncate(&name, offset);
        format!("{name} was cut to {offset} bytes")
    };
    world.tally.openings += 1;
    match world.open_on(disk) {
        Ok((store, _)) => {
            world.oracle.check(&store, world.now()).map_err(|reason| format!("{at}, and not seen: {reason}"))
        }
        Err(StoreError::Damaged { location, .. }) => {
            world.tally.refused += 1;
            let named = location.contains(&name) && location.ends_with(|last: char| last.is_ascii_digit());
            if named { Ok(()) } else { Err(format!("{at}, and damage is told of {location}")) }
        }
        Err(other) => Err(format!("{at}, and the store says: {other}")),
    }
}

/// A bit: of any file, anywhere in it or near the end of what is used.
fn somewhere(world: &mut World, disk: &SimulatedDisk) -> Checked<(String, u64, u8)> {
    let names = disk.list().map_err(|error| error.to_string())?;
    let dice = &mut world.workload.dice;
    let number = usize::try_from(dice.between(0, names.len() as u64 - 1)).expect("small");
    let name = names.into_iter().nth(number).ok_or("there is no file")?;
    let content = disk.content(&name).ok_or("there is no such file")?;
    let used = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1) as u64;
    let offset = match dice.between(0, 3) {
        0 => dice.between(0, content.len() as u64 - 1),
        1 => dice.between(used.saturating_sub(300), used),
        _ => dice.between(0, used),
    };
    let bit = u8::try_from(dice.between(0, 7)).expect("small");
    Ok((name, offset.min(content.len() as u64 - 1), bit))
}

/// The disk is full: enqueues are refused, everything else goes on, and service returns by itself.
pub(crate) fn full_disks(seed: u64, dress: Dress) -> Checked<Tally> {
    let mut world = World::new(seed, dress);
    world.options.segment_bytes = 128 * 1024;
    world.workload.write_large_messages();
    let mut world = begin(world)?;
    for _ in 0..2 {
        let segments = world.workload.dice.between(1, 6);
        let room = world.disk.used() + segments * u64::from(world.options.segment_bytes);
        world.disk.set_capacity(Some(room));
        fill(&mut world)?;
        world.steps(30)?;
        if world.workload.chance(50) {
            let left = if world.workload.chance(50) { world.disk.kill() } else { world.disk.crash() };
            world.end(left);
            world.open()?;
            world.steps(10)?;
        }
        if world.workload.chance(50) {
            drain(&mut world)?;
        }
        if world.workload.chance(50) {
            world.disk.set_capacity(None);
        } else {
            empty(&mut world)?;
        }
        returns(&mut world)?;
        world.disk.set_capacity(None);
        let (store, now) = (world.store()?, world.now());
        world.oracle.check_now(store, now)?;
    }
    world.finish()
}

/// Enqueues until there is no room, or until the queues take no more.
fn fill(world: &mut World) -> Checked {
    for _ in 0..200 {
        let command = world.workload.enqueue(world.now());
        let outcomes = world.frame(vec![command])?;
        if matches!(outcomes.first(), Some(Err(Failure::Store("STORAGE_FULL", _)))) {
            return Ok(());
        }
    }
    Ok(())
}

/// Consumers do all the work there is.
fn drain(world: &mut World) -> Checked {
    for number in 0..3 {
        for _ in 0..100 {
            let command = world.workload.lease_from(queue(number), 20);
            let outcomes = world.frame(vec![command])?;
            let Some(Ok(Answer::Leased(leased))) = outcomes.first() else { break };
            let claims: Vec<Claim> = leased.messages.iter().filter_map(Claim::on).collect();
            if claims.is_empty() {
                break;
            }
            let items = claims.into_iter().map(|claim| AckItem { claim }).collect();
            world.frame(vec![Command::Ack(Batch::each(items).expect("a small batch"))])?;
        }
    }
    Ok(())
}

/// Throws everything away.
fn empty(world: &mut World) -> Checked {
    for number in 0..3 {
        for _ in 0..40 {
            let selection = Selection::new(queue(number), Filter::default());
            let outcomes = world.frame(vec![Command::Discard(selection, true)])?;
            if !matches!(outcomes.first(), Some(Ok(Answer::Bulk(bulk))) if bulk.matched > 0) {
                break;
            }
        }
    }
    Ok(())
}

/// Where there is room again, enqueues are taken again, in a moment.
fn returns(world: &mut World) -> Checked {
    for _ in 0..50 {
        world.advance(Millis::new(100));
        let command = world.workload.enqueue(world.now());
        let outcomes = world.frame(vec![command])?;
        if matches!(outcomes.first(), Some(Ok(_))) {
            return Ok(());
        }
        world.step()?;
    }
    Err("there is room again, and enqueues are still refused".to_owned())
}
