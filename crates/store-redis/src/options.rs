//! What a store is opened with.

use std::fmt;
use std::time::Duration;

use redis::{Client, RedisError, TlsCertificates};
use redrive_core::limits::Limits;
use redrive_core::queue::QueueSettings;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use thiserror::Error;

/// The longest prefix of keys, in bytes.
const PREFIX_MAX: usize = 64;
/// The ports of an address that names none.
const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// Why options are wrong. Nothing of the address is in it: it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WrongOption {
    /// The address.
    #[error(
        "must be redis://USER:PASSWORD@HOST:PORT/DATABASE, rediss:// for TLS, redis+cluster://HOST:PORT,HOST:PORT,… \
         (rediss+cluster:// for TLS), or redis+sentinel://HOST:PORT,HOST:PORT,…/MASTER/DATABASE (rediss+sentinel:// for TLS), \
         with %XX for each character of the user or the password that an address has another use for"
    )]
    Url,
    /// The prefix of keys.
    #[error("must be letters, digits, `.`, `_` and `-`, at most {PREFIX_MAX} of them")]
    Prefix,
    /// The authorities.
    #[error(
        "must be certificates as PEM, and is for rediss://, rediss+cluster:// and rediss+sentinel:// only"
    )]
    Authorities,
}

/// What the server must promise by its own settings. We change none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Whatever it is set to.
    Any,
    /// The end of its process loses nothing: it writes an append-only file, and evicts nothing.
    Process,
    /// The end of its power loses nothing either: it syncs that file before it answers (`appendfsync always`).
    Power,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "any",
            Self::Process => "process",
            Self::Power => "power",
        })
    }
}

/// How long a store waits for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For a new connection.
    pub connection: Duration,
    /// For an answer; then the connection is given up, and what became of the call is not known.
    pub answer: Duration,
    /// For a server that says that it cannot answer now: it reads its files, a slot is on its way, a node was lost.
    pub busy: Duration,
    /// For a signal of another instance; then the server is asked whether it is still there.
    pub silence: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connection: Duration::from_secs(5),
            answer: Duration::from_secs(20),
            busy: Duration::from_secs(5),
            silence: Duration::from_secs(30),
        }
    }
}

/// What a store is opened with.
#[derive(Clone)]
pub struct Options {
    /// Where the server is: `redis://`, `rediss://`, `redis+cluster://`, `redis+sentinel://`, or the latter two with `rediss`.
    pub url: String,
    /// How the names of all keys begin.
    pub prefix: String,
    /// The settings of a queue that sets nothing.
    pub defaults: QueueSettings,
    /// What a queue may hold.
    pub limits: Limits,
    /// The first epoch of lease ids, where the server has none yet.
    pub first_epoch: u16,
    /// What the server must promise.
    pub durability: Durability,
    /// The authorities that the certificate of a `rediss://` server must come from, as PEM; those of the machine where there are
    /// none.
    pub authorities: Option<Vec<u8>>,
    /// How long it waits for what.
    pub patience: Patience,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may hold a password.
        f.debug_struct("Options").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Options {
    /// The usual options for that address.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            prefix: "redrive".to_owned(),
            defaults: QueueSettings::default(),
            limits: Limits::default(),
            first_epoch: 1,
            durability: Durability::Process,
            authorities: None,
            patience: Patience::default(),
        }
    }

    /// Refuses what can never work, before anybody is asked.
    pub fn check(&self) -> Result<(), WrongOption> {
        let address = Address::parse(&self.url)?;
        if let Some(authorities) = &self.authorities {
            address.trusts(authorities)?;
        }
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if self.prefix.is_empty() || self.prefix.len() > PREFIX_MAX || !self.prefix.chars().all(good) {
            return Err(WrongOption::Prefix);
        }
        Ok(())
    }

    /// Where the server is, for people: the address without who we are there.
    pub fn place(&self) -> Result<String, WrongOption> {
        Address::parse(&self.url).map(|address| address.place())
    }
}

/// An address, taken apart.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) cluster: bool,
    /// What sentinels call the master, where the nodes are sentinels.
    pub(crate) master: Option<String>,
    scheme: &'static str,
    /// `user:password@`, as it was written.
    who: String,
    pub(crate) nodes: Vec<String>,
    /// What follows the nodes.
    rest: String,
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, WrongOption> {
        let (scheme, rest) = url.split_once("://").ok_or(WrongOption::Url)?;
        let (scheme, cluster, sentinels) = match scheme {
            "redis" => ("redis", false, false),
            "rediss" => ("rediss", false, false),
            "redis+cluster" => ("redis", true, false),
            "rediss+cluster" => ("rediss", true, false),
            "redis+sentinel" => ("redis", false, true),
            "rediss+sentinel" => ("rediss", false, true),
            _ => return Err(WrongOption::Url),
        };
        let (who, rest) = rest.rsplit_once('@').map_or(("", rest), |(who, rest)| (who, rest));
        let who = if who.is_empty() { String::new() } else { format!("{who}@") };
        let (hosts, path) = rest.split_once('/').map_or((rest, ""), |(hosts, path)| (hosts, path));
        let port = if sentinels { SENTINEL_PORT } else { PORT };
        let nodes: Vec<String> = hosts.split(',').map(|host| with_port(host, port)).collect();
        let (master, path) = if sentinels { master_and_database(path)? } else { (None, path) };
        let rest = if path.is_empty() { String::new() } else { format!("/{path}") };
        let address = Self { cluster, master, scheme, who, nodes, rest };
        let known = address
            .nodes
            .iter()
            .all(|node| !node.starts_with(':') && Client::open(address.url(node)).is_ok());
        if !known
            || address.nodes.is_empty()
            || (!cluster && !sentinels && address.nodes.len() > 1)
            || (cluster && !path.is_empty())
        {
            return Err(WrongOption::Url);
        }
        Ok(address)
    }

    /// What can be shown of it: the nodes, and the number of the database.
    fn place(&self) -> String {
        let database = self.rest.split(['?', '#']).next().unwrap_or_default();
        let shown = database.strip_prefix('/').is_some_and(|number| number.parse::<u16>().is_ok());
        let master = self.master.as_ref().map(|name| format!("/{name}")).unwrap_or_default();
        format!("{}{master}{}", self.nodes.join(","), if shown { database } else { "" })
    }

    /// Refuses authorities that cannot be read, that are none, or that nobody would ever look at.
    fn trusts(&self, authorities: &[u8]) -> Result<(), WrongOption> {
        let some = String::from_utf8_lossy(authorities).contains("-----BEGIN CERTIFICATE-----");
        let node = self.nodes.first().ok_or(WrongOption::Url)?;
        let read = self.scheme == "rediss" && self.client(node, Some(authorities)).is_ok();
        if some && read { Ok(()) } else { Err(WrongOption::Authorities) }
    }

    /// A client for one node.
    pub(crate) fn client(&self, node: &str, authorities: Option<&[u8]>) -> Result<Client, RedisError> {
        self.client_to(self.url(node), authorities)
    }

    /// A client for a sentinel, as whom we are known to the servers or as nobody. Sentinels have no databases.
    pub(crate) fn sentinel(
        &self,
        node: &str,
        known: bool,
        authorities: Option<&[u8]>,
    ) -> Result<Client, RedisError> {
        let who = if known { self.who.as_str() } else { "" };
        self.client_to(format!("{}://{who}{node}", self.scheme), authorities)
    }

    fn client_to(&self, url: String, authorities: Option<&[u8]>) -> Result<Client, RedisError> {
        if self.scheme == "rediss" {
            choose_cryptography();
        }
        match authorities {
            Some(pem) => {
                let certificates = TlsCertificates { client_tls: None, root_cert: Some(pem.to_vec()) };
                Client::build_with_tls(url, certificates)
            }
            None => Client::open(url),
        }
    }

    /// The address of one node.
    pub(crate) fn url(&self, node: &str) -> String {
        format!("{}://{}{node}{}", self.scheme, self.who, self.rest)
    }
}

/// The library takes the cryptography of the process, cannot be told which, and panics where nobody has chosen one.
fn choose_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Whoever was faster has chosen as well.
        drop(aws_lc_rs::default_provider().install_default());
    }
}

/// What follows the sentinels: the name of the master, of such characters as they allow in it, and the number of a database.
fn master_and_database(path: &str) -> Result<(Option<String>, &str), WrongOption> {
    let (name, database) = path.split_once('/').unwrap_or((path, ""));
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let number = database.is_empty() || database.parse::<u16>().is_ok();
    if name.is_empty() || !name.chars().all(good) || !number {
        return Err(WrongOption::Url);
    }
    Ok((Some(name.to_owned()), database))
}

fn with_port(host: &str, port: u16) -> String {
    let has_port =
        host.rsplit_once(':').is_some_and(|(before, _)| !before.contains(':') || before.ends_with(']'));
    if has_port { host.to_owned() } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_or_refused_without_their_password() {
        for url in [
            "redis://localhost",
            "redis://user:pa%40ss@localhost:6380/3",
            "rediss://:secret@redis.example:6379",
            "redis+cluster://a:1,b:2,c:3",
            "redis://[::1]:7000",
            "redis+sentinel://a,b:2/work",
            "rediss+sentinel://user:secret@a:1,[::1]:2/my-master.1/2",
        ] {
            assert!(Address::parse(url).is_ok(), "{url}");
        }
        for url in [
            "",
            "localhost",
            "http://localhost",
            "redis://",
            "redis://a:1,b:2",
            "redis://host:port",
            "redis+cluster://a:1/2",
            "redis+sentinel://a:1,b:2",
            "redis+sentinel://a:1/",
            "redis+sentinel://a:1//2",
            "redis+sentinel://a:1/work/two",
            "redis+sentinel://a:1/wo rk",
        ] {
            assert_eq!(Address::parse(url).err(), Some(WrongOption::Url), "{url}");
        }
        let options = Options::new("redis://:secret@localhost");
        assert!(!format!("{options:?}").contains("secret"));
    }

    #[test]
    fn a_place_has_no_password_in_it() {
        for (url, place) in [
            ("redis://localhost", "localhost:6379"),
            ("redis://me:secret@here:1/3", "here:1/3"),
            ("redis://me:secret@@here/3?protocol=resp3", "here:6379/3"),
            ("rediss+cluster://:secret@a:1,b", "a:1,b:6379"),
            ("redis+sentinel://me:secret@a:1,b/work/2", "a:1,b:26379/work/2"),
            ("redis://:s%2Fecret@[::1]:7000", "[::1]:7000"),
        ] {
            assert_eq!(Options::new(url).place().as_deref(), Ok(place), "{url}");
        }
        assert_eq!(Options::new("redis://secret@here:port").place(), Err(WrongOption::Url));
    }

    #[test]
    fn authorities_are_certificates_and_for_tls() {
        for (url, pem) in [
            ("rediss://localhost", "nothing"),
            ("rediss://localhost", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            ("redis://localhost", "nothing"),
        ] {
            let options = Options { authorities: Some(pem.into()), ..Options::new(url) };
            assert_eq!(options.check(), Err(WrongOption::Authorities), "{url} {pem}");
        }
    }

    #[test]
    fn a_prefix_cannot_move_keys_to_another_slot() {
        for prefix in ["", "a{b}", "a b", "a:b", &"x".repeat(65)] {
            let options = Options { prefix: prefix.to_owned(), ..Options::new("redis://localhost") };
            assert_eq!(options.check(), Err(WrongOption::Prefix), "{prefix}");
        }
    }
}
