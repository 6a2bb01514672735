//! Which node serves a slot, and the way of a slot to another one.

use std::io;

use super::cluster::{SLOTS, view};
use super::{Redis, RedisCluster};
use crate::Failure;

/// How many keys are asked for at a time.
const KEYS_MAX: &str = "100";
/// How long a key may take, in milliseconds.
const MIGRATE_MAX: &str = "10000";

impl RedisCluster {
    /// The slot of a key, which is that of its `{tag}` where it has one.
    pub fn slot_of(&self, key: &str) -> Result<u16, Failure> {
        let running = self.nodes().iter().find(|node| node.is_running()).ok_or(Failure::Stopped)?;
        let slot = running.command(&["CLUSTER", "KEYSLOT", key])?;
        slot.parse().map_err(|_| unknown(&format!("the slot of {key}")))
    }

    /// The number of the node that serves a slot.
    pub fn node_of_slot(&self, slot: u16) -> Result<usize, Failure> {
        let mut claims = Vec::new();
        for (number, node) in self.nodes().iter().enumerate().filter(|(_, node)| node.is_running()) {
            let claim = view(node)?.into_iter().find(|node| node.is("myself") && node.is("master"));
            claims.extend(claim.filter(|node| node.serves(slot)).map(|node| (node.epoch, number)));
        }
        // Who was away while another one took its place may not know it yet.
        let (_, number) = claims.into_iter().max().ok_or_else(|| unknown(&format!("slot {slot}")))?;
        Ok(number)
    }

    /// Moves a slot to another master, key by key, while clients use it.
    pub fn move_slot(&self, slot: u16, to: usize) -> Result<(), Failure> {
        self.move_slot_slowly(slot, to, |_| {})
    }

    /// The same with a pause before each key and one behind the last, which is told how many have been moved. In it the
    /// slot is half moved: the old master still has it, and sends who asks for a key that is gone to the new one (`ASK`).
    pub fn move_slot_slowly(
        &self,
        slot: u16,
        to: usize,
        mut pause: impl FnMut(usize),
    ) -> Result<(), Failure> {
        assert!(slot < SLOTS, "there is no slot {slot}");
        let from = self.node_of_slot(slot)?;
        if from == to {
            return Ok(());
        }
        let (old, new, text) = (self.node(from), self.node(to), slot.to_string());
        new.command(&["CLUSTER", "SETSLOT", &text, "IMPORTING", self.id(from)])?;
        old.command(&["CLUSTER", "SETSLOT", &text, "MIGRATING", self.id(to)])?;
        let mut moved = 0;
        loop {
            let keys = old.ask(&[b"CLUSTER", b"GETKEYSINSLOT", text.as_bytes(), KEYS_MAX.as_bytes()])?;
            if keys.words().next().is_none() {
                break;
            }
            for key in keys.words() {
                pause(moved);
                migrate(old, new, key)?;
                moved += 1;
            }
        }
        pause(moved);
        self.settle(&text, [to, from])
    }

    /// The new master is told first: if the others knew before, and it was lost, nobody would have the slot.
    fn settle(&self, slot: &str, [to, from]: [usize; 2]) -> Result<(), Failure> {
        let others = (0..self.nodes().len()).filter(|&number| number != to && number != from);
        for node in [to, from].into_iter().chain(others).map(|number| self.node(number)) {
            // A replica has no say in it, and hears of it from its master.
            if node.is_running() && view(node)?.iter().any(|node| node.is("myself") && node.is("master")) {
                node.command(&["CLUSTER", "SETSLOT", slot, "NODE", self.id(to)])?;
            }
        }
        Ok(())
    }
}

/// A key that has gone meanwhile needs no moving.
fn migrate(from: &Redis, to: &Redis, key: &[u8]) -> Result<(), Failure> {
    let port = to.port().to_string();
    let words: [&[u8]; 6] = [b"MIGRATE", b"127.0.0.1", port.as_bytes(), key, b"0", MIGRATE_MAX.as_bytes()];
    let password = to.password().map(|password| [&b"AUTH"[..], password.as_bytes()]);
    let words: Vec<&[u8]> = words.into_iter().chain(password.into_iter().flatten()).collect();
    from.ask(&words).map(drop)
}

fn unknown(what: &str) -> Failure {
    Failure::refused(what)(io::Error::other("no node of the cluster that runs knows it"))
}
