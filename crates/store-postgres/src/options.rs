//! What a store is opened with.

use std::fmt;
use std::time::Duration;

use redrive_core::limits::Limits;
use redrive_core::queue::QueueSettings;
use redrive_store::StoreError;
use thiserror::Error;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Most connections of an instance.
const CONNECTIONS_MAX: usize = 1_000;
/// The longest name of anything in PostgreSQL.
const NAME_MAX: usize = 63;

/// Why options are wrong. Nothing of the address is in it: it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WrongOption {
    /// The address.
    #[error(
        "must be postgres://USER:PASSWORD@HOST:PORT/DATABASE, with %XX for each character of the user or the password \
         that an address has another use for"
    )]
    Url,
    /// The schema.
    #[error("must be small letters, digits and _, no digit first, at most {NAME_MAX} of them, and not pg_…")]
    Schema,
    /// The number of connections.
    #[error("must lie between 1 and {CONNECTIONS_MAX}")]
    Connections,
}

/// What the database must promise by its own settings. We change none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Whatever it is set to.
    Any,
    /// The end of its power loses nothing: `fsync` and `full_page_writes` are on, `synchronous_commit` is not off.
    Local,
    /// The end of its disk loses nothing either: there is a synchronous standby, and its disk is waited for.
    Replicated,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "any",
            Self::Local => "local",
            Self::Replicated => "replicated",
        })
    }
}

/// How long a store waits for what.
///
/// Behind a proxy that gives each transaction another connection, what the server should end is set for each transaction;
/// a call that is one statement has only the limits of the role or the database, and ours on answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For a connection that others use, and for each host that a new one is tried with.
    pub connection: Duration,
    /// For somebody else's lock; then the server ends the statement.
    pub lock: Duration,
    /// For a statement; then the server ends it.
    pub statement: Duration,
    /// For our own next word within a transaction; then the server ends the connection. A process that is stopped in the
    /// midst of one must not keep its rows from the others until it goes on.
    pub idle_in_transaction: Duration,
    /// For an answer, also from a server that cannot say that it ended the statement; then the connection is given up.
    pub answer: Duration,
    /// For a word from a connection that is at rest, before it is asked whether it is still there.
    pub silence: Duration,
    /// For what became of a commit whose answer was lost; then the outcome is unknown. It is less than the five minutes
    /// for which it can be told.
    pub doubt: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connection: Duration::from_secs(5),
            lock: Duration::from_secs(10),
            statement: Duration::from_secs(30),
            idle_in_transaction: Duration::from_secs(10),
            answer: Duration::from_secs(40),
            silence: Duration::from_secs(15),
            doubt: Duration::from_secs(20),
        }
    }
}

/// What a store is opened with.
#[derive(Clone)]
pub struct Options {
    /// Where the database is, as libpq would take it: `postgres://user:password@host:port/database`.
    pub url: String,
    /// The schema that everything is kept in.
    pub schema: String,
    /// Most connections that one instance opens, its listener not counted.
    pub connections: usize,
    /// Whether a proxy may give each transaction another connection, so that nothing can be prepared ahead.
    pub transaction_pooling: bool,
    /// The settings of a queue that sets nothing.
    pub defaults: QueueSettings,
    /// What a queue may hold.
    pub limits: Limits,
    /// The first epoch of lease ids, where the database has none yet.
    pub first_epoch: u16,
    /// What the server must promise for the store to open.
    pub durability: Durability,
    /// Certificates of the authorities that a server's certificate must come from, as PEM; `None` for those of the machine.
    pub authorities: Option<Vec<u8>>,
    /// How long a store waits for what.
    pub patience: Patience,
}

impl Options {
    /// The defaults, at that address.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            schema: "redrive".to_owned(),
            connections: 16,
            transaction_pooling: false,
            defaults: QueueSettings::default(),
            limits: Limits::default(),
            first_epoch: 1,
            durability: Durability::Local,
            authorities: None,
            patience: Patience::default(),
        }
    }

    /// Whether a store can be opened with them at all.
    pub fn check(&self) -> Result<(), WrongOption> {
        self.parsed()?;
        let of_a_name = |letter: u8| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'_');
        let schema = self.schema.as_bytes();
        let first = schema.first().ok_or(WrongOption::Schema)?;
        if first.is_ascii_digit()
            || schema.len() > NAME_MAX
            || !schema.iter().copied().all(of_a_name)
            || schema.starts_with(b"pg_")
        {
            return Err(WrongOption::Schema);
        }
        if !(1..=CONNECTIONS_MAX).contains(&self.connections) {
            return Err(WrongOption::Connections);
        }
        Ok(())
    }

    /// Where the database is, without who asks: `127.0.0.1:5432/redrive`.
    pub fn place(&self) -> Result<String, WrongOption> {
        let config = self.parsed()?;
        let (hosts, ports) = (config.get_hosts(), config.get_ports());
        let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5_432);
        let hosts = hosts.iter().enumerate().map(|(at, host)| format!("{}:{}", name(host), port(at)));
        let hosts: Vec<String> = hosts.collect();
        Ok(format!("{}/{}", hosts.join(","), config.get_dbname().or(config.get_user()).unwrap_or_default()))
    }

    /// How to connect. What the address says about it counts.
    pub(crate) fn config(&self) -> Result<Config, StoreError> {
        let mut config = self.parsed().map_err(|wrong| StoreError::Unavailable(wrong.into()))?;
        let patience = &self.patience;
        if config.get_application_name().is_none() {
            config.application_name("redrive");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(patience.connection);
        }
        // Who has gone without a word is missed after three questions, or when something sent is not confirmed.
        if config.get_keepalives_idle() == Config::new().get_keepalives_idle() {
            config.keepalives_idle(patience.silence);
        }
        if config.get_keepalives_interval().is_none() && config.get_keepalives_retries().is_none() {
            config.keepalives_interval(patience.silence / 3).keepalives_retries(3);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(patience.silence * 2);
        }
        Ok(config)
    }

    /// What the address says. What the parser has to say against it is not passed on: it repeats parts of it.
    fn parsed(&self) -> Result<Config, WrongOption> {
        let config: Config = self.url.parse().map_err(|_| WrongOption::Url)?;
        let hosts = config.get_hosts();
        // An @ in a host was one of the password.
        if hosts.is_empty() || hosts.iter().any(|host| name(host).contains('@')) {
            return Err(WrongOption::Url);
        }
        Ok(config)
    }
}

fn name(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    }
}

/// Without the address.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            url: _,
            schema,
            connections,
            transaction_pooling,
            defaults,
            limits,
            first_epoch,
            durability,
            authorities,
            patience,
        } = self;
        f.debug_struct("Options")
            .field("place", &self.place())
            .field("schema", schema)
            .field("connections", connections)
            .field("transaction_pooling", transaction_pooling)
            .field("defaults", defaults)
            .field("limits", limits)
            .field("first_epoch", first_epoch)
            .field("durability", durability)
            .field("authorities", &authorities.is_some())
            .field("patience", patience)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(url: &str) -> Option<WrongOption> {
        Options::new(url).check().err()
    }

    #[test]
    fn an_address_is_told_without_who_asks() {
        let place = |url| Options::new(url).place().unwrap();
        assert_eq!(place("postgres://me:secret@here:1234/db"), "here:1234/db");
        assert_eq!(place("postgresql://me@a:1,b:2/db?target_session_attrs=read-write"), "a:1,b:2/db");
        assert_eq!(place("postgres://me:secret@here"), "here:5432/me");
        assert_eq!(place("postgres://me:secret?x@here/db"), "here:5432/db");
        assert_eq!(place("postgres://me@%2Fvar%2Frun:1/db"), "/var/run:1/db");
    }

    #[test]
    fn what_is_wrong_is_told_without_the_password() {
        for url in [
            "postgres://me:secret@here:port/db",
            "postgres://me:se@cret@here/db",
            "postgres://",
            "postgres:///db",
            "tape",
        ] {
            assert_eq!(wrong(url), Some(WrongOption::Url), "{url}");
            let shown = format!("{:?}", Options::new(url));
            assert!(!shown.contains("cret"), "{shown}");
        }
        let shown = format!("{:?}", Options::new("postgres://me:secret@here/db"));
        assert!(shown.contains("here:5432/db") && !shown.contains("secret"), "{shown}");
    }

    #[test]
    fn a_schema_is_a_plain_name() {
        let with = |schema: &str| {
            Options { schema: schema.to_owned(), ..Options::new("postgres://me@here/db") }.check().err()
        };
        assert_eq!((with("redrive"), with("_a1"), with(&"a".repeat(63))), (None, None, None));
        for name in ["", "1a", "A", "a-b", "a\"b", "a.b", "pg_catalog", "ä", &"a".repeat(64)] {
            assert_eq!(with(name), Some(WrongOption::Schema), "{name}");
        }
    }
}
