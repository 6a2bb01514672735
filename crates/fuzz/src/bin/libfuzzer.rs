//! The entry of libFuzzer: the target that `REDRIVE_FUZZ_TARGET` names. It is built by `cargo xtask fuzz`.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use redrive_core::dice::Dice;
use redrive_fuzz::mutate::Mutator;
use redrive_fuzz::{Target, named, trial};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("REDRIVE_FUZZ_TARGET").expect("REDRIVE_FUZZ_TARGET names the target");
    named(&name).expect("there is a target of that name")
});

fuzz_target!(|input: &[u8]| trial::run_or_panic(&TARGET, input));

// libFuzzer sees comparisons of numbers, but those of texts only with a sanitizer. Our own mutator knows the words of the
// target, so every other input is made by it.
fuzz_mutator!(|input: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed.is_multiple_of(2) {
        return fuzzer_mutate(input, size, max_size);
    }
    let mut mutator = Mutator::new(Dice::seeded(seed.into()), TARGET.words);
    let made = mutator.change(&input[..size], &[]);
    let length = made.len().min(max_size);
    input[..length].copy_from_slice(&made[..length]);
    length
});
