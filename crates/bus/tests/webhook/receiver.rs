//! Receivers on this machine, each with its own manners.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// A request as it came in.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The first line and the headers.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    /// The value of a header, whose name is written in small letters.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1);
        lines.find_map(|line| {
            line.split_once(": ").filter(|(found, _)| *found == name).map(|(_, value)| value)
        })
    }
}

/// Listens until it is dropped.
pub(crate) struct Receiver {
    pub(crate) addr: SocketAddr,
    /// Who connected, in the order of their arrival.
    peers: watch::Receiver<Vec<SocketAddr>>,
    /// How many of them were ourselves, to see whether there was anybody else.
    probes: AtomicUsize,
    accepting: JoinHandle<()>,
}

impl Receiver {
    /// Treats every connection like that.
    pub(crate) async fn start<F, Treated>(at: &str, treat: F) -> Self
    where
        F: Fn(TcpStream) -> Treated + Send + 'static,
        Treated: Future<Output = ()> + Send + 'static,
    {
        Self::start_on(TcpListener::bind(at).await.unwrap(), treat)
    }

    pub(crate) fn start_on<F, Treated>(listener: TcpListener, treat: F) -> Self
    where
        F: Fn(TcpStream) -> Treated + Send + 'static,
        Treated: Future<Output = ()> + Send + 'static,
    {
        let addr = listener.local_addr().unwrap();
        let (arrived, peers) = watch::channel(Vec::new());
        let accepting = tokio::spawn(async move {
            while let Ok((stream, peer)) = listener.accept().await {
                arrived.send_modify(|peers| peers.push(peer));
                tokio::spawn(treat(stream));
            }
        });
        Self { addr, peers, probes: AtomicUsize::new(0), accepting }
    }

    /// Says the same to every request, and tells what came in.
    pub(crate) async fn saying(answer: impl Into<String>) -> (Self, mpsc::Receiver<Seen>) {
        Self::saying_at("127.0.0.1:0", answer).await
    }

    pub(crate) async fn saying_at(at: &str, answer: impl Into<String>) -> (Self, mpsc::Receiver<Seen>) {
        let (tell, seen) = mpsc::channel(100);
        let answer: Arc<str> = answer.into().into();
        let receiver = Self::start(at, move |mut stream| {
            let (tell, answer) = (tell.clone(), Arc::clone(&answer));
            async move {
                while let Some(request) = read_request(&mut stream).await {
                    tell.send(request).await.unwrap();
                    if stream.write_all(answer.as_bytes()).await.is_err() || answer.contains("close") {
                        return;
                    }
                }
            }
        });
        (receiver.await, seen)
    }

    /// One that nobody should ever call.
    pub(crate) async fn trap() -> Self {
        Self::start("127.0.0.1:0", |_| async {}).await
    }

    pub(crate) fn port(&self) -> u16 {
        self.addr.port()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.addr)
    }

    /// How many connections there were until now. They are accepted in their order, so whoever came before a connection of
    /// our own has been seen by then.
    pub(crate) async fn connections(&self) -> usize {
        let probe = TcpStream::connect(self.addr).await.unwrap();
        let ours = probe.local_addr().unwrap();
        let mut peers = self.peers.clone();
        let peers = peers.wait_for(|peers| peers.contains(&ours)).await.unwrap();
        let before = peers.iter().position(|peer| *peer == ours).unwrap();
        before - self.probes.fetch_add(1, Ordering::SeqCst)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// `None` at the end of the connection.
pub(crate) async fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut read = Vec::new();
    let end = loop {
        if let Some(at) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    };
    let mut seen =
        Seen { head: String::from_utf8(read[..end].to_vec()).unwrap(), body: read[end..].to_vec() };
    let length: usize = seen.header("content-length").map_or(0, |value| value.parse().unwrap());
    while seen.body.len() < length {
        if stream.read_buf(&mut seen.body).await.ok()? == 0 {
            return None;
        }
    }
    Some(seen)
}
