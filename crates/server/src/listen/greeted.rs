//! A connection whose first bytes have been looked at, and are read once more.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::FutureExt as _;
use futures::future::FusedFuture;
use redrive_broker::pause;
use redrive_core::time::Millis;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::time::{Instant, timeout_at};

use super::activity::Activity;
use super::frames::Frames;
use super::late::{HEAD_TIME_MAX, IDLE_TIME_MAX};

/// How long a client that says no more is taken to listen.
const LISTENS_ON: Millis = Millis::new(100);
/// What every HTTP/2 connection begins with.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection whose first bytes have been looked at.
pub(super) struct Greeted<S> {
    stream: S,
    said: [u8; PREFACE.len()],
    read: usize,
    len: usize,
    /// When the end of what the client says is told.
    ended: Option<Pin<Box<dyn FusedFuture<Output = ()> + Send>>>,
    activity: Arc<Activity>,
    /// What is counted of HTTP/2.
    frames: Option<Box<Frames>>,
}

/// Reads until it is clear which protocol it is. Answers also when the first byte came.
pub(super) async fn greet<S: AsyncRead + Unpin>(
    mut stream: S,
    activity: Arc<Activity>,
) -> io::Result<(Greeted<S>, bool, Instant)> {
    let mut said = [0; PREFACE.len()];
    let mut len = read_some(&mut stream, &mut said, Instant::now() + IDLE_TIME_MAX).await?;
    let first = Instant::now();
    while said[..len] == PREFACE[..len] && len < PREFACE.len() {
        len += read_some(&mut stream, &mut said[len..], first + HEAD_TIME_MAX).await?;
    }
    let is_http2 = said[..len] == PREFACE[..];
    let frames = is_http2.then(|| Box::new(Frames::new(first)));
    Ok((Greeted { stream, said, read: 0, len, ended: None, activity, frames }, is_http2, first))
}

/// At least a byte, before it is too late.
async fn read_some<S: AsyncRead + Unpin>(
    stream: &mut S,
    into: &mut [u8],
    deadline: Instant,
) -> io::Result<usize> {
    match timeout_at(deadline, stream.read(into)).await?? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        some => Ok(some),
    }
}

impl<S: AsyncRead + Unpin> Greeted<S> {
    /// Reads from the connection. Its end is told a little late: who has said all may still listen, and gets the answer to
    /// what is done at once. A poll that waits for longer is given up, because most who end are gone.
    fn read_on(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, into))?;
        if into.filled().len() > before || into.remaining() == 0 {
            self.activity.hear();
            if self.frames.as_mut().is_some_and(|frames| !frames.are_few(&into.filled()[before..])) {
                let many = "too many frames that only make work";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, many)));
            }
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

impl<S: AsyncRead + Unpin> AsyncRead for Greeted<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let rest = &this.said[this.read..this.len];
        if !rest.is_empty() {
            let part = &rest[..rest.len().min(into.remaining())];
            into.put_slice(part);
            this.read += part.len();
            return Poll::Ready(Ok(()));
        }
        this.read_on(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Greeted<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.stream).poll_write(context, bytes));
        this.activity.say();
        Poll::Ready(written)
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
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.stream).poll_write_vectored(context, parts));
        this.activity.say();
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    /// What is heard of a client that says these parts, one after the other, and hangs up.
    async fn heard(parts: &[&[u8]]) -> io::Result<(bool, Vec<u8>)> {
        let (mut client, server) = tokio::io::duplex(1_024);
        let say = async {
            for part in parts {
                client.write_all(part).await?;
                tokio::task::yield_now().await;
            }
            client.shutdown().await
        };
        let (said, greeted) = tokio::join!(say, greet(server, Arc::default()));
        said?;
        let (mut stream, is_http2, _) = greeted?;
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await?;
        assert_eq!(stream.read(&mut [0]).await?, 0, "the end stays the end");
        Ok((is_http2, all))
    }

    #[tokio::test(start_paused = true)]
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

    #[tokio::test(start_paused = true)]
    async fn who_hangs_up_before_it_is_clear_wants_nothing() {
        for said in [&b""[..], b"P", &PREFACE[..PREFACE.len() - 1]] {
            assert_eq!(heard(&[said]).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
        assert_eq!(heard(&[b"G"]).await.unwrap(), (false, b"G".to_vec()), "the parser refuses that");
    }
}
