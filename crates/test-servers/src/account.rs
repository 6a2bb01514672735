//! Whose processes they are: PostgreSQL refuses to run as root, and Redis had better not.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::lchown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::Failure;

/// Who owns nothing.
const NOBODY: &str = "nobody";

/// The user that the server runs as.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    /// User and group; none where the server runs as we do.
    ids: Option<(u32, u32)>,
}

impl Account {
    /// Where we are root, it is the user of Debian's package, or the one who owns nothing.
    pub(crate) fn find(name: &str) -> Result<Self, Failure> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self { ids: None });
        }
        let users = fs::read_to_string("/etc/passwd").map_err(Failure::refused("/etc/passwd"))?;
        let nobody = || io::Error::other("we are root, and there is nobody else");
        let ids = [name, NOBODY].iter().find_map(|name| ids_of(&users, name)).ok_or_else(nobody);
        Ok(Self { ids: Some(ids.map_err(Failure::refused("/etc/passwd"))?) })
    }

    /// A command of this user, in a folder of its own: our current one may be closed to it. Which server and which
    /// language somebody likes is not its business.
    pub(crate) fn command(self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(folder).env("LC_ALL", "C");
        for (name, _) in env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PG")) {
            command.env_remove(name);
        }
        if let Some((user, group)) = self.ids {
            command.uid(user).gid(group);
        }
        command
    }

    /// Gives a file, or a folder with all that is in it, to this user.
    pub(crate) fn own(self, path: &Path) -> io::Result<()> {
        let Some((user, group)) = self.ids else {
            return Ok(());
        };
        lchown(path, Some(user), Some(group))?;
        if path.symlink_metadata()?.is_dir() {
            for entry in fs::read_dir(path)? {
                self.own(&entry?.path())?;
            }
        }
        Ok(())
    }
}

/// User and group of a name in the words of `/etc/passwd`.
fn ids_of(users: &str, name: &str) -> Option<(u32, u32)> {
    let mut fields = users.lines().map(|line| line.split(':')).find_map(|mut fields| {
        let found = fields.next() == Some(name);
        found.then_some(fields)
    })?;
    Some((fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_the_whole_name() {
        let users =
            "root:x:0:0:root:/root:/bin/bash\npostgres2:x:7:8::/:/bin/sh\npostgres:x:101:104:,,,:/:/bin/sh\n";
        assert_eq!(ids_of(users, "postgres"), Some((101, 104)));
        assert_eq!(ids_of(users, "nobody"), None);
    }
}
