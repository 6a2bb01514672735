//! The n-th call fails, for every n: one history, as often as it has calls.

use redrive_store_embedded::disk::{Call, Trouble};

use crate::oracle::Checked;
use crate::rounds::after_error;
use crate::seeds::asked;
use crate::world::{World, honest};

const SEED: u64 = 0x5EED;
const STEPS: u64 = 60;

/// Lets the n-th call fail. Answers whether there was one.
fn nth(calls: &[Call], skip: u64, trouble: Trouble) -> Checked<bool> {
    let mut world = World::new(SEED, honest);
    world.disk.fail(calls, skip, trouble);
    let fired = match world.open() {
        Ok(()) => {
            world.set_up()?;
            world.steps(STEPS)?;
            let fired = world.disk.fired();
            after_error(&mut world, trouble)?;
            fired
        }
        // It may have stopped right after it was opened.
        Err(reason) => {
            let fired = world.disk.fired().ok_or(reason)?;
            let left = world.disk.kill();
            world.end(left);
            world.open()?;
            Some(fired)
        }
    };
    world.set_up()?;
    world.steps(STEPS / 4)?;
    Ok(fired.is_some())
}

fn every(calls: &[Call], trouble: Trouble) {
    if asked().is_some() {
        return;
    }
    let mut skip = 0;
    loop {
        match nth(calls, skip, trouble) {
            Ok(true) => skip += 1,
            Ok(false) => break,
            Err(reason) => panic!("call {skip} of {calls:?} fails with {trouble:?}: {reason}"),
        }
    }
    println!("{skip} calls failed with {trouble:?}, one at a time");
    assert!(skip > 3, "there are more calls than that: {skip}");
}

const LOOKS: [Call; 3] = [Call::Open, Call::List, Call::Read];

#[test]
fn every_write_and_sync_may_fail_with_eio() {
    every(&Call::CHANGES, Trouble::Eio);
}

#[test]
fn every_write_and_sync_may_fail_with_enospc() {
    every(&Call::CHANGES, Trouble::Enospc);
}

#[test]
fn every_read_may_fail() {
    every(&LOOKS, Trouble::Eio);
}

#[test]
fn the_power_may_be_cut_at_every_call() {
    every(&Call::CHANGES, Trouble::PowerCut);
}
