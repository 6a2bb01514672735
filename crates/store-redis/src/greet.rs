//! What is asked of a server before it is used: whether it is the one that was there before.
//!
//! A replica that takes over may not have all that its master had acknowledged, and nobody can tell what it lacks. So every server is
//! known by its replication id, which changes when a server starts and when a replica becomes the master; in the latter case, and
//! where a server starts from a snapshot, it names the id that it follows. The epoch of lease ids is raised in either case, so that
//! no token is given out twice. One that knows of fewer leases than this instance was given has lost something for certain. Where
//! something may be lost, leases of before are refused, too: their holders cannot know what
//! the new master knows of them.
//!
//! One that was started again is asked to write its append-only file anew. A cut in the middle of a write leaves the beginning of a
//! transaction at the end of that file. Redis does not carry it out, but leaves it there and appends to it: read once more, it would
//! come true before all that was written since without it.

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use redrive_store::StoreError;

use crate::durability::Keeping;
use crate::error::{Fault, damaged, unavailable, unreached};
use crate::link::Link;
use crate::reply::{self, Reply};

/// The version of what is written down.
pub(crate) const FORMAT: &str = "1";
/// What stands where no id is followed.
const NOBODY: &str = "0000000000000000000000000000000000000000";

/// A line of what `INFO` says.
pub(crate) fn info<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'))
}

pub(crate) async fn ask(connection: &mut MultiplexedConnection, command: &Cmd) -> Result<Value, Fault> {
    let answer = connection.send_packed_command(command).await.and_then(Value::extract_error);
    answer.map_err(|error| Fault::Again(unreached(error)))
}

/// Whether something may be lost that was acknowledged.
fn loses(status: &str) -> bool {
    matches!(status, "failover" | "lost")
}

/// Lets a server write its append-only file anew, where it has one.
async fn renew_file(connection: &mut MultiplexedConnection) {
    let renewed = async {
        let said = reply::text(ask(connection, redis::cmd("INFO").arg("persistence")).await?)?;
        if info(&said, "aof_enabled") == Some("1") {
            ask(connection, &redis::cmd("BGREWRITEAOF")).await?;
        }
        Ok::<_, Fault>(())
    };
    if let Err(fault) = renewed.await {
        tracing::warn!(
            ?fault,
            "a server that was started again does not write its file anew: run BGREWRITEAOF"
        );
    }
}

impl Link {
    /// Looks at a server to which a connection was just made, and settles the epoch. Of a cluster that is done by [`Link::meet_cluster`]
    /// once the slots are known: the record of the store may be at another node.
    pub(crate) async fn greet(
        &self,
        address: &str,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), Fault> {
        let said = reply::text(ask(connection, redis::cmd("INFO").arg("replication")).await?)?;
        let id = info(&said, "master_replid")
            .ok_or_else(|| damaged("what INFO says", "it names no master_replid"))?;
        let followed = info(&said, "master_replid2").unwrap_or(NOBODY);
        let master = info(&said, "role") == Some("master");
        if self.cluster {
            if !master {
                self.promise.forget(address);
                return Ok(());
            }
            self.promise.renew(address, &Keeping::read(connection).await?)?;
            self.to_meet(address, id, followed);
            return Ok(());
        }
        if !master {
            return Err(Fault::Again(unavailable("the server is a replica")));
        }
        // Before anything is written: one that promises too little is not ours.
        self.promise.renew(address, &Keeping::read(connection).await?)?;
        let (status, epoch) = self.settled(ask(connection, &self.meet(address, id, followed)).await?)?;
        if loses(&status) {
            let queues = ask(connection, redis::cmd("HVALS").arg(self.keys.queues())).await?;
            for id in Reply::of(queues)?.texts()? {
                ask(connection, &self.fence(&id, epoch)).await?;
            }
        }
        if matches!(status.as_str(), "new" | "lost") {
            renew_file(connection).await;
        }
        Ok(())
    }

    /// Meets the nodes of a cluster to which connections were made since the last time, and refuses, in the queues of those that
    /// took over from others, the leases of before.
    pub(crate) async fn meet_cluster(&self) -> Result<(), Fault> {
        for (address, id, followed) in self.not_met() {
            let store = self.keys.store();
            let answer = self.send(&store, &self.meet(&address, &id, &followed), true).await?;
            let (status, epoch) = self.settled(answer)?;
            if loses(&status) {
                let queues = self.keys.queues();
                let ids = self.send(&queues, redis::cmd("HVALS").arg(&queues), false).await?;
                for id in Reply::of(ids)?.texts()? {
                    let [record, _] = self.keys.queue(&id);
                    if self.node_of(&record).as_deref() == Some(address.as_str()) {
                        self.send(&record, &self.fence(&id, epoch), true).await?;
                    }
                }
            }
            if matches!(status.as_str(), "new" | "lost") {
                renew_file(&mut self.connection(&address).await?).await;
            }
            self.was_met(&address, &id);
        }
        Ok(())
    }

    fn meet(&self, address: &str, id: &str, followed: &str) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command
            .arg(self.scripts.meet.text)
            .arg(1)
            .arg(self.keys.store())
            .arg(FORMAT)
            .arg(self.first_epoch())
            .arg(id)
            .arg(followed)
            .arg(address)
            .arg(self.last_lease());
        command
    }

    fn fence(&self, queue: &str, epoch: u16) -> Cmd {
        let [record, _] = self.keys.queue(queue);
        let mut command = redis::cmd("EVAL");
        command.arg(self.scripts.fence.text).arg(1).arg(record).arg(format!("{epoch:04x}"));
        command
    }

    /// Takes over what the record of the store says now: what kind of server was met, and the epoch.
    fn settled(&self, answer: Value) -> Result<(String, u16), Fault> {
        let mut answer = Reply::of(answer)?;
        let status = answer.text()?;
        if status == "format" {
            let problem = format!("it was written by another version, with format {}", answer.text()?);
            return Err(Fault::Undone(damaged("the store", problem)));
        }
        let epoch = u16::try_from(answer.number()?).map_err(|_| StoreError::Exhausted("epochs"))?;
        self.raise_epoch(epoch);
        match status.as_str() {
            "failover" => tracing::error!(
                epoch,
                "another server has taken over: what the one before it acknowledged last may be lost, and leases of before \
                 are refused"
            ),
            "lost" => tracing::error!(
                epoch,
                "the server has forgotten leases that it gave out: what it acknowledged last and had not synced is lost, and leases \
                 of before are refused"
            ),
            "new" => {
                tracing::info!(epoch, "a server was met that nobody knew: it was started anew, or is new");
            }
            _ => {}
        }
        Ok((status, epoch))
    }
}
