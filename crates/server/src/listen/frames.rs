//! How many frames of HTTP/2 a client sends that only make work.
//!
//! Who sends a ping or settings is owed an answer, and nothing in the protocol says how often that may be asked for. A few
//! are how clients measure the line; millions keep a processor from everybody else. The library limits the other kinds.

use std::time::Duration;

use tokio::time::Instant;

/// How many of them a client may send in a time.
const ASKED_MAX: u32 = 1_000;
const ASKED_TIME: Duration = Duration::from_secs(1);

/// What is before every frame: three bytes of length, then type, flags and the stream.
const HEAD_BYTES: usize = 9;
/// The types whose number the library limits, or that carry what the client has to say.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const ACK: u8 = 1;

/// The frames of a connection, as far as they have to be told apart.
#[derive(Debug)]
pub(super) struct Frames {
    /// The head of the next frame, as far as it has come.
    head: [u8; HEAD_BYTES],
    have: usize,
    /// What is left of the frame before it.
    rest: usize,
    asked: u32,
    since: Instant,
}

impl Frames {
    pub(super) fn new(now: Instant) -> Self {
        Self { head: [0; HEAD_BYTES], have: 0, rest: 0, asked: 0, since: now }
    }

    /// Looks at what came next. False where it is too much.
    pub(super) fn are_few(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let rest = self.rest.min(bytes.len());
            self.rest -= rest;
            bytes = &bytes[rest..];
            let part = (HEAD_BYTES - self.have).min(bytes.len());
            self.head[self.have..self.have + part].copy_from_slice(&bytes[..part]);
            self.have += part;
            bytes = &bytes[part..];
            if self.have == HEAD_BYTES && !self.is_bearable() {
                return false;
            }
        }
        true
    }

    /// Takes a whole head.
    fn is_bearable(&mut self) -> bool {
        let [high, middle, low, kind, flags, ..] = self.head;
        self.rest = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        self.have = 0;
        let is_work = match kind {
            DATA | HEADERS | RST_STREAM | WINDOW_UPDATE | CONTINUATION => false,
            SETTINGS | PING => flags & ACK == 0,
            // Priorities, and what nobody knows.
            _ => true,
        };
        !is_work || self.may_ask()
    }

    /// The clock is asked only when there were many.
    fn may_ask(&mut self) -> bool {
        self.asked += 1;
        if self.asked <= ASKED_MAX {
            return true;
        }
        let now = Instant::now();
        let took = now - self.since;
        (self.asked, self.since) = (0, now);
        took >= ASKED_TIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, bytes: usize) -> Vec<u8> {
        let length = u32::try_from(bytes).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, 0], &vec![0xff; bytes]].concat()
    }

    /// How many of these frames are borne at once.
    fn borne(frame: &[u8]) -> usize {
        let mut frames = Frames::new(Instant::now());
        (0..10_000).take_while(|_| frames.are_few(frame)).count()
    }

    #[tokio::test(start_paused = true)]
    async fn what_only_makes_work_is_borne_a_thousand_times() {
        for frame in [frame(PING, 0, 8), frame(SETTINGS, 0, 6), frame(2, 0, 5), frame(0x77, 0, 100_000)] {
            assert_eq!(borne(&frame), 1_000);
        }
        for frame in [
            frame(DATA, 0, 0),
            frame(DATA, 1, 70_000),
            frame(HEADERS, 4, 20),
            frame(WINDOW_UPDATE, 0, 4),
            frame(PING, ACK, 8),
            frame(SETTINGS, ACK, 0),
        ] {
            assert_eq!(borne(&frame), 10_000);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn frames_are_found_however_they_are_cut() {
        let all =
            [frame(DATA, 0, 300), frame(PING, 0, 8), frame(HEADERS, 4, 0), frame(SETTINGS, 0, 12)].concat();
        for size in [1, 2, 7, 9, 10, 64, all.len()] {
            let mut frames = Frames::new(Instant::now());
            assert!(all.chunks(size).all(|part| frames.are_few(part)));
            assert_eq!((frames.asked, frames.have, frames.rest), (2, 0, 0), "{size}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_now_and_then_may_do_so_forever() {
        let (mut frames, ping) = (Frames::new(Instant::now()), frame(PING, 0, 8));
        for _ in 0..20_000 {
            assert!(frames.are_few(&ping));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
    }
}
