//! A Redis Cluster of a test's own.

use std::thread;
use std::time::Duration;

use super::nodes::{Node, nodes};
use super::{Redis, RedisSettings};
use crate::Failure;

/// The fewest that agree on who is lost.
const MASTERS: u16 = 3;
/// How many slots they share.
pub(super) const SLOTS: u16 = 16_384;
/// How often nodes are asked whether they agree.
const ASKED_MAX: usize = 6_000;
/// How long they are left alone in between.
const PAUSE: Duration = Duration::from_millis(20);

/// Three masters with a third of the slots each, alone or with a replica each.
///
/// Nodes have numbers: the masters that there are at first are 0, 1 and 2, the replicas of these are 3, 4 and 5. A node
/// that does not answer for two seconds counts as lost, unless `cluster-node-timeout` is set.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Redis>,
    /// What they call each other, whatever happens to their ports.
    ids: Vec<String>,
}

impl RedisCluster {
    /// Starts three masters and waits until they serve clients.
    pub fn start(settings: &RedisSettings) -> Result<Self, Failure> {
        Self::form(settings, MASTERS)
    }

    /// The same with a replica for each, which has what its master has, and takes its place when that is lost.
    pub fn start_with_replicas(settings: &RedisSettings) -> Result<Self, Failure> {
        Self::form(settings, 2 * MASTERS)
    }

    /// Where it is, by all of its nodes: `redis+cluster://127.0.0.1:PORT,127.0.0.1:PORT,…`.
    pub fn url(&self) -> String {
        let places: Vec<String> =
            self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        let password = self.nodes.iter().find_map(Redis::password).map(|password| format!(":{password}@"));
        format!("redis+cluster://{}{}", password.unwrap_or_default(), places.join(","))
    }

    /// Where each node is.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Redis::url).collect()
    }

    /// All nodes, in the order of their numbers.
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// One node.
    pub fn node(&self, node: usize) -> &Redis {
        &self.nodes[node]
    }

    /// Ends a node as `kill -9` does. The others notice by themselves, after a while.
    pub fn kill(&mut self, node: usize) -> Result<(), Failure> {
        self.nodes[node].kill()
    }

    /// Starts a node again with the data it had. If none is missing then, it waits until the cluster is whole.
    pub fn restart(&mut self, node: usize) -> Result<(), Failure> {
        self.nodes[node].restart()?;
        if self.nodes.iter().all(Redis::is_running) { self.wait_until_ok() } else { Ok(()) }
    }

    /// Lets a node stand still. To the others it is lost, after a while.
    pub fn freeze(&mut self, node: usize) -> Result<(), Failure> {
        self.nodes[node].freeze()
    }

    /// Lets a node go on, which does not know at first what it has missed.
    pub fn thaw(&mut self, node: usize) -> Result<(), Failure> {
        self.nodes[node].thaw()
    }

    /// Waits until every node that runs says that all slots are served.
    pub fn wait_until_ok(&self) -> Result<(), Failure> {
        self.wait_until("cluster_state:ok", is_ok)
    }

    /// Waits until every node that runs has given up one that does not. Its slots are served by nobody then, until its replica
    /// takes its place; [`Self::wait_until_ok`] waits for that.
    pub fn wait_until_lost(&self, node: usize) -> Result<(), Failure> {
        let id = self.id(node);
        self.wait_until("that a node is lost", |asked| {
            Ok(view(asked)?.iter().any(|node| node.id == id && node.is("fail")))
        })
    }

    /// Lets a replica change places with its master, which goes on as its replica, and waits until all nodes say so.
    pub fn change_places(&self, replica: usize) -> Result<(), Failure> {
        let (id, node) = (self.id(replica), self.node(replica));
        for asked in 0..ASKED_MAX {
            if node.command(&["ROLE"])?.contains("master") {
                return self.wait_until("that a replica is the master", |asked| {
                    Ok(view(asked)?.iter().any(|node| node.id == id && node.is("master")))
                });
            }
            // The master waits a few seconds for its replica and then gives it up; so it is asked again.
            if asked % 500 == 0 {
                node.command(&["CLUSTER", "FAILOVER"])?;
            }
            pause();
        }
        Err(Failure::Silent { awaited: "that a replica takes over".to_owned(), log: node.log() })
    }

    /// Tells clients that a node is on another port, such as that of a proxy before it, and waits until all nodes that run
    /// say so. It lasts until the node is restarted.
    pub fn announce(&self, node: usize, port: u16) -> Result<(), Failure> {
        let id = self.id(node);
        self.node(node).command(&["CONFIG", "SET", "cluster-announce-port", &port.to_string()])?;
        self.wait_until("the port that was announced", |asked| {
            Ok(view(asked)?.iter().any(|node| node.id == id && node.port == port))
        })
    }

    pub(super) fn id(&self, node: usize) -> &str {
        &self.ids[node]
    }

    fn form(settings: &RedisSettings, count: u16) -> Result<Self, Failure> {
        let nodes: Vec<_> =
            (0..count).map(|_| Redis::start_node(settings.clone())).collect::<Result<_, _>>()?;
        let ids = nodes.iter().map(|node| node.command(&["CLUSTER", "MYID"])).collect::<Result<_, _>>()?;
        let cluster = Self { nodes, ids };
        cluster.share_slots()?;
        cluster.introduce()?;
        cluster.follow()?;
        cluster.wait_until_ok()?;
        Ok(cluster)
    }

    /// Each master has an epoch of its own from the beginning: those who meet with the same one have to settle that first.
    fn share_slots(&self) -> Result<(), Failure> {
        for (master, number) in self.nodes.iter().zip(0..MASTERS) {
            let bound = |number: u16| u32::from(SLOTS) * u32::from(number) / u32::from(MASTERS);
            let (first, behind) = (bound(number), bound(number + 1));
            master.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()])?;
            master.command(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &(behind - 1).to_string()])?;
        }
        Ok(())
    }

    /// Everybody meets everybody: they would hear of each other by gossip, but later.
    fn introduce(&self) -> Result<(), Failure> {
        for (index, node) in self.nodes.iter().enumerate() {
            for other in &self.nodes[index + 1..] {
                let (port, bus) =
                    (other.port().to_string(), other.bus_port().unwrap_or_default().to_string());
                node.command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus])?;
            }
        }
        self.wait_until("that all nodes know each other", |node| {
            let known = view(node)?;
            Ok(known.len() == self.nodes.len() && !known.iter().any(|node| node.is("handshake")))
        })
    }

    /// Who has no slots follows one who has, and everybody knows.
    fn follow(&self) -> Result<(), Failure> {
        let (masters, replicas) = self.nodes.split_at(usize::from(MASTERS));
        for (master, replica) in (0..masters.len()).zip(replicas) {
            replica.command(&["CLUSTER", "REPLICATE", self.id(master)])?;
        }
        self.wait_until("that all replicas follow", |node| {
            let known = view(node)?.iter().filter(|node| node.is("slave")).count();
            let apart = node.command(&["INFO", "replication"])?.contains("master_link_status:down");
            Ok(known == replicas.len() && !apart)
        })
    }

    /// Asks every node that runs, one after the other, until it agrees.
    fn wait_until(
        &self,
        awaited: &str,
        agrees: impl Fn(&Redis) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        self.nodes.iter().filter(|node| node.is_running()).try_for_each(|node| {
            for _ in 0..ASKED_MAX {
                if agrees(node)? {
                    return Ok(());
                }
                pause();
            }
            let log = format!("{}\n{}", node.command(&["CLUSTER", "NODES"])?, node.log());
            Err(Failure::Silent { awaited: awaited.to_owned(), log })
        })
    }
}

fn is_ok(node: &Redis) -> Result<bool, Failure> {
    Ok(node.command(&["CLUSTER", "INFO"])?.contains("cluster_state:ok"))
}

/// All nodes that there are to this one.
pub(super) fn view(node: &Redis) -> Result<Vec<Node>, Failure> {
    Ok(nodes(&node.command(&["CLUSTER", "NODES"])?))
}

#[expect(clippy::disallowed_methods, reason = "nodes give no signal when they agree")]
fn pause() {
    thread::sleep(PAUSE);
}
