//! Every target: its corpus, and then a search from there for a second.
//!
//! `REDRIVE_FUZZ_SECONDS` searches for longer and `REDRIVE_SEED` from another seed. The seed is the same in every run
//! unless it is given, so that a test that passed passes again.

use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use redrive_fuzz::search::{Failure, replay, search};
use redrive_fuzz::{TARGETS, Target, corpus};

const SEED: u64 = 0x5EED;

fn main() -> ExitCode {
    let searches = TARGETS.iter().map(|target| Trial::test(target.name, || check(target)));
    let table = Trial::test("every_folder_of_the_corpus_has_a_target", folders);
    let trials = searches.chain([table]).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// `cargo xtask fuzz` goes by the folders, which need no build to be listed.
fn folders() -> Result<(), Failed> {
    let folders = std::fs::read_dir(corpus::folder("."))?.map(|entry| Ok(entry?.file_name()));
    let mut folders = folders.collect::<Result<Vec<_>, std::io::Error>>()?;
    let mut names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    folders.sort();
    names.sort_unstable();
    if folders == names { Ok(()) } else { Err(format!("{folders:?} is not {names:?}").into()) }
}

fn check(target: &Target) -> Result<(), Failed> {
    let inputs = corpus::read(target.name);
    if inputs.is_empty() {
        return Err(format!("there is nothing in {}", corpus::folder(target.name).display()).into());
    }
    replay(target, &inputs).map_err(|failure| told(target, &failure))?;
    let report = search(target, &inputs, seed(), time()).map_err(|failure| told(target, &failure))?;
    println!("{}: {report:?}", target.name);
    Ok(())
}

fn told(target: &Target, failure: &Failure) -> Failed {
    let file = corpus::keep(target.name, &failure.input);
    let found = match failure.seed {
        None => "an input of the corpus fails".to_owned(),
        Some(seed) => format!("the search from REDRIVE_SEED={seed:#x} found an input that fails"),
    };
    format!(
        "{}: {found}:\n{}\nb\"{}\"\nit is in {}; once it is mended, copy it into crates/fuzz/corpus/{}/ under a name that \
         says what it is",
        target.name,
        failure.reason,
        failure.input.escape_ascii(),
        file.display(),
        target.name
    )
    .into()
}

fn time() -> Duration {
    let seconds = std::env::var("REDRIVE_FUZZ_SECONDS")
        .map_or(1.0, |seconds| seconds.parse().expect("REDRIVE_FUZZ_SECONDS is a number"));
    Duration::from_secs_f64(seconds)
}

fn seed() -> u64 {
    let Ok(text) = std::env::var("REDRIVE_SEED") else {
        return SEED;
    };
    let seed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    seed.expect("REDRIVE_SEED is a number, or 0x and a hexadecimal one")
}
