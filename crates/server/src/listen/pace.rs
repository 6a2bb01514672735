//! The pace at which the body of a request has to come.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

/// A body that is waited for has to bring this much in this time, again and again: 1 KiB a second, with a grace for
/// lines that stand still for a moment.
const WINDOW: Duration = Duration::from_secs(10);
const WINDOW_BYTES: usize = 10 * 1024;

/// A body that came too slowly.
#[derive(Debug)]
struct TooSlow;

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the body came more slowly than {WINDOW_BYTES} bytes in {} s", WINDOW.as_secs())
    }
}

impl Error for TooSlow {}

/// Whether a body could not be read because it came too slowly.
pub(crate) fn is_too_slow(error: &(dyn Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |&error| error.source());
    causes.any(<dyn Error>::is::<TooSlow>)
}

/// A body that is given up when it comes too slowly. A stream of gRPC messages is held to nothing: they come when there
/// is something to say.
#[derive(Debug)]
pub(super) struct Paced<B> {
    body: B,
    pace: Option<Pace>,
}

/// What came of a body, and how long it was waited for. The time in which nobody waits, because what came is being worked
/// on, is not the client's.
#[derive(Debug)]
struct Pace {
    /// What came since the window began.
    bytes: usize,
    /// What is left of the window, as of when nobody waited.
    left: Duration,
    /// The end of the window, kept for the next. There is none before a body is waited for: most come with their head.
    end: Option<Pin<Box<Sleep>>>,
    /// Whether `end` runs.
    waiting: bool,
}

impl<B> Paced<B> {
    pub(super) fn new(body: B, held: bool) -> Self {
        let pace = Pace { bytes: 0, left: WINDOW, end: None, waiting: false };
        Self { body, pace: held.then_some(pace) }
    }
}

impl Pace {
    fn came(&mut self, bytes: usize) {
        if let (true, Some(end)) = (self.waiting, &self.end) {
            self.left = end.deadline().saturating_duration_since(Instant::now());
            self.waiting = false;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= WINDOW_BYTES {
            self.bytes = 0;
            self.left = WINDOW;
        }
    }

    /// Waits for the end of the window.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let deadline = || Instant::now() + self.left;
        match &mut self.end {
            None => self.end = Some(Box::pin(sleep_until(deadline()))),
            Some(end) if !self.waiting => end.as_mut().reset(deadline()),
            Some(_) => {}
        }
        self.waiting = true;
        self.end.as_mut().map_or(Poll::Pending, |end| end.as_mut().poll(context))
    }
}

impl<B> Body for Paced<B>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin,
{
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        match (Pin::new(&mut this.body).poll_frame(context), &mut this.pace) {
            (Poll::Pending, Some(pace)) => pace.poll_end(context).map(|()| Some(Err(TooSlow.into()))),
            (Poll::Ready(Some(Ok(frame))), Some(pace)) => {
                pace.came(frame.data_ref().map_or(0, Bytes::len));
                Poll::Ready(Some(Ok(frame)))
            }
            (polled, _) => polled.map(|frame| frame.map(|frame| frame.map_err(Into::into))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use http_body_util::{BodyExt as _, StreamBody};
    use redrive_broker::pause;
    use redrive_core::time::Millis;

    use super::*;

    /// A body whose pieces come each after a time, paced.
    fn paced(
        pieces: Vec<(u64, usize)>,
        held: bool,
    ) -> Paced<impl Body<Data = Bytes, Error = std::io::Error> + Unpin> {
        let pieces = futures::stream::iter(pieces).then(|(after_ms, bytes)| async move {
            if after_ms > 0 {
                pause(Millis::new(after_ms)).await;
            }
            Ok(Frame::data(Bytes::from(vec![0; bytes])))
        });
        Paced::new(StreamBody::new(Box::pin(pieces)), held)
    }

    /// What was read, or whether it was too slow, and when that was clear.
    async fn read(pieces: Vec<(u64, usize)>) -> (Option<usize>, u64) {
        let begun = Instant::now();
        let read = paced(pieces, true).collect().await;
        let read = match read {
            Ok(body) => Some(body.to_bytes().len()),
            Err(error) => {
                assert!(is_too_slow(&*error), "{error}");
                None
            }
        };
        (read, begun.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_keeps_the_pace_may_take_as_long_as_it_is() {
        assert_eq!(read(vec![(0, 100)]).await, (Some(100), 0));
        assert_eq!(read(vec![(9_900, 1)]).await, (Some(1), 9), "the grace");
        assert_eq!(read(vec![(1_000, 1_024); 600]).await, (Some(600 * 1_024), 600));
        assert_eq!(read(vec![(9_000, 10_240); 100]).await, (Some(1_024_000), 900));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_is_given_up_when_its_ten_seconds_are_over() {
        assert_eq!(read(vec![(60_000, 1)]).await, (None, 10));
        assert_eq!(read(vec![(1_000, 1); 1_000]).await, (None, 10), "a drop now and then is not enough");
        assert_eq!(read(vec![(1_000, 1_000); 1_000]).await, (None, 10), "a little too slow is too slow");
        assert_eq!(read(vec![(0, 1 << 20), (60_000, 1)]).await, (None, 10), "a good start buys nothing");
        let then_slow = [vec![(1_000, 2_048); 50], vec![(1_000, 1); 50]].concat();
        assert_eq!(read(then_slow).await, (None, 60));
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_server_takes_for_its_work_is_not_the_clients() {
        let mut body = paced(vec![(1_000, 500); 5], true);
        for _ in 0..5 {
            body.frame().await.unwrap().unwrap();
            pause(Millis::from_secs(60)).await;
        }
        assert!(body.frame().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_held_to_nothing_may_be_silent() {
        let body = paced(vec![(3_600_000, 1); 3], false).collect().await.unwrap();
        assert_eq!(body.to_bytes().len(), 3);
    }
}
