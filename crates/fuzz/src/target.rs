//! A target: a parser, what feeds and checks it, and what it may cost.

/// What a target may allocate whatever it is fed: what it needs to begin with, and to say what is wrong.
pub(crate) const FIXED_BYTES: u64 = 16 * 1024;
/// And for each byte of its input: to decode it, and to print it and decode it again.
const BYTES_PER_BYTE: u64 = 64;

/// One parser under test.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, which is that of its folder in `corpus/`.
    pub name: &'static str,
    /// Feeds an input to the parser, and panics where something does not hold that must.
    pub run: fn(&[u8]),
    /// Words of its language, which chance would take long to spell.
    pub words: &'static [&'static str],
    fixed_bytes: u64,
    bytes_per_byte: u64,
}

impl Target {
    /// A target with the usual limits.
    pub const fn new(name: &'static str, run: fn(&[u8])) -> Self {
        Self { name, run, words: &[], fixed_bytes: FIXED_BYTES, bytes_per_byte: BYTES_PER_BYTE }
    }

    /// The same with words of its language.
    #[must_use]
    pub const fn knowing(self, words: &'static [&'static str]) -> Self {
        Self { words, ..self }
    }

    /// The same with other limits: all bytes that it may ever allocate on the thread that runs it, also those that it
    /// gives back, as a number to begin with and a number for each byte of its input.
    #[must_use]
    pub const fn costing(self, fixed_bytes: u64, bytes_per_byte: u64) -> Self {
        Self { fixed_bytes, bytes_per_byte, ..self }
    }

    /// How many bytes it may allocate for an input of that length.
    pub const fn bytes_max(&self, input: usize) -> u64 {
        self.fixed_bytes + self.bytes_per_byte * input as u64
    }
}
