//! A line between client and server that can be cut.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Passes everything on, until it is cut.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    up: Arc<watch::Sender<bool>>,
}

impl Proxy {
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let up = Arc::new(watch::Sender::new(true));
        let state = Arc::clone(&up);
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                tokio::spawn(pass(client, server, state.subscribe()));
            }
        });
        Self { address, up }
    }

    /// Ends every connection, and every new one at once.
    pub(crate) fn cut(&self) {
        self.up.send_replace(false);
    }

    pub(crate) fn mend(&self) {
        self.up.send_replace(true);
    }
}

async fn pass(mut client: TcpStream, server: SocketAddr, mut up: watch::Receiver<bool>) {
    if !*up.borrow_and_update() {
        return;
    }
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => {}
        _ = up.changed() => {}
    }
}
