//! Every bit of the last frame that was synced: the one place where damage could be taken for a crash.

use redrive_store::StoreError;
use redrive_store_embedded::disk::{Disk, SimulatedDisk};

use crate::layout::{FRAME_HEADER, frames};
use crate::oracle::Checked;
use crate::seeds::asked;
use crate::world::{World, honest};

/// The newest segment, and where its last frame that is more than a mark begins and ends.
fn last_frame(disk: &SimulatedDisk) -> Option<(String, usize, usize)> {
    let mut names = disk.list().ok()?;
    names.retain(|name| name.ends_with(".segment"));
    let name = names.into_iter().max()?;
    let content = disk.content(&name)?;
    let (at, length) = frames(&content).into_iter().rfind(|(_, length)| *length > 0)?;
    Some((name, at, at + length))
}

fn flipped_everywhere(seed: u64) -> Checked<u64> {
    let mut world = World::new(seed, honest);
    world.open()?;
    world.set_up()?;
    world.steps(30)?;
    let left = world.disk.kill();
    world.end(left);
    let (name, at, end) = last_frame(&world.disk).ok_or("there is no frame")?;
    let mut flips = 0;
    for byte in at..end {
        let bits = if byte < at + FRAME_HEADER { 0..8 } else { byte % 8..byte % 8 + 1 };
        for bit in bits {
            let disk = world.disk.kill();
            disk.flip(&name, byte as u64, u8::try_from(bit).expect("0 to 7"));
            let expected = format!("{} at offset {at}", disk.place(&name));
            match world.open_on(disk) {
                Err(StoreError::Damaged { location, .. }) if location == expected => flips += 1,
                other => return Err(format!("bit {bit} of byte {byte} of {name}: {:?}", other.map(|_| ()))),
            }
        }
    }
    Ok(flips)
}

#[test]
fn every_bit_of_the_last_synced_frame_is_seen_and_its_frame_is_named() {
    if asked().is_some() {
        return;
    }
    for seed in 0..4 {
        let flips = flipped_everywhere(seed).unwrap_or_else(|reason| panic!("history {seed}: {reason}"));
        assert!(flips > 300, "a frame has more bits than that: {flips}");
    }
}
