//! What is asked of a server before it is used: whether it is the one that was there before.
//!
//! A replica that takes over may not have all that its master had acknowledged, and nobody can tell what it lacks. So every server is
//! known by its replication id, which changes when a server starts and when a replica becomes the master; in the latter case, and
//! where a server starts from a snapshot, it names the id that it follows. The epoch of lease ids is raised in either case, so that
//! no token is given out twice. A replica that took over and was started again before anybody met it names nobody any more. It is known by
//! its place, which is its address, and in a cluster what it is called there: nobody was met at that place, and somebody who was met
//! serves no more. One that knows of fewer leases than this instance was given has lost something for certain. Where
//! something may be lost, leases of before are refused, too: their holders cannot know what the new master knows of them. That is
//! done before any other call gets there.
//!
//! One that was started again is asked to write its append-only file anew. A cut in the middle of a write leaves the beginning of a
//! transaction at the end of that file. Redis does not carry it out, but leaves it there and appends to it: read once more, it would
//! come true before all that was written since without it.

use std::ops::RangeInclusive;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use redrive_store::StoreError;

use crate::durability::Keeping;
use crate::error::{Fault, damaged, unavailable, unreached};
use crate::keys::slot;
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

/// A server that is met.
struct Whom<'a> {
    /// Where it is found, whatever it calls itself: a server that is started again is in its place.
    place: &'a str,
    /// What it calls itself.
    id: &'a str,
    /// Whom it followed before.
    followed: &'a str,
    /// The places of all that serve, with a space between them.
    serve: &'a str,
}

impl Whom<'_> {
    /// Whether it was started since anybody met it. One that took over names whom it followed, unless it was started since.
    fn was_started(&self, status: &str) -> bool {
        matches!(status, "new" | "lost") || (status == "failover" && self.followed == NOBODY)
    }
}

/// What the node is called that says which nodes there are, and what those are called that have slots. It knows better than others from
/// whom it took its own.
fn places(said: &str) -> Option<(&str, String)> {
    let lines = || said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let is = |line: &[&str], flag| line.get(2).is_some_and(|flags| flags.split(',').any(|is| is == flag));
    let myself = lines().find(|line| is(line, "myself"))?.first().copied()?;
    let serve = lines().filter(|line| is(line, "master") && line.len() > 8);
    let serve: Vec<&str> = serve.filter_map(|line| line.first().copied()).collect();
    Some((myself, serve.join(" ")))
}

/// The slots of the node that says which nodes there are: those of the line about itself, behind eight other words. A slot in brackets
/// is on its way.
fn own_slots(said: &str) -> Vec<RangeInclusive<u16>> {
    let myself = |line: &&str| line.split(' ').nth(2).is_some_and(|flags| flags.contains("myself"));
    let words = said.lines().find(myself).into_iter().flat_map(|line| line.split_whitespace().skip(8));
    let range = |word: &str| {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    words.filter_map(range).collect()
}

impl Link {
    /// Looks at a server to which a connection was just made, and settles the epoch. Of a cluster that is done by [`Link::meet_cluster`]
    /// once the slots are known: the record of the store may be at another node. Answers whether the connection may be kept.
    pub(crate) async fn greet(
        &self,
        address: &str,
        connection: &mut MultiplexedConnection,
    ) -> Result<bool, Fault> {
        let said = reply::text(ask(connection, redis::cmd("INFO").arg("replication")).await?)?;
        let id = info(&said, "master_replid")
            .ok_or_else(|| damaged("what INFO says", "it names no master_replid"))?;
        let followed = info(&said, "master_replid2").unwrap_or(NOBODY);
        let master = info(&said, "role") == Some("master");
        if self.cluster {
            if !master {
                // It can be asked who has which slots. Should it take over, it is another, and another connection is made.
                self.promise.forget(address);
                self.forget_master(address);
                return Ok(false);
            }
            self.promise.renew(address, &Keeping::read(connection).await?)?;
            self.to_meet(address, id, followed);
            return Ok(true);
        }
        if !master {
            return Err(Fault::Again(unavailable("the server is a replica")));
        }
        // Before anything is written: one that promises too little is not ours.
        self.promise.renew(address, &Keeping::read(connection).await?)?;
        let whom = Whom { place: address, id, followed, serve: address };
        let (status, _) = settled(ask(connection, &self.meet(&whom, false)).await?)?;
        if whom.was_started(&status) {
            renew_file(connection).await;
        }
        Ok(true)
    }

    /// Meets the nodes of a cluster to which connections were made since the last time, and refuses, in the queues of those that
    /// took over from others, the leases of before.
    pub(crate) async fn meet_cluster(&self) -> Result<(), Fault> {
        for (address, id, followed) in self.not_met() {
            let said = self.nodes_said_by(&address).await?;
            let (place, serve) = places(&said)
                .ok_or_else(|| damaged("what CLUSTER NODES says", "it does not name who says it"))?;
            let whom = Whom { place, id: &id, followed: &followed, serve: &serve };
            let store = self.keys.store();
            let answer = self.send_meeting(&store, &self.meet(&whom, false)).await?;
            let (status, epoch) = settled(answer)?;
            if loses(&status) {
                self.fence_slots_of(&address, epoch).await?;
                self.send_meeting(&store, &self.meet(&whom, true)).await?;
            }
            if whom.was_started(&status) {
                renew_file(&mut self.still_there(&address).await?).await;
            }
            self.was_met(&address, &id);
        }
        Ok(())
    }

    /// Refuses leases of before this epoch in the queues whose slots a node has, as it says itself: others may not have heard.
    async fn fence_slots_of(&self, address: &str, epoch: u16) -> Result<(), Fault> {
        let slots = own_slots(&self.nodes_said_by(address).await?);
        let queues = self.keys.queues();
        let ids = self.send_meeting(&queues, redis::cmd("HVALS").arg(&queues)).await?;
        for id in Reply::of(ids)?.texts()? {
            let [record, _] = self.keys.queue(&id);
            if slots.iter().any(|slots| slots.contains(&slot(&record))) {
                self.send_meeting(&record, &self.fence(&id, epoch)).await?;
            }
        }
        Ok(())
    }

    /// Which nodes there are to this one.
    async fn nodes_said_by(&self, address: &str) -> Result<String, Fault> {
        let mut connection = self.still_there(address).await?;
        let said = ask(&mut connection, redis::cmd("CLUSTER").arg("NODES")).await;
        Ok(reply::text(said.inspect_err(|_| self.leave(address))?)?)
    }

    /// The connection to a node that is to be met. One that is away is met when it comes back; nobody waits for that.
    async fn still_there(&self, address: &str) -> Result<MultiplexedConnection, Fault> {
        let connection = self.connection(address).await;
        connection.inspect_err(|_| self.leave(address))
    }

    fn meet(&self, whom: &Whom<'_>, fenced: bool) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command
            .arg(self.scripts.meet.text)
            .arg(2)
            .arg(self.keys.store())
            .arg(self.keys.queues())
            .arg(FORMAT)
            .arg(self.first_epoch())
            .arg(whom.id)
            .arg(whom.followed)
            .arg(whom.place)
            .arg(self.last_lease())
            .arg(if self.cluster { String::new() } else { self.keys.queues_begin() })
            .arg(u8::from(fenced))
            .arg(whom.serve);
        command
    }

    fn fence(&self, queue: &str, epoch: u16) -> Cmd {
        let [record, _] = self.keys.queue(queue);
        let mut command = redis::cmd("EVAL");
        command.arg(self.scripts.fence.text).arg(1).arg(record).arg(format!("{epoch:04x}"));
        command
    }
}

/// What the record of the store says now: what kind of server was met, and the epoch.
fn settled(answer: Value) -> Result<(String, u16), Fault> {
    let mut answer = Reply::of(answer)?;
    let status = answer.text()?;
    if status == "format" {
        let problem = format!("it was written by another version, with format {}", answer.text()?);
        return Err(Fault::Undone(damaged("the store", problem)));
    }
    let epoch = u16::try_from(answer.number()?).map_err(|_| StoreError::Exhausted("epochs"))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_says_which_slots_are_its_own() {
        let said = "07c3 127.0.0.1:30004@31004,host slave e7d1 0 1426238317239 4 connected\n\
                    67ed 127.0.0.1:30002@31002 master - 0 1426238316232 2 connected 5461-10922\n\
                    e7d1 127.0.0.1:30001@31001 myself,master - 0 0 1 connected 0-5459 5461 [5460->-67ed] [7-<-67ed]\n";
        assert_eq!(own_slots(said), [0..=5_459, 5_461..=5_461]);
        assert_eq!(own_slots("07c3 127.0.0.1:30004@31004 myself,slave e7d1 0 0 4 connected\n"), []);
        assert_eq!(own_slots(""), []);
    }

    #[test]
    fn a_node_says_what_it_is_called_and_who_has_slots() {
        let said = "07c3 127.0.0.1:30004@31004,host slave e7d1 0 1426238317239 4 connected\n\
                    67ed 127.0.0.1:30002@31002 master - 0 1426238316232 2 connected 5461-10922\n\
                    9a01 127.0.0.1:30003@31003 master,fail - 0 1426238316232 3 disconnected\n\
                    e7d1 127.0.0.1:30001@31001 myself,master - 0 0 1 connected 0-5459\n";
        assert_eq!(places(said), Some(("e7d1", "67ed e7d1".to_owned())));
        assert_eq!(places("67ed 127.0.0.1:30002@31002 master - 0 0 2 connected 5461-10922\n"), None);
    }
}
