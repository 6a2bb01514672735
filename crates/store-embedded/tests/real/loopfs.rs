//! A file system of its own, in a file: it can be cut off like a disk whose power fails, and it can be small.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

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
pub(crate) struct LoopFs {
    dir: TempDir,
}

impl LoopFs {
    /// Makes one of `size` MiB, or says what is missing for it.
    pub(crate) fn new(size: u64) -> Result<Self, String> {
        let dir = tempfile::Builder::new().prefix(&format!("{PREFIX}{}-", std::process::id())).tempdir();
        let fs = Self { dir: dir.map_err(|error| error.to_string())? };
        fs::create_dir(fs.root()).map_err(|error| error.to_string())?;
        let image = File::create(fs.image()).and_then(|file| file.set_len(size << 20));
        image.map_err(|error| error.to_string())?;
        run(Command::new("mkfs.ext4").args(["-q", "-m", "0"]).arg(fs.image()))?;
        fs.mount()?;
        Ok(fs)
    }

    /// Where it is mounted.
    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    /// The power fails, and comes back: what was not synced is gone.
    pub(crate) fn cut(&self) -> Result<(), String> {
        self.shut_down()?;
        run(Command::new("umount").arg(self.root()))?;
        self.mount()
    }

    fn shut_down(&self) -> Result<(), String> {
        let mut problems = Vec::new();
        for (program, script) in SHUTDOWN {
            let flag = if program == "perl" { "-e" } else { "-c" };
            match run(Command::new(program).args([flag, script]).arg(self.root())) {
                Ok(()) => return Ok(()),
                Err(problem) => problems.push(problem),
            }
        }
        Err(problems.join("; "))
    }

    fn image(&self) -> PathBuf {
        self.dir.path().join("image")
    }

    fn mount(&self) -> Result<(), String> {
        run(Command::new("mount").args(["-o", "loop"]).arg(self.image()).arg(self.root()))
    }
}

impl Drop for LoopFs {
    fn drop(&mut self) {
        unmount(&self.root());
    }
}

/// What keeps these tests from running here; `None` where nothing does. Found out by doing it once.
pub(crate) fn missing() -> Option<String> {
    sweep();
    let fs = match LoopFs::new(8) {
        Ok(fs) => fs,
        Err(problem) => return Some(problem),
    };
    fs.cut().err()
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

fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program}: {}", said.lines().next().unwrap_or("failed and said nothing")))
}
