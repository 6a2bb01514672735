//! A number for bytes, the same on every machine: FNV-1a with 64 bits.
//!
//! It tells a file that was changed from one that was not. It does not have to withstand anybody: all of it is ours. The build
//! script and `cargo xtask ui` include this file, too, and nothing but `std` is there for them.

/// A number that grows with what is added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fnv(u64);

impl Fnv {
    /// The number of nothing.
    pub(crate) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// The same with these bytes behind it.
    #[must_use]
    pub(crate) fn with(self, bytes: &[u8]) -> Self {
        let step = |number: u64, byte: &u8| (number ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        Self(bytes.iter().fold(self.0, step))
    }

    /// The number as text: sixteen digits.
    pub(crate) fn hex(self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_standard() {
        for (text, number) in
            [("", "cbf29ce484222325"), ("a", "af63dc4c8601ec8c"), ("foobar", "85944171f73967e8")]
        {
            assert_eq!(Fnv::new().with(text.as_bytes()).hex(), number, "{text}");
        }
        assert_eq!(Fnv::new().with(b"foo").with(b"bar").hex(), "85944171f73967e8");
    }
}
