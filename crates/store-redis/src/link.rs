//! Connections to the server or to the nodes of a cluster, and how a script gets to the one that has its keys.
//!
//! The library's own cluster client tries again whatever was lost with a connection. Of a script that hands messages out that must
//! not be done behind the back of who asked, so the way to a node is ours: a table of slots, a connection to each node, and what
//! to do when a node says that a slot is elsewhere.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, Value};
use redrive_core::lease::LeaseId;
use redrive_core::message::Message;
use redrive_store_shared::Pauses;

use crate::clock::uptime;
use crate::durability::Promise;
use crate::error::{Fault, Turned, damaged, unavailable, unreached};
use crate::keys::{Keys, SLOTS, slot};
use crate::options::{Address, Options, Patience};
use crate::reply::Reply;
use crate::script::{Scripts, Verb};
use crate::sentinel::Said;

/// How often a call follows a node that sends it elsewhere.
const REDIRECTS_MAX: usize = 5;
/// The first and the longest pause before a server is asked again that could not answer.
const PAUSES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(250));

/// The arguments of a script.
#[derive(Debug, Clone, Default)]
pub(crate) struct Args(Vec<Vec<u8>>);

impl Args {
    pub(crate) fn push(&mut self, arg: impl Into<Vec<u8>>) -> &mut Self {
        self.0.push(arg.into());
        self
    }

    #[expect(clippy::needless_pass_by_value, reason = "a number is handed over by value everywhere")]
    pub(crate) fn number(&mut self, number: impl ToString) -> &mut Self {
        self.push(number.to_string())
    }

    /// A number that may be missing, which is an empty word.
    pub(crate) fn maybe(&mut self, number: Option<impl ToString>) -> &mut Self {
        self.push(number.map_or_else(String::new, |number| number.to_string()))
    }

    /// Those of another behind these.
    pub(crate) fn append(&mut self, mut more: Self) -> &mut Self {
        self.0.append(&mut more.0);
        self
    }

    pub(crate) fn flag(&mut self, flag: bool) -> &mut Self {
        self.push(if flag { "1" } else { "0" })
    }
}

/// The way to the server.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) keys: Keys,
    pub(crate) scripts: Scripts,
    pub(crate) cluster: bool,
    address: AddressOf,
    pub(crate) patience: Patience,
    nodes: Mutex<HashMap<String, Node>>,
    /// The node of each slot, as far as it is known.
    slots: Mutex<Vec<Option<String>>>,
    first_epoch: u16,
    /// The highest number of a lease that this instance was given.
    last_lease: AtomicU64,
    pub(crate) promise: Promise,
    /// The authorities that a server's certificate must come from, as PEM; those of the machine where there are none.
    authorities: Option<Vec<u8>>,
    /// Masters of a cluster by their addresses: what each calls itself, whom it follows, and whether it was met.
    masters: Mutex<HashMap<String, Master>>,
    /// Who is the master, where sentinels say so.
    pub(crate) said: Said,
}

/// A master of a cluster.
#[derive(Debug, Clone)]
struct Master {
    id: String,
    followed: String,
    met: bool,
}

/// What a command is sent for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    /// A call of the store.
    Call,
    /// Nodes that are to be met.
    Meeting,
}

/// A connection to a node.
#[derive(Clone)]
struct Node {
    connection: MultiplexedConnection,
    /// Which of the connections to that node it is.
    number: u64,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({})", self.number)
    }
}

/// An address that does not print its password.
struct AddressOf(Address);

impl std::fmt::Debug for AddressOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Address(…)")
    }
}

impl Link {
    pub(crate) fn new(options: &Options, address: Address) -> Self {
        Self {
            keys: Keys::new(&options.prefix),
            scripts: Scripts::new(),
            cluster: address.cluster,
            patience: options.patience,
            nodes: Mutex::default(),
            slots: Mutex::new(vec![None; usize::from(SLOTS)]),
            first_epoch: options.first_epoch,
            last_lease: AtomicU64::new(0),
            promise: Promise::new(options.durability),
            authorities: options.authorities.clone(),
            masters: Mutex::default(),
            said: Said::default(),
            address: AddressOf(address),
        }
    }

    fn nodes(&self) -> MutexGuard<'_, HashMap<String, Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Option<String>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn first_epoch(&self) -> u16 {
        self.first_epoch
    }

    pub(crate) fn last_lease(&self) -> u64 {
        self.last_lease.load(Ordering::Acquire)
    }

    /// Remembers what this instance was given: a server that does not has lost it.
    pub(crate) fn was_given(&self, messages: &[Message]) {
        let numbers =
            messages.iter().filter_map(Message::lease).map(|lease| lease.id.bits() & LeaseId::COUNTER_MAX);
        if let Some(last) = numbers.max() {
            self.last_lease.fetch_max(last, Ordering::AcqRel);
        }
    }

    fn masters(&self) -> MutexGuard<'_, HashMap<String, Master>> {
        self.masters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A master to which a connection was made is met, unless it is the one that was met there before.
    pub(crate) fn to_meet(&self, address: &str, id: &str, followed: &str) {
        let mut masters = self.masters();
        if masters.get(address).is_none_or(|known| known.id != id) {
            let master = Master { id: id.to_owned(), followed: followed.to_owned(), met: false };
            masters.insert(address.to_owned(), master);
        }
    }

    /// What was a master is one no more, as far as anybody knows.
    pub(crate) fn forget_master(&self, address: &str) {
        self.masters().remove(address);
    }

    /// Gives up a node that was to be met and does not answer: the next connection to it begins anew.
    pub(crate) fn leave(&self, address: &str) {
        self.nodes().remove(address);
        self.forget_slots(address);
        self.forget_master(address);
    }

    fn is_met(&self, address: &str) -> bool {
        !self.cluster || self.masters().get(address).is_some_and(|master| master.met)
    }

    pub(crate) fn not_met(&self) -> Vec<(String, String, String)> {
        let masters = self.masters();
        let unknown = masters.iter().filter(|(_, master)| !master.met);
        unknown
            .map(|(address, master)| (address.clone(), master.id.clone(), master.followed.clone()))
            .collect()
    }

    pub(crate) fn was_met(&self, address: &str, id: &str) {
        if let Some(master) = self.masters().get_mut(address).filter(|master| master.id == id) {
            master.met = true;
        }
    }

    /// The nodes that the address names.
    pub(crate) fn seeds(&self) -> &[String] {
        &self.address.0.nodes
    }

    /// Whom sentinels are asked for, and what their certificates must come from.
    pub(crate) fn whom(&self) -> (&Address, Option<&[u8]>) {
        (&self.address.0, self.authorities.as_deref())
    }

    /// Gives up the connections to all other servers than this one.
    pub(crate) fn keep_only(&self, address: &str) {
        self.nodes().retain(|known, _| {
            if known != address {
                self.promise.forget(known);
            }
            known == address
        });
    }

    /// The server, or those nodes of a cluster that have slots, as far as is known, and those that the address names: it may name nodes that
    /// were taken away since.
    pub(crate) async fn entrances(&self) -> Result<Vec<String>, Fault> {
        if self.address.0.master.is_some() {
            return Ok(vec![self.said_master().await?]);
        }
        let mut all: Vec<String> = self.slots().iter().flatten().cloned().collect();
        all.sort_unstable();
        all.dedup();
        all.extend(self.seeds().iter().filter(|seed| !all.contains(seed)).cloned().collect::<Vec<_>>());
        Ok(all)
    }

    /// A client for one node, for connections of another kind.
    pub(crate) fn client(&self, node: &str) -> Result<Client, Fault> {
        let client = self.address.0.client(node, self.authorities.as_deref());
        client.map_err(|error| Fault::Undone(unreached(error)))
    }

    async fn node(&self, address: &str) -> Result<Node, Fault> {
        if let Some(node) = self.nodes().get(address) {
            return Ok(node.clone());
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.patience.connection))
            .set_response_timeout(Some(self.patience.answer));
        let client = self.client(address)?;
        let connection = client.get_multiplexed_async_connection_with_config(&config).await;
        let connection = connection.map_err(|error| Fault::Again(unreached(error)))?;
        let mut node = Node { connection, number: 0 };
        // Before anybody uses it: whom it leads to may be another than before.
        if !self.greet(address, &mut node.connection).await? {
            return Ok(node);
        }
        let mut nodes = self.nodes();
        node.number = nodes.values().map(|node| node.number).max().unwrap_or_default() + 1;
        // Another call may have been faster; whose connection is used does not matter.
        nodes.insert(address.to_owned(), node.clone());
        Ok(node)
    }

    /// The connection to a node, for those who look at that node and at no other.
    pub(crate) async fn connection(&self, address: &str) -> Result<MultiplexedConnection, Fault> {
        Ok(self.node(address).await?.connection)
    }

    /// Gives up a connection, unless it was given up already.
    fn give_up(&self, address: &str, number: u64) {
        let mut nodes = self.nodes();
        if nodes.get(address).is_some_and(|node| node.number == number) {
            nodes.remove(address);
        }
        drop(nodes);
        self.said.forget(address);
        self.forget_slots(address);
    }

    /// Who has the slots of a node now is to be asked again.
    fn forget_slots(&self, address: &str) {
        if self.cluster {
            let mut slots = self.slots();
            slots.iter_mut().filter(|node| node.as_deref() == Some(address)).for_each(|node| *node = None);
        }
    }

    /// The node that has a key, as far as it is known.
    async fn address_of(&self, key: &str) -> Result<String, Fault> {
        if self.address.0.master.is_some() {
            return self.said_master().await;
        }
        if !self.cluster {
            return Ok(self.seeds().first().cloned().unwrap_or_default());
        }
        let slot = usize::from(slot(key));
        if let Some(Some(address)) = self.slots().get(slot) {
            return Ok(address.clone());
        }
        self.read_slots().await?;
        let known = self.slots().get(slot).cloned().flatten();
        known.ok_or_else(|| Fault::Again(unavailable("no node of the cluster has the slot")))
    }

    /// Asks the cluster which node has which slots; the first node that answers is believed.
    async fn read_slots(&self) -> Result<(), Fault> {
        let mut asked: Vec<String> = self.nodes().keys().cloned().collect();
        asked.extend(self.seeds().iter().filter(|seed| !asked.contains(seed)).cloned().collect::<Vec<_>>());
        let mut last = Fault::Again(unavailable("the cluster has no nodes"));
        for address in asked {
            match self.slots_said_by(&address).await {
                Ok(said) => {
                    let mut slots = self.slots();
                    slots.iter_mut().for_each(|node| *node = None);
                    for (first, end, node) in said {
                        for known in slots.get_mut(first..=end).into_iter().flatten() {
                            *known = Some(node.clone());
                        }
                    }
                    return Ok(());
                }
                Err(fault) => last = fault,
            }
        }
        Err(last)
    }

    async fn slots_said_by(&self, address: &str) -> Result<Vec<(usize, usize, String)>, Fault> {
        let mut node = self.node(address).await?;
        let answer = node.connection.send_packed_command(redis::cmd("CLUSTER").arg("SLOTS")).await;
        let answer = answer.and_then(Value::extract_error);
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.give_up(address, node.number);
                return Err(Fault::Again(unreached(error)));
            }
        };
        Ok(read_slots(address, answer)?)
    }

    /// Sends a command to the node that has the key.
    pub(crate) async fn send(&self, key: &str, command: &Cmd, writes: bool) -> Result<Value, Fault> {
        self.follow(key, command, writes, For::Call).await.map_err(Turned::astray)
    }

    /// The same for what is done to meet nodes, and may be done before they are met.
    pub(crate) async fn send_meeting(&self, key: &str, command: &Cmd) -> Result<Value, Fault> {
        self.follow(key, command, true, For::Meeting).await.map_err(Turned::astray)
    }

    async fn follow(&self, key: &str, command: &Cmd, writes: bool, what: For) -> Result<Value, Turned> {
        if what == For::Call && self.cluster && !self.not_met().is_empty() {
            Box::pin(self.meet_cluster()).await.map_err(Turned::Failed)?;
        }
        let mut address = self.address_of(key).await.map_err(Turned::Failed)?;
        let mut asking = false;
        for _ in 0..REDIRECTS_MAX {
            let node = self.reached(&address).await?;
            // Nothing is done at a node that has taken over before the leases of before are refused there.
            if what == For::Call && !self.is_met(&address) {
                self.forget_slots(&address);
                return Err(Turned::Failed(Fault::Again(unavailable(
                    "a node of the cluster is to be met first",
                ))));
            }
            match self.send_to(&address, node, command, writes, asking).await {
                Err(Turned::Elsewhere { address: other, asking: once }) => {
                    if !once && let Some(known) = self.slots().get_mut(usize::from(slot(key))) {
                        *known = Some(other.clone());
                    }
                    (address, asking) = (other, once);
                }
                answer => return answer,
            }
        }
        Err(Turned::Failed(Fault::Again(unavailable("a slot of the cluster is on its way"))))
    }

    async fn reached(&self, address: &str) -> Result<Node, Turned> {
        self.node(address).await.map_err(|fault| {
            self.give_up(address, 0);
            Turned::Failed(fault)
        })
    }

    async fn send_to(
        &self,
        address: &str,
        mut node: Node,
        command: &Cmd,
        writes: bool,
        asking: bool,
    ) -> Result<Value, Turned> {
        let answer = if asking {
            let mut both = redis::pipe();
            both.cmd("ASKING").ignore().add_command(command.clone());
            let answers: Result<Vec<Value>, _> = node.connection.send_packed_commands(&both, 0, 2).await;
            answers.map(|mut answers| answers.pop().unwrap_or(Value::Nil)).and_then(Value::extract_error)
        } else {
            node.connection.send_packed_command(command).await.and_then(Value::extract_error)
        };
        answer.map_err(|error| {
            let mut turned = Turned::of(error, writes);
            if let Turned::Elsewhere { address: other, .. } = &mut turned {
                *other = told_by(address, other);
            }
            // One that has a slot no more may be the master no more, and be it again later: then it is another.
            if let Turned::Lost(_) | Turned::Elsewhere { asking: false, .. } = &turned {
                self.give_up(address, node.number);
            }
            turned
        })
    }

    /// The servers that hold something: one, or the masters of a cluster.
    pub(crate) async fn master_addresses(&self) -> Result<Vec<String>, Fault> {
        if !self.cluster {
            return self.entrances().await;
        }
        self.read_slots().await?;
        let mut masters: Vec<String> = self.slots().iter().flatten().cloned().collect();
        masters.sort_unstable();
        masters.dedup();
        Ok(masters)
    }

    /// Asks one node something that changes nothing.
    pub(crate) async fn ask(&self, address: &str, command: &Cmd) -> Result<Value, Fault> {
        let asked =
            async { self.send_to(address, self.reached(address).await?, command, false, false).await };
        asked.await.map_err(Turned::astray)
    }

    /// Runs a script at the node that has its keys.
    pub(crate) async fn run(&self, verb: &Verb, keys: &[String], args: &Args) -> Result<Value, Fault> {
        let command = |name: &str, script: &str| {
            let mut command = redis::cmd(name);
            command.arg(script).arg(keys.len()).arg(keys);
            args.0.iter().for_each(|arg| {
                command.arg(arg.as_slice());
            });
            command
        };
        let key = keys.first().map_or("", String::as_str);
        let answer = match self.follow(key, &command("EVALSHA", &verb.hash), verb.writes, For::Call).await {
            // Its text is sent along, and the node knows it from then on.
            Err(Turned::NoScript) => {
                self.follow(key, &command("EVAL", verb.text), verb.writes, For::Call).await
            }
            answer => answer,
        };
        answer.map_err(|turned| {
            if let Turned::NoScript | Turned::Elsewhere { .. } = &turned {
                tracing::warn!(script = verb.name, ?turned, "a script was turned away");
            }
            turned.astray()
        })
    }

    /// Tries again what was not begun, as long as a server may be busy.
    pub(crate) async fn again<T, F>(&self, mut step: impl FnMut() -> F) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let (mut pauses, begun) = (Pauses::new(PAUSES.0, PAUSES.1), uptime());
        loop {
            match step().await {
                Err(Fault::Again(_))
                    if Duration::from_millis(uptime().get().saturating_sub(begun.get()))
                        < self.patience.busy =>
                {
                    pauses.wait().await;
                }
                answer => return answer,
            }
        }
    }
}

/// The address of a node as the one at this address tells it. One without a host is at the same as who tells it, which is how nodes are told
/// of whose address nobody knows, or nobody shall know. One of IPv6 is told without the brackets that an address has.
fn told_by(teller: &str, told: &str) -> String {
    let (host, port) = told.rsplit_once(':').unwrap_or((told, ""));
    if host.is_empty() {
        let host = teller.rsplit_once(':').map_or(teller, |(host, _)| host);
        format!("{host}:{port}")
    } else if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:{port}")
    } else {
        told.to_owned()
    }
}

/// What a node answers to `CLUSTER SLOTS`: the first and the last slot of each range, and the master that has it.
pub(crate) fn read_slots(
    address: &str,
    answer: Value,
) -> Result<Vec<(usize, usize, String)>, redrive_store::StoreError> {
    let mut said = Vec::new();
    let mut rows = Reply::of(answer)?;
    for _ in 0..rows.len() {
        let mut row = rows.reply()?;
        let (first, end) = (row.number()?, row.number()?);
        let mut master = row.reply()?;
        let (host, port) = (master.maybe()?.unwrap_or_default(), master.number()?);
        if first > end || end >= u64::from(SLOTS) {
            return Err(damaged("a range of slots", format!("{first} to {end}")));
        }
        let (first, end) =
            (usize::try_from(first).unwrap_or_default(), usize::try_from(end).unwrap_or_default());
        said.push((first, end, told_by(address, &format!("{host}:{port}"))));
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_where_another_one_says() {
        for (told, address) in [
            ("10.0.0.2:6380", "10.0.0.2:6380"),
            ("redis-2.example:6380", "redis-2.example:6380"),
            // As servers write it (`cluster-preferred-endpoint-type`, and addresses of IPv6).
            (":6380", "here:6380"),
            ("::1:6380", "[::1]:6380"),
            ("fe80::2:6380", "[fe80::2]:6380"),
            ("[::1]:6380", "[::1]:6380"),
        ] {
            assert_eq!(told_by("here:1", told), address, "{told}");
        }
        assert_eq!(told_by("[::1]:1", ":6380"), "[::1]:6380");
    }

    #[test]
    fn slots_are_read_from_nodes_that_do_not_say_where_they_are() {
        let answer = b"*2\r\n*3\r\n:0\r\n:5460\r\n*3\r\n$-1\r\n:30001\r\n$4\r\n09db\r\n\
                       *3\r\n:5461\r\n:16383\r\n*3\r\n$3\r\n::1\r\n:30002\r\n$4\r\nc9d9\r\n";
        let said = read_slots("here:1", redis::parse_redis_value(answer).unwrap()).unwrap();
        let at = |address: &str| address.to_owned();
        for far in ["*1\r\n*3\r\n:0\r\n:16384\r\n", "*1\r\n*3\r\n:7\r\n:6\r\n"] {
            let answer = format!("{far}*3\r\n$4\r\nhere\r\n:1\r\n$1\r\na\r\n");
            let said = read_slots("here:1", redis::parse_redis_value(answer.as_bytes()).unwrap());
            assert!(matches!(said, Err(redrive_store::StoreError::Damaged { .. })), "{said:?}");
        }
        assert_eq!(said, [(0, 5_460, at("here:30001")), (5_461, 16_383, at("[::1]:30002"))]);
    }
}
