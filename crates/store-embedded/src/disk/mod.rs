//! The disk as the engine sees it: one directory of files, which a test can make lose, tear and fail.
//!
//! The promises are those of POSIX and no more. What was written is on the disk only after [`File::sync`]; a name is
//! there, or gone, only after [`Disk::sync_names`]. After a failed sync nothing is known about what was written
//! before it, and a second sync that succeeds says nothing either.

mod real;
mod simulated;

pub use real::RealDisk;
pub use simulated::{Call, Lies, SECTOR_BYTES, SimulatedDisk, Trouble};

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

/// One directory.
pub trait Disk: Debug + Send + Sync {
    /// Takes the directory for this process, or says that another one has it. Held until the disk is dropped.
    fn lock(&self) -> io::Result<bool>;

    /// The names of all files, in any order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Creates a file of `size` bytes with the space for them, or fails and leaves nothing behind. Reads as zeros.
    fn create(&self, name: &str, size: u64) -> io::Result<Arc<dyn File>>;

    /// Opens a file that is there.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Gives a file another name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes creations, renames and removals durable.
    fn sync_names(&self) -> io::Result<()>;

    /// Where a file is, for a person.
    fn place(&self, name: &str) -> String;
}

/// An open file.
pub trait File: Debug + Send + Sync {
    /// How long it is.
    fn size(&self) -> io::Result<u64>;

    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Fills `into` from `offset`; a file that ends before that is an error.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()>;

    /// Makes what was written durable.
    fn sync(&self) -> io::Result<()>;
}
