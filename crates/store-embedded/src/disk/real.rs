//! A directory of the file system.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, fdatasync, flock};

use super::{Disk, File};

/// The name of the file whose lock says who owns the directory.
const LOCK: &str = "lock";

/// A directory of the file system.
#[derive(Debug)]
pub struct RealDisk {
    dir: PathBuf,
    /// Open as long as the directory is ours: the kernel lets the lock go with the last descriptor, however the
    /// process ends.
    lock: Mutex<Option<fs::File>>,
}

impl RealDisk {
    /// The directory, made where it is not there, readable for nobody else.
    pub fn new(dir: impl Into<PathBuf>) -> io::Result<Self> {
        let dir = dir.into();
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::File::open(parent)?.sync_all()?;
        }
        Ok(Self { dir, lock: Mutex::new(None) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.dir
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

impl Disk for RealDisk {
    fn lock(&self) -> io::Result<bool> {
        let file = options().create(true).truncate(false).open(self.dir.join(LOCK))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
                Ok(true)
            }
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            if entry.file_type()?.is_file()
                && let Ok(name) = entry.file_name().into_string()
                && name != LOCK
            {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn create(&self, name: &str, size: u64) -> io::Result<Arc<dyn File>> {
        let path = self.dir.join(name);
        let file = options().create_new(true).open(&path)?;
        let filled = fallocate(&file, FallocateFlags::empty(), 0, size).map_err(io::Error::from);
        if let Err(error) = filled.and_then(|()| file.sync_all()) {
            drop(file);
            fs::remove_file(&path)?;
            return Err(error);
        }
        Ok(Arc::new(RealFile(file)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(RealFile(options().open(self.dir.join(name))?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.dir.join(from), self.dir.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.dir.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        fs::File::open(&self.dir)?.sync_all()
    }

    fn place(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }
}

#[derive(Debug)]
struct RealFile(fs::File);

impl File for RealFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(into, offset)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(fdatasync(&self.0)?)
    }
}
