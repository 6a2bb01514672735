//! A file system of its own, in a file: it can be cut off like a disk whose power fails, and it can be small.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Failure, program, random};

/// Every directory of ours starts with this and the id of the process that made it.
const PREFIX: &str = "redrive-real-";

/// The ioctl that ends a file system at once: `FS_IOC_SHUTDOWN` with the flag "do not flush the journal". Whoever is
/// there does it for us, since an ioctl is `unsafe` in Rust.
const SHUTDOWN: [(&str, &str); 2] = [
    ("perl", "open(my $f, '<', $ARGV[0]) or die $!; ioctl($f, 0x8004587d, pack('L', 2)) or die $!"),
    (
        "python3",
        "import fcntl, os, struct, sys\n\
         fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587d, struct.pack('I', 2))",
    ),
];

/// An ext4 in a file, mounted. Unmounted when it goes out of scope; the loop device goes with the mount.
#[derive(Debug)]
pub struct LoopFs {
    folder: PathBuf,
}

impl LoopFs {
    /// Makes one of `size` MiB, or says what is missing for it.
    pub fn new(size: u64) -> Result<Self, Failure> {
        let refused = || Failure::refused("a file for a file system");
        let word = random::word().map_err(refused())?;
        let fs = Self { folder: env::temp_dir().join(format!("{PREFIX}{}-{word}", std::process::id())) };
        // Servers run as other users: they may pass through, and see nothing on their way.
        DirBuilder::new().mode(0o711).create(&fs.folder).map_err(refused())?;
        fs::create_dir(fs.root()).map_err(refused())?;
        File::create(fs.image()).and_then(|file| file.set_len(size << 20)).map_err(refused())?;
        let mut format = Command::new("mkfs.ext4");
        format.args(["-q", "-m", "0"]).arg(fs.image());
        program::run(format)?;
        fs.mount()?;
        Ok(fs)
    }

    /// What keeps tests from using one here; nothing where they can. Found out by doing it once.
    pub fn missing() -> Option<String> {
        sweep();
        let cut = Self::new(8).and_then(|fs| fs.cut());
        cut.err().map(|failure| failure.to_string().trim_end().replace('\n', " "))
    }

    /// Where it is mounted.
    pub fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    /// The power fails, and comes back: what was not synced is gone. Whoever writes to it must be dead by then: a sync that
    /// races the end of the file system is told a success that did not happen.
    pub fn cut(&self) -> Result<(), Failure> {
        self.shut_down()?;
        let mut umount = Command::new("umount");
        umount.arg(self.root());
        program::run(umount)?;
        self.mount()
    }

    /// All that was written by now is on the disk when this returns.
    pub fn sync(&self) -> Result<(), Failure> {
        let refused = || Failure::refused("a sync of a file system");
        let root = File::open(self.root()).map_err(refused())?;
        rustix::fs::syncfs(root).map_err(|errno| refused()(errno.into()))
    }

    fn shut_down(&self) -> Result<(), Failure> {
        let mut done = Err(Failure::Stopped);
        for (name, script) in SHUTDOWN {
            let mut command = Command::new(name);
            command.args([if name == "perl" { "-e" } else { "-c" }, script]).arg(self.root());
            done = program::run(command).map(drop);
            if done.is_ok() {
                break;
            }
        }
        done
    }

    fn image(&self) -> PathBuf {
        self.folder.join("image")
    }

    fn mount(&self) -> Result<(), Failure> {
        let mut mount = Command::new("mount");
        mount.args(["-o", "loop"]).arg(self.image()).arg(self.root());
        program::run(mount).map(drop)
    }
}

impl Drop for LoopFs {
    fn drop(&mut self) {
        unmount(&self.root());
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// Takes away what a run that was killed left mounted.
fn sweep() {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    for path in mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(Path::new) {
        let Some(dir) = path.parent().filter(|dir| is_orphan(dir)) else { continue };
        unmount(path);
        drop(fs::remove_dir_all(dir));
    }
}

fn is_orphan(dir: &Path) -> bool {
    let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let maker = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
    // A process that has ended has no program any more, also where nobody has asked how it ended.
    maker.is_some_and(|pid| fs::read_link(Path::new("/proc").join(pid).join("exe")).is_err())
}

/// Where somebody still uses it, it goes when they do: nothing of ours stays behind.
fn unmount(root: &Path) {
    let mut umount = Command::new("umount");
    umount.arg(root).stdout(Stdio::null()).stderr(Stdio::null());
    if !umount.status().is_ok_and(|status| status.success()) {
        let mut lazy = Command::new("umount");
        drop(lazy.arg("-l").arg(root).stdout(Stdio::null()).stderr(Stdio::null()).status());
    }
}
