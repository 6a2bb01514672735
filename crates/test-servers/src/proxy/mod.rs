//! A proxy that breaks what a client and a server say to each other.
//!
//! A [`Proxy`] stands before a server and passes everything on until a [`Rule`] says otherwise. A rule is what it waits
//! for ([`Trigger`]) and what it does then ([`Fault`]); what [`Proxy::inject`] returns counts both, so that a test can
//! show that the fault has happened. It knows the protocol, which is PostgreSQL's or by its URL that of Redis, as far as that
//! needs: `postgres/` and `redis.rs` say where a message ends and which answer belongs to which request, as `ledger.rs` asks
//! them.
//!
//! Encryption is declined on a PostgreSQL's behalf. Replication is not understood.

mod address;
mod connection;
mod ledger;
mod postgres;
mod redis;
mod rule;
mod switchboard;

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use address::{Address, Protocol};
pub use rule::{Fault, Rule, Trigger};
pub use switchboard::Injected;
use switchboard::Switchboard;

use crate::port;

/// A proxy on a port of its own. When it is dropped, its connections are cut and nobody listens any more.
#[derive(Debug)]
pub struct Proxy {
    url: String,
    port: u16,
    switchboard: Arc<Switchboard>,
    listener: Option<JoinHandle<()>>,
}

impl Proxy {
    /// A proxy before the server of this URL, which has one host and is not a Unix socket. Where it does not begin with
    /// `redis://`, the server is a PostgreSQL.
    pub fn before(url: &str) -> io::Result<Self> {
        let address = Address::of(url)?;
        let listener = port::listen()?;
        let port = listener.local_addr()?.port();
        let switchboard = Arc::new(Switchboard::to(address.socket()?));
        let serve = match address.protocol {
            Protocol::Postgres => postgres::serve,
            Protocol::Redis => redis::serve,
        };
        let thread = {
            let switchboard = Arc::clone(&switchboard);
            thread::spawn(move || listen(&listener, &switchboard, serve))
        };
        Ok(Self { url: address.replaced_by(port), port, switchboard, listener: Some(thread) })
    }

    /// The server's URL, by way of the proxy.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Adds a rule. Where several want the same message, the oldest gets it.
    pub fn inject(&self, rule: Rule) -> Injected {
        self.switchboard.inject(rule)
    }

    /// Cuts every connection that is open, whatever it is doing, and answers how many these were.
    pub fn cut_all(&self) -> usize {
        self.switchboard.cut_all()
    }

    /// How many connections are open to a server.
    pub fn connections(&self) -> usize {
        self.switchboard.connections()
    }

    /// Leads new connections to another server of the same kind; those that are open stay where they are.
    pub fn lead_to(&self, url: &str) -> io::Result<()> {
        self.switchboard.lead_to(Address::of(url)?.socket()?);
        Ok(())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.switchboard.end();
        // Whoever waits for a client gets one, and sees that it is over.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        drop(self.listener.take().map(JoinHandle::join));
    }
}

/// Serves a client until one side ends, or a rule ends both.
type Serve = fn(&TcpStream, &Switchboard) -> io::Result<()>;

/// A thread for each connection: a test has few of them.
fn listen(listener: &TcpListener, switchboard: &Arc<Switchboard>, serve: Serve) {
    for client in listener.incoming() {
        if switchboard.is_over() {
            return;
        }
        let Ok(client) = client else {
            continue;
        };
        let switchboard = Arc::clone(switchboard);
        // A connection that fails is one that somebody ended; both sides have seen it.
        thread::spawn(move || drop(client.set_nodelay(true).and_then(|()| serve(&client, &switchboard))));
    }
}
