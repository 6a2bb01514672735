//! How fast the store on PostgreSQL is, beside a bare hand-written `SKIP LOCKED` loop on the same server.
//!
//! `cargo xtask bench-postgres` runs it. One file per group of figures; [`bare`] is the loop beside the store, whose
//! statements are in `sql/`, [`caller`] the one who calls the store, [`turns`] lets the two take turns. Tables and bars are
//! those of `bench-engine`.
//!
//! What a figure means:
//!
//! * The store is called as the broker calls it, at its API: no HTTP and no broker in between. Both arms have the same
//!   server with its usual settings (`fsync` on), the same payload, the same batches, as many callers and as many
//!   connections.
//! * The arms of a round take turns of a second or so, so that what else the machine does hits both; a bar judges the
//!   median of the rounds' own ratios, and every round is printed.
//! * CPU is what the kernel charges this process, user and system: the sum that `getrusage` answers, read from the
//!   process's CPU clock. The server's share is not in it, and is printed beside it, from `/proc`.

#![expect(clippy::cast_precision_loss, reason = "figures for people: 52 bits are more than a clock has")]

pub(crate) mod arguments;
pub(crate) mod bare;
pub(crate) mod caller;
pub(crate) mod copy;
pub(crate) mod fairness;
pub(crate) mod host;
pub(crate) mod life_cycle;
pub(crate) mod machine;
pub(crate) mod pinned;
pub(crate) mod scale;
pub(crate) mod turns;

#[path = "../../../store-embedded/benches/engine/measure.rs"]
#[expect(dead_code, reason = "shared with bench-engine, which measures more")]
pub(crate) mod measure;
#[path = "../../../store-embedded/benches/engine/progress.rs"]
pub(crate) mod progress;
#[path = "../../../store-embedded/benches/engine/report.rs"]
pub(crate) mod report;

use std::process::ExitCode;

use arguments::Arguments;
use machine::Server;
use report::Bars;
use scale::Scale;

/// What the bench is called by who runs it.
pub(crate) const NAME: &str = "bench-postgres";

/// A group of figures that can be run alone.
type Group = (&'static str, fn(&Context, &mut Bars));

/// In the order in which they run.
const GROUPS: [Group; 5] = [
    ("batches", life_cycle::batches),
    ("singles", life_cycle::singles),
    ("copy", copy::run),
    ("fairness", fairness::run),
    ("pinned", pinned::run),
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
