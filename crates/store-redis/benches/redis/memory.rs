//! What the server needs for a message that waits, and for a key that has one.

use redrive_core::lifecycle::Draft;
use redrive_core::message::FairnessKey;

use crate::Context;
use crate::caller::Caller;
use crate::life_cycle::BODY_BYTES;
use crate::report::{Bars, Table};

/// Loads so many messages, and answers by how much the server grew for each of them.
fn grown(context: &Context, name: &str, set: impl FnMut(u64, &mut Draft)) -> f64 {
    let messages = context.scale.keys;
    let mut caller = context.runtime.block_on(Caller::open(&context.server, name, 1, BODY_BYTES));
    let before = context.server.memory();
    context.runtime.block_on(caller.load(messages, set));
    let after = context.server.memory();
    // Whoever measures next begins where this one did.
    drop(context.runtime.block_on(Caller::open(&context.server, name, 1, BODY_BYTES)));
    after.saturating_sub(before) as f64 / messages as f64
}

/// Reported; nothing is promised about it.
pub(crate) fn run(context: &Context, _: &mut Bars) {
    let mut table = Table::new(&["what", "round", "bytes of memory", "beyond its body"]);
    for round in 1..=context.scale.rounds {
        let waiting = grown(context, "waiting", |_, _| ());
        let keyed = grown(context, "keyed", |n, draft| {
            draft.spec.fairness_key = FairnessKey::new(format!("tenant-{n:07}")).expect("a good key");
        });
        let beyond = |bytes: f64| format!("{:.0}", bytes - BODY_BYTES as f64);
        table.row(&[&"a waiting message", &round, &format!("{waiting:.0}"), &beyond(waiting)]);
        table.row(&[&"a key that is active", &round, &format!("{:.0}", keyed - waiting), &"-"]);
    }
    println!(
        "{} messages of 1 KiB, of one key, and of a key each; used_memory of the server",
        context.scale.keys
    );
    table.print();
}
