//! The port: who connects, in which protocol, what a stranger may send at most, and when a connection ends.
//!
//! Everything here happens before a request means anything: connections are counted (`connections`) before anything is
//! kept for them, their protocol is found out (`connection`) on what may be TLS (`tls`), a head must come in time
//! (`late`), and each request passes the `front`, which asks whether it was meant for this server (`origin`) and holds
//! its body to a pace (`pace`).

mod activity;
mod connection;
mod connections;
mod frames;
mod front;
mod greeted;
mod late;
mod origin;
mod pace;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;

use axum::Router;
use redrive_broker::pause;
use redrive_core::time::Millis;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

pub use connections::{ConnectionLimits, PortMetrics};
pub(crate) use pace::is_too_slow;
pub use tls::{Tls, TlsError};

use connection::connection;
use connections::{Connections, Open};
use front::{Front, Rules};

/// Connections that wait to be accepted. The system may allow fewer.
const CONNECTING_MAX: u32 = 4_096;
/// How long to wait where the system has no connection left to give.
const EXHAUSTED: Millis = Millis::from_secs(1);

/// From where a request came, among its extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// What a port is opened with.
#[derive(Debug, Default)]
pub struct PortConfig {
    /// How many connections there may be.
    pub connections: ConnectionLimits,
    /// Whether anybody who can connect may do anything. A browser can be made to connect by any page it shows, so that
    /// the port then answers only to names which no page can have taken.
    pub open: bool,
    /// The names, beside addresses and `localhost`, to which an open port answers.
    pub allowed_hosts: Vec<String>,
    /// The certificate, where connections are encrypted.
    pub tls: Option<Tls>,
}

/// A port on which clients are heard, once it serves.
#[derive(Debug)]
pub struct Port {
    listener: TcpListener,
    connections: Arc<Connections>,
    rules: Rules,
    tls: Option<Tls>,
}

impl Port {
    /// Listens. Thousands of consumers that come at the same time, as they do after a restart, must not be turned away
    /// for the second that their machines wait before they try again.
    pub fn listen(address: SocketAddr, config: PortConfig) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // A server that was just ended leaves connections behind that keep the port for a while.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(Self {
            listener: socket.listen(CONNECTING_MAX)?,
            connections: Arc::new(Connections::new(config.connections)),
            rules: Rules::new(config.open, config.allowed_hosts),
            tls: config.tls,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What it speaks where it speaks TLS.
    pub fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// What it counts.
    pub fn metrics(&self) -> Arc<PortMetrics> {
        self.connections.metrics()
    }

    /// Serves until `stop` is done; then accepts nobody, and returns when what was under way has been answered.
    pub async fn serve(self, app: Router, stop: impl Future<Output = ()>) {
        let Self { listener, connections, rules, tls } = self;
        // Made once: a router that still waits for its state would be made anew for every connection, 170 KB of it.
        let front = Front::new(app.with_state::<()>(()), rules);
        let (ending, _) = watch::channel(());
        let mut stop = pin!(stop);
        while let Some(accepted) = accept(&listener, &mut stop).await {
            let (stream, peer) = accepted;
            // Over the limit: closed by being dropped, before anything is kept for it.
            let Some(open) = connections.open(peer.ip()) else { continue };
            // An answer is written once and whole: to hold it back for more to come would only make it late.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "a connection that waits before it sends");
            }
            let (front, ending) = (front.for_peer(peer), ending.subscribe());
            // Two tasks, because the room for a handshake is many times that for a connection that needs none.
            match &tls {
                Some(tls) => tokio::spawn(encrypted(stream, tls.clone(), front, open, ending)),
                None => tokio::spawn(connection(stream, front, open, ending)),
            };
        }
        drop(listener);
        ending.send_replace(());
        ending.closed().await;
    }
}

/// The next connection, or nothing more once `stop` is done. What goes wrong while accepting never ends the port.
async fn accept<S: Future<Output = ()>>(
    listener: &TcpListener,
    stop: &mut Pin<&mut S>,
) -> Option<(TcpStream, SocketAddr)> {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.as_mut() => return None,
        };
        match accepted {
            Ok(accepted) => return Some(accepted),
            // That one is gone; the next may be there.
            Err(error) if is_of_one_connection(&error) => {}
            // The system has no file left for it, and would say so again at once.
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted");
                tokio::select! {
                    () = pause(EXHAUSTED) => {}
                    () = stop.as_mut() => return None,
                }
            }
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// A connection up to where it is encrypted, and then as any other.
async fn encrypted(stream: TcpStream, tls: Tls, front: Front, open: Open, mut ending: watch::Receiver<()>) {
    let accepted = tokio::select! {
        accepted = tls.accept(stream) => accepted,
        _ = ending.changed() => return,
    };
    match accepted {
        // A task of its own, which is no larger than what is left to do.
        Ok(stream) => drop(tokio::spawn(connection(stream, front, open, ending))),
        Err(error) => tracing::debug!(%error, "a connection that did not come to TLS"),
    }
}
