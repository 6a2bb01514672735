//! A streaming replica, and the day it becomes the primary.

use std::fs::{self, OpenOptions};
use std::io::Write;

use rustix::process::Signal;

use crate::folder::{Folder, Tenant};
use crate::settings::quoted;
use crate::template::USER;
use crate::{Failure, Postgres, program};

/// What the log of a standby says when it follows its primary.
const STREAMING: &str = "started streaming WAL from primary";
/// What it says when it is one itself.
const PROMOTED: &str = "database system is ready to accept connections";

impl Postgres {
    /// A copy of this server on a port of its own, which follows it from then on. `name` is what the primary calls it.
    pub fn standby(&self, name: &str) -> Result<Self, Failure> {
        let folder = Folder::new(Tenant::Postgres, self.account)?;
        let primary = format!(
            "host=127.0.0.1 port={} user={USER} password={} application_name={name}",
            self.port(),
            self.password
        );
        let mut backup = self.account.command(&self.binaries.path("pg_basebackup"), folder.path());
        backup.arg("--pgdata").arg(folder.data()).arg("--dbname").arg(primary);
        backup.args(["--write-recovery-conf", "--wal-method", "stream", "--checkpoint", "fast", "--no-sync"]);
        program::run(backup)?;
        forget_synchronous(&folder)?;
        let mut standby = self.copied(name, folder);
        standby.start_on_a_free_port()?;
        standby.wait_for(STREAMING, 0)?;
        Ok(standby)
    }

    /// From now on a commit waits until this standby has it, too.
    pub fn wait_for_commits_on(&self, standby: &Self) -> Result<(), Failure> {
        let before = self.position();
        let state = format!(
            "SELECT sync_state FROM pg_stat_replication WHERE application_name = {}",
            quoted(&standby.name)
        );
        // It is said once.
        if self.sql(&state)? == "sync" {
            return Ok(());
        }
        self.set("synchronous_standby_names", &format!("\"{}\"", standby.name))?;
        // The primary decides when the standby reports, which it does at once for something new and rarely otherwise.
        self.sql("SELECT pg_switch_wal()")?;
        self.wait_for(&format!("standby \"{}\" is now a synchronous standby", standby.name), before)
    }

    /// Makes a primary of a standby, and waits until it can be written.
    pub fn promote(&self) -> Result<(), Failure> {
        let before = self.position();
        // This is what `pg_ctl promote` does before it begins to poll.
        fs::write(self.folder.data().join("promote"), "").map_err(Failure::refused("the promotion"))?;
        self.signal(Signal::USR1)?;
        self.wait_for(PROMOTED, before)
    }
}

/// The copy has what was set on the primary. If commits wait there for a standby, the copy would wait for one as well
/// when it is promoted, and there is none.
fn forget_synchronous(folder: &Folder) -> Result<(), Failure> {
    let refused = || Failure::refused("postgresql.auto.conf");
    let path = folder.data().join("postgresql.auto.conf");
    let mut file = OpenOptions::new().append(true).open(path).map_err(refused())?;
    writeln!(file, "synchronous_standby_names = ''").map_err(refused())
}
