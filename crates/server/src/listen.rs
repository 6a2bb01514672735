//! The port: who connects, in which protocol, and when a connection ends.
//!
//! Protocols are told apart by the first bytes, and each has its own future: a connection is then as large as its
//! protocol needs, not as large as the largest. Ten thousand consumers that wait are ten thousand of these.

use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use futures::FutureExt as _;
use futures::future::FusedFuture;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use redrive_broker::pause;
use redrive_core::time::Millis;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

/// Connections that wait to be accepted. The system may allow fewer.
const CONNECTING_MAX: u32 = 4_096;
/// How long to wait where the system has no connection left to give.
const EXHAUSTED: Millis = Millis::from_secs(1);
/// How long a client may take to say the head of a request, the first or the next on the same connection.
const HEAD_TIME_MAX: Duration = Duration::from_mins(1);
/// How much may be under way to the server on one HTTP/2 stream, and on all streams of a connection: a batch should not
/// have to wait for the server to say that it may go on.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
/// The largest piece of an HTTP/2 stream: each is a call of the system.
const FRAME_BYTES_MAX: u32 = 256 << 10;
/// How often a client on HTTP/2 is asked whether it is still there, and how long it may take to answer.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIME_MAX: Duration = Duration::from_secs(20);
/// How long a client that says no more is taken to listen.
const LISTENS_ON: Millis = Millis::new(100);
/// What every HTTP/2 connection begins with.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Listens. Thousands of consumers that come at the same time, as they do after a restart, must not be turned away for
/// the second that their machines wait before they try again.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A server that was just ended leaves connections behind that keep the port for a while.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(CONNECTING_MAX)
}

/// Serves until `stop` is done; then accepts nobody, and returns when what was under way has been answered.
pub async fn serve(listener: TcpListener, app: Router, stop: impl Future<Output = ()>) {
    // Made once: a router that still waits for its state would be made anew for every connection, 170 KB of it.
    let app = app.with_state::<()>(());
    let (ending, _) = watch::channel(());
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, _)) => {
                tokio::spawn(connection(stream, app.clone(), ending.subscribe()));
            }
            // That one is gone; the next may be there.
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted");
                pause(EXHAUSTED).await;
            }
        }
    }
    drop(listener);
    ending.send_replace(());
    ending.closed().await;
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

type Service = TowerToHyperService<Router>;
type Io = TokioIo<Greeted>;

/// The beginning of a connection, up to where its protocol is known.
async fn connection(stream: TcpStream, app: Router, mut ending: watch::Receiver<()>) {
    // An answer is written once and whole: to hold it back for more to come would only make it late.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection that waits before it sends");
    }
    let greeted = tokio::select! {
        greeted = tokio::time::timeout(HEAD_TIME_MAX, greet(stream)) => greeted,
        _ = ending.changed() => return,
    };
    // Whoever says nothing in time, or hangs up, wants nothing.
    let Ok(Ok((stream, is_http2))) = greeted else { return };
    let (io, service) = (TokioIo::new(stream), TowerToHyperService::new(app));
    // A task of its own, which is no larger than what is left to do.
    if is_http2 {
        tokio::spawn(async move { ended(serve_http2(io, service, ending).await) });
    } else {
        tokio::spawn(async move { ended(serve_http1(io, service, ending).await) });
    }
}

fn ended(served: hyper::Result<()>) {
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended badly");
    }
}

async fn serve_http1(io: Io, service: Service, mut ending: watch::Receiver<()>) -> hyper::Result<()> {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX);
    let mut served = pin!(builder.serve_connection(io, service));
    tokio::select! {
        done = served.as_mut() => return done,
        _ = ending.changed() => served.as_mut().graceful_shutdown(),
    }
    served.await
}

async fn serve_http2(io: Io, service: Service, mut ending: watch::Receiver<()>) -> hyper::Result<()> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES_MAX)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_TIME_MAX);
    let mut served = pin!(builder.serve_connection(io, service));
    tokio::select! {
        done = served.as_mut() => return done,
        _ = ending.changed() => served.as_mut().graceful_shutdown(),
    }
    served.await
}

/// Reads until it is clear which protocol it is.
async fn greet(mut stream: TcpStream) -> io::Result<(Greeted, bool)> {
    let mut said = [0; PREFACE.len()];
    let mut len = 0;
    while said[..len] == PREFACE[..len] && len < PREFACE.len() {
        let more = stream.read(&mut said[len..]).await?;
        if more == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        len += more;
    }
    let is_http2 = said[..len] == PREFACE[..];
    Ok((Greeted { stream, said, read: 0, len, ended: None }, is_http2))
}

/// A connection whose first bytes have been looked at, and are read once more.
struct Greeted {
    stream: TcpStream,
    said: [u8; PREFACE.len()],
    read: usize,
    len: usize,
    /// When the end of what the client says is told.
    ended: Option<Pin<Box<dyn FusedFuture<Output = ()> + Send>>>,
}

impl Greeted {
    /// Reads from the connection. Its end is told a little late: who has said all may still listen, and gets the answer to
    /// what is done at once. A poll that waits for longer is given up, because most who end are gone.
    fn read_on(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, into))?;
        if into.filled().len() > before || into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let late = self.ended.get_or_insert_with(|| Box::pin(pause(LISTENS_ON).fuse()));
        // Whoever reads on after the end is told of it again.
        if !late.is_terminated() {
            ready!(late.as_mut().poll(context));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Greeted {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let rest = &this.said[this.read..this.len];
        if rest.is_empty() {
            return this.read_on(context, into);
        }
        let part = &rest[..rest.len().min(into.remaining())];
        into.put_slice(part);
        this.read += part.len();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Greeted {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    /// What is heard of a client that says these parts, one after the other, and hangs up.
    async fn heard(parts: &[&[u8]]) -> io::Result<(bool, Vec<u8>)> {
        let listener = listen(([127, 0, 0, 1], 0).into())?;
        let mut client = TcpStream::connect(listener.local_addr()?).await?;
        client.set_nodelay(true)?;
        let (stream, _) = listener.accept().await?;
        let say = async {
            for part in parts {
                client.write_all(part).await?;
                tokio::task::yield_now().await;
            }
            client.shutdown().await
        };
        let (said, greeted) = tokio::join!(say, greet(stream));
        said?;
        let (mut stream, is_http2) = greeted?;
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await?;
        assert_eq!(stream.read(&mut [0]).await?, 0, "the end stays the end");
        Ok((is_http2, all))
    }

    #[tokio::test]
    async fn protocols_are_told_apart_however_slowly_they_begin_and_nothing_is_lost() {
        let http1 = b"PRINT / HTTP/1.1\r\nhost: a\r\n\r\n";
        let http2 = [&PREFACE[..], b"frames"].concat();
        for at in 1..PREFACE.len() {
            let (start, end) = http1.split_at(at);
            assert_eq!(heard(&[start, end]).await.unwrap(), (false, http1.to_vec()), "{at}");
            let (start, end) = http2.split_at(at);
            assert_eq!(heard(&[start, end]).await.unwrap(), (true, http2.clone()), "{at}");
        }
    }

    #[tokio::test]
    async fn who_hangs_up_before_it_is_clear_wants_nothing() {
        for said in [&b""[..], b"P", &PREFACE[..PREFACE.len() - 1]] {
            assert_eq!(heard(&[said]).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
        assert_eq!(heard(&[b"G"]).await.unwrap(), (false, b"G".to_vec()), "the parser refuses that");
    }
}
