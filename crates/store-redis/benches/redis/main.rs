//! How fast the store on Redis is, beside a bare hand-written loop of `XADD`, `XREADGROUP`, `XACK` and `XDEL` on the same server.
//!
//! `cargo xtask bench-redis` runs it. [`bare`] is the loop beside the store; callers, turns, tables and bars are those of
//! `bench-postgres` and `bench-engine`, so that figures of one mean what figures of the other mean.
//!
//! What a figure means:
//!
//! * The store is called as the broker calls it, at its API: no HTTP and no broker in between. Both arms have the same
//!   server, with an append-only file that is synced every second, the same payload, the same batches, as many callers, and one
//!   connection that all callers of an arm share.
//! * The arms of a round take turns of a second or so, so that what else the machine does hits both; a bar judges the
//!   median of the rounds' own ratios, and every round is printed.
//! * CPU is what the kernel charges this process, user and system: the sum that `getrusage` answers, read from the
//!   process's CPU clock. The server's share is not in it, and is printed beside it, from `/proc`.

#![expect(clippy::cast_precision_loss, reason = "figures for people: 52 bits are more than a clock has")]

pub(crate) mod bare;
pub(crate) mod machine;
pub(crate) mod memory;

#[path = "../../../store-postgres/benches/postgres/arguments.rs"]
pub(crate) mod arguments;
#[path = "../../../store-postgres/benches/postgres/caller.rs"]
#[expect(dead_code, reason = "shared with bench-postgres, which measures more")]
pub(crate) mod caller;
#[path = "../../../store-postgres/benches/postgres/fairness.rs"]
pub(crate) mod fairness;
#[path = "../../../store-postgres/benches/postgres/host.rs"]
pub(crate) mod host;
#[path = "../../../store-postgres/benches/postgres/life_cycle.rs"]
pub(crate) mod life_cycle;
#[path = "../../../store-embedded/benches/engine/measure.rs"]
#[expect(dead_code, reason = "shared with bench-engine, which measures more")]
pub(crate) mod measure;
#[path = "../../../store-embedded/benches/engine/progress.rs"]
pub(crate) mod progress;
#[path = "../../../store-embedded/benches/engine/report.rs"]
#[expect(dead_code, reason = "shared with bench-engine, which measures more")]
pub(crate) mod report;
#[path = "../../../store-postgres/benches/postgres/scale.rs"]
#[expect(dead_code, reason = "shared with bench-postgres, which measures more")]
pub(crate) mod scale;
#[path = "../../../store-postgres/benches/postgres/turns.rs"]
pub(crate) mod turns;

use std::process::ExitCode;

use arguments::Arguments;
use machine::Server;
use report::Bars;
use scale::Scale;

/// What the bench is called by who runs it.
pub(crate) const NAME: &str = "bench-redis";

/// A group of figures that can be run alone.
type Group = (&'static str, fn(&Context, &mut Bars));

/// In the order in which they run.
const GROUPS: [Group; 4] = [
    ("batches", life_cycle::batches),
    ("singles", life_cycle::singles),
    ("fairness", fairness::run),
    ("memory", memory::run),
];

/// What every group is told.
pub(crate) struct Context {
    scale: Scale,
    server: Server,
    runtime: tokio::runtime::Runtime,
}

fn main() -> ExitCode {
    match Arguments::parse(std::env::args().skip(1), &GROUPS.map(|(name, _)| name)) {
        Ok(arguments) => bench(&arguments),
        Err(problem) => {
            eprintln!("{NAME}: {problem}");
            ExitCode::from(2)
        }
    }
}

fn bench(arguments: &Arguments) -> ExitCode {
    let bars = figures(arguments);
    println!();
    bars.print();
    if arguments.quick {
        println!("a quick run: everything was shrunk, and its bars mean nothing");
    }
    if arguments.check && bars.any_short() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Measures and prints what is asked for.
pub(crate) fn figures(arguments: &Arguments) -> Bars {
    let context = Context {
        scale: Scale::new(arguments),
        server: Server::start(),
        runtime: tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime"),
    };
    context.server.print_header();
    let mut bars = Bars::default();
    for (name, run) in GROUPS {
        if arguments.wants(name) {
            println!("\n== {name}");
            run(&context, &mut bars);
        }
    }
    bars
}
