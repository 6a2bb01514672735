//! How fast the engine is, beside a bare loop that writes the same bytes with the same number of syncs.
//!
//! `cargo xtask bench-engine` runs it. One file per group of figures; [`bare`] is the loop beside the engine, [`caller`]
//! the one who asks it for work, [`sustained`] drives both for a while, [`report`] prints.
//!
//! What a figure means:
//!
//! * The arms of a round take turns of half a second, so that what else the machine does hits both; a bar judges the
//!   median of the rounds' own ratios, and every round is printed.
//! * CPU is what the kernel charges the whole process, user and system, the caller's own share included. It is the
//!   sum that `getrusage` answers, read from the process's CPU clock because that one counts nanoseconds.
//! * The store's files are where `--dir` says, or in cargo's target folder: never on a file system in memory by chance.

#![expect(clippy::cast_precision_loss, reason = "figures for people: 52 bits are more than a clock has")]

mod arguments;
mod bare;
mod caller;
mod callers;
mod cleaning;
mod cold;
mod fairness;
mod life_cycle;
mod machine;
mod measure;
mod memory;
mod progress;
mod report;
mod retry;
mod scale;
mod sustained;

use std::process::ExitCode;

use arguments::{Arguments, Run};
use report::Bars;
use scale::Scale;

/// A group of figures that can be run alone.
type Group = (&'static str, fn(&Context, &mut Bars));

/// In the order in which they run.
const GROUPS: [Group; 7] = [
    ("life_cycle", life_cycle::run),
    ("callers", callers::run),
    ("retry", retry::run),
    ("fairness", fairness::run),
    ("cold", cold::run),
    ("memory", memory::run),
    ("cleaning", cleaning::run),
];

/// What every group is told.
struct Context {
    scale: Scale,
    place: machine::Place,
}

fn main() -> ExitCode {
    match Arguments::parse(std::env::args().skip(1), &GROUPS.map(|(name, _)| name)) {
        Ok(Run::Child { what, arguments }) => {
            memory::child(what, &arguments);
            ExitCode::SUCCESS
        }
        Ok(Run::Bench(arguments)) => bench(&arguments),
        Err(problem) => {
            eprintln!("bench-engine: {problem}");
            ExitCode::from(2)
        }
    }
}

fn bench(arguments: &Arguments) -> ExitCode {
    let context = Context {
        scale: Scale::new(arguments.quick),
        place: machine::Place::new(arguments.dir.as_deref()).expect("a directory to work in"),
    };
    machine::print_header(context.place.path());
    let mut bars = Bars::default();
    for (name, run) in GROUPS {
        if arguments.wants(name) {
            println!("\n== {name}");
            run(&context, &mut bars);
        }
    }
    println!();
    bars.print();
    if arguments.quick {
        println!("a quick run: everything was shrunk, and its bars mean nothing");
    }
    if arguments.check && bars.any_short() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
