//! Names that nobody else has, and a password that nobody knows.

use std::fs::File;
use std::io::{self, Read};

/// 128 bits in hex, which need no quoting anywhere.
pub(crate) fn word() -> io::Result<String> {
    Ok(format!("{:032x}", number()?))
}

/// 128 bits.
pub(crate) fn number() -> io::Result<u128> {
    let mut bits = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bits)?;
    Ok(u128::from_ne_bytes(bits))
}
