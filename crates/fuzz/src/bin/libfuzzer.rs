//! The entry of libFuzzer: the target that `REDRIVE_FUZZ_TARGET` names. It is built by `cargo xtask fuzz`.

#![no_main]

use std::sync::LazyLock;

use redrive_fuzz::{Target, named, trial};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("REDRIVE_FUZZ_TARGET").expect("REDRIVE_FUZZ_TARGET names the target");
    named(&name).expect("there is a target of that name")
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| trial::run_or_panic(&TARGET, input));
