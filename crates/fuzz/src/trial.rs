//! One input, run: whether it failed, and how it looked from outside.

use std::cell::{Cell, RefCell};
use std::fmt::{self, Display, Write};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use allocation_counter::AllocationInfo;

use crate::Target;

/// What came of one input.
#[derive(Debug)]
pub struct Trial {
    /// Why it failed, where it did.
    pub failure: Option<String>,
    /// All bytes that it allocated.
    pub bytes: u64,
    /// What it looked like from outside. Inputs of the same shape probably took the same way through the parser.
    pub shape: u64,
}

thread_local! {
    /// What targets noted during this trial.
    static NOTES: Cell<u64> = const { Cell::new(0) };
    /// Whether a trial is under way, and what the panic that ended it said.
    static UNDER_WAY: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Notes something that a parser said, such as why it refused its input. It has no meaning but to be different from what
/// it said before: an input that led to something new is worth going on from. Digits and what stands in quotes are not
/// looked at, so that an error that names an offset, or a part of the input, is one error.
pub fn note(said: impl Display) {
    let mut digest = Digest { sum: NOTES.get() ^ 0xCBF2_9CE4_8422_2325, quote: None };
    if write!(digest, "{said}").is_ok() {
        NOTES.set(digest.sum);
    }
}

/// A hash of what is said, which nothing is allocated for.
struct Digest {
    sum: u64,
    quote: Option<u8>,
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes().filter(|byte| !byte.is_ascii_digit()) {
            match self.quote {
                Some(quote) if byte == quote => self.quote = None,
                Some(_) => continue,
                None if matches!(byte, b'`' | b'"') => self.quote = Some(byte),
                None => {}
            }
            self.sum = (self.sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
        Ok(())
    }
}

/// Runs one input. A panic is caught and not printed: whoever asked says what failed, once, and for the smallest input.
pub fn run(target: &Target, input: &[u8]) -> Trial {
    listen_for_panics();
    NOTES.set(0);
    PANIC.take();
    UNDER_WAY.set(true);
    let mut outcome = Ok(());
    let allocated = allocation_counter::measure(|| {
        outcome = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    });
    UNDER_WAY.set(false);
    let failure = match outcome {
        Err(_) => Some(PANIC.take()),
        Ok(()) => too_dear(target, input, &allocated).err(),
    };
    Trial { failure, bytes: allocated.bytes_total, shape: shape(&allocated) }
}

/// The same for a caller that wants the panic: libFuzzer.
pub fn run_or_panic(target: &Target, input: &[u8]) {
    let allocated = allocation_counter::measure(|| (target.run)(input));
    if let Err(problem) = too_dear(target, input, &allocated) {
        panic!("{problem}");
    }
}

/// Memory must be paid for: who sends little must not make the server take much.
fn too_dear(target: &Target, input: &[u8], allocated: &AllocationInfo) -> Result<(), String> {
    let (bytes, max) = (allocated.bytes_total, target.bytes_max(input.len()));
    if bytes <= max {
        return Ok(());
    }
    Err(format!("allocated {bytes} bytes for an input of {} bytes, the limit is {max}", input.len()))
}

/// How often it allocated and how much, coarsely, and what was noted.
fn shape(allocated: &AllocationInfo) -> u64 {
    let (count, magnitude) = (allocated.count_total.min(63), u64::from(allocated.bytes_total.max(1).ilog2()));
    NOTES.get() ^ (count << 6 | magnitude).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Keeps what a panic during a trial says, instead of printing it.
fn listen_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if UNDER_WAY.get() {
                // The one that is caught on its way comes first, and is the one to look at.
                PANIC.with_borrow_mut(|said| *said = format!("{said}{panic}\n"));
            } else {
                usual(panic);
            }
        }));
    });
}
