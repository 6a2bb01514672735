//! What a person sees with `redis-cli`: the stream is the table of leases, and whatever is kept of a message is in each place where that state
//! needs it and nowhere else.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use redis::{Cmd, Connection, FromRedisValue, Value, cmd};

/// Connections to a server, or to the masters of a cluster.
pub(crate) struct Eye {
    first: String,
    connections: HashMap<String, Connection>,
}

/// A message as its line says it.
struct Told {
    phase: char,
    words: Vec<String>,
}

impl Told {
    fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    fn number(&self, at: usize) -> i64 {
        self.word(at).parse().expect("a number")
    }

    /// The lane that it is in, or was leased from.
    fn lane(&self) -> char {
        let charged = self.number(5) - i64::from(self.phase == 'l');
        if charged <= 0 && self.number(8) == 0 { 'f' } else { 'r' }
    }
}

/// What a word says that has %XX for what would end it.
fn unescaped(word: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = word.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits: Vec<u8> = rest.by_ref().take(2).collect();
            let digits = std::str::from_utf8(&digits).expect("two digits");
            bytes.push(u8::from_str_radix(digits, 16).expect("two digits"));
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).expect("a text")
}

impl Eye {
    pub(crate) fn at(url: &str) -> Self {
        let (_, address) = url.split_once("://").expect("a URL");
        let first = address.split([',', '/']).next().expect("an address");
        Self { first: first.to_owned(), connections: HashMap::new() }
    }

    /// The answer of whichever node has the key.
    fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> T {
        let mut address = self.first.clone();
        loop {
            let connection = self.connections.entry(address.clone()).or_insert_with(|| {
                let client = redis::Client::open(format!("redis://{address}")).expect("a good address");
                client.get_connection().expect("it connects")
            });
            match command.query::<Value>(connection) {
                Ok(value) => return redis::from_redis_value(value).expect("what was asked for"),
                Err(error) => match error.redirect_node() {
                    Some((node, _)) => node.clone_into(&mut address),
                    None => panic!("{error}"),
                },
            }
        }
    }

    fn members(&mut self, key: &str) -> BTreeMap<String, String> {
        let rows: Vec<(String, String)> = self.ask(cmd("ZRANGE").arg(key).arg(0).arg(-1).arg("WITHSCORES"));
        rows.into_iter().collect()
    }

    fn texts(&mut self, command: &str, key: &str) -> Vec<String> {
        self.ask(cmd(command).arg(key))
    }

    fn list(&mut self, key: &str) -> Vec<String> {
        self.ask(cmd("LRANGE").arg(key).arg(0).arg(-1))
    }

    fn map(&mut self, key: &str) -> BTreeMap<String, String> {
        self.ask(cmd("HGETALL").arg(key))
    }

    /// Panics where a queue below that prefix does not add up.
    pub(crate) fn audit(&mut self, prefix: &str) {
        for (name, id) in self.map(&format!("{prefix}:{{{prefix}}}:queues")) {
            let at = format!("{prefix}:{{{id}}}:");
            let told: BTreeMap<String, Told> = self.map(&format!("{at}p")).into_iter().map(told).collect();
            let all: Vec<&String> = told.keys().collect();
            let contents: BTreeSet<String> = self.texts("HKEYS", &format!("{at}b")).into_iter().collect();
            assert_eq!(contents.iter().collect::<Vec<_>>(), all, "{name}: contents");
            let ids = self.members(&format!("{at}ids"));
            assert_eq!(ids.keys().collect::<Vec<_>>(), all, "{name}: ids");
            self.audit_leased(&name, &at, &told);
            self.audit_lines(&name, &at, &told);
            for (state, key) in [('x', "dead"), ('k', "done")] {
                let there = self.members(&format!("{at}{key}"));
                assert_eq!(there.into_keys().collect::<Vec<_>>(), those(&told, state), "{name}: {key}");
            }
            let delayed = self.members(&format!("{at}delayed"));
            let delayed: BTreeMap<&str, &String> =
                delayed.iter().map(|(member, due)| (&member[17..], due)).collect();
            let waiting: BTreeMap<&str, &String> = told
                .iter()
                .filter(|(_, one)| one.phase == 'd')
                .map(|(id, one)| (id.as_str(), &one.words[1]))
                .collect();
            assert_eq!(delayed, waiting, "{name}: delayed, and when their time comes");
        }
    }

    /// Who has what, under which entry of the stream: in the lines, in the group, in the stream and by deadline.
    fn audit_leased(&mut self, name: &str, at: &str, told: &BTreeMap<String, Told>) {
        let (stream, group) = (format!("{at}s"), "redrive");
        let mut leased = BTreeMap::new();
        let mut deadlines = BTreeMap::new();
        let mut retries = BTreeSet::new();
        for (id, one) in told.iter().filter(|(_, one)| one.phase == 'l') {
            let consumer = unescaped(one.word(20).strip_prefix(':').expect("a consumer"));
            let consumer = if consumer.is_empty() { "-".to_owned() } else { consumer };
            leased.insert(one.word(19).to_owned(), (consumer, id.clone()));
            deadlines.insert(format!("{}:{id}:{}", one.word(16), one.word(19)), one.word(18).to_owned());
            if one.lane() == 'r' {
                retries.insert(id.clone());
            }
        }
        let pending: Vec<(String, String, u64, u64)> =
            self.ask(cmd("XPENDING").arg(&stream).arg(group).arg("-").arg("+").arg(100_000));
        let entries: Vec<(String, Vec<(String, String)>)> =
            self.ask(cmd("XRANGE").arg(&stream).arg("-").arg("+"));
        let entries: BTreeMap<String, Vec<(String, String)>> = entries.into_iter().collect();
        let shown: BTreeMap<String, (String, String)> = pending
            .into_iter()
            .map(|(entry, consumer, ..)| {
                let message = entries.get(&entry).and_then(|fields| fields.first());
                let message = message.map_or_else(String::new, |(_, message)| message.clone());
                (entry, (consumer, message))
            })
            .collect();
        assert_eq!(shown, leased, "{name}: who has which message, as XPENDING says and as it is");
        assert_eq!(
            entries.len(),
            leased.len(),
            "{name}: the stream holds what is in flight and nothing else"
        );
        let groups: Vec<HashMap<String, Value>> = self.ask(cmd("XINFO").arg("GROUPS").arg(&stream));
        assert_eq!(groups.len(), 1, "{name}: {groups:?}");
        assert_eq!(
            groups[0].get("lag"),
            Some(&Value::Int(0)),
            "{name}: nothing is in the stream that nobody has"
        );
        assert_eq!(self.members(&format!("{at}deadlines")), deadlines, "{name}: deadlines");
        let there: BTreeSet<String> = self.texts("SMEMBERS", &format!("{at}retries")).into_iter().collect();
        assert_eq!(there, retries, "{name}: retries in flight");
    }

    /// Who stands in which line at which place, and whose turn it is.
    fn audit_lines(&mut self, name: &str, at: &str, told: &BTreeMap<String, Told>) {
        let mut stand = self.members(&format!("{at}over")).into_keys().collect::<Vec<_>>();
        for lane in ['f', 'r'] {
            let mut keys = Vec::new();
            for (key, lines) in self.map(&format!("{at}lines:{lane}")) {
                for line in lines.split_whitespace() {
                    let entries = self.list(&format!("{at}r:{lane}:{line}:{key}"));
                    assert!(!entries.is_empty(), "{name}: a line that is named has somebody in it");
                    let mut last = 0;
                    for entry in entries {
                        let (place, id) = entry.split_once(':').expect("a place and a message");
                        let one = told.get(id).unwrap_or_else(|| panic!("{name}: {entry} is not there"));
                        let class = format!("{}:{}", one.word(3), one.word(11));
                        let said = (one.phase, one.word(2), class.as_str(), one.word(15), one.lane());
                        assert_eq!(said, ('r', place, line, key.as_str(), lane), "{name}: {entry}");
                        let place: u64 = place.parse().expect("a place");
                        assert!(place > last, "{name}: a line is in the order of places");
                        last = place;
                        stand.push(id.to_owned());
                    }
                }
                keys.push(key);
            }
            let mut turns = self.list(&format!("{at}ring:{lane}"));
            turns.extend(self.members(&format!("{at}parked:{lane}")).into_keys());
            turns.sort_unstable();
            assert_eq!(turns, keys, "{name}: each key of lane {lane} has one turn");
        }
        stand.sort_unstable();
        assert_eq!(stand, those(told, 'r'), "{name}: who is ready stands in one line, once");
    }
}

fn told((id, line): (String, String)) -> (String, Told) {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let phase = words[0].chars().next().expect("a phase");
    (id, Told { phase: phase.to_ascii_lowercase(), words })
}

fn those(told: &BTreeMap<String, Told>, phase: char) -> Vec<String> {
    told.iter().filter(|(_, one)| one.phase == phase).map(|(id, _)| id.clone()).collect()
}
