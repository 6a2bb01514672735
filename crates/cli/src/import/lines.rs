//! Lines of a file or of stdin, one at a time, none of them too long.

use redrive_core::limits::BATCH_BYTES_MAX;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// The longest line: more than the largest message as base64.
pub(super) const LINE_BYTES_MAX: usize = BATCH_BYTES_MAX;

/// A line, or what stands where one should.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// The line, without its end.
    Text(Vec<u8>),
    /// It was longer than the limit, and is skipped.
    TooLong,
}

/// Reads lines and counts them. It never holds more than the longest line.
pub(super) struct Lines<R> {
    from: R,
    /// How many lines were read.
    pub(super) number: u64,
    /// How many bytes those were.
    pub(super) bytes: u64,
    max: usize,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, number: 0, bytes: 0, max: LINE_BYTES_MAX }
    }

    /// The next line; nothing at the end.
    pub(super) async fn next(&mut self) -> std::io::Result<Option<Line>> {
        let (mut line, mut too_long, mut any) = (Vec::new(), false, false);
        loop {
            let piece = self.from.fill_buf().await?;
            if piece.is_empty() {
                if !any {
                    return Ok(None);
                }
                break;
            }
            any = true;
            let end = piece.iter().position(|byte| *byte == b'\n');
            let text = &piece[..end.unwrap_or(piece.len())];
            too_long |= line.len() + text.len() > self.max;
            if too_long {
                line = Vec::new();
            } else {
                line.extend_from_slice(text);
            }
            let used = end.map_or(piece.len(), |end| end + 1);
            self.bytes += used as u64;
            self.from.consume(used);
            if end.is_some() {
                break;
            }
        }
        self.number += 1;
        Ok(Some(if too_long { Line::TooLong } else { Line::Text(line) }))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    #[tokio::test]
    async fn lines_are_counted_and_long_ones_skipped_whatever_the_pieces_are() {
        let text = b"one\n\nthree is too long\nfour\r\nfive" as &[u8];
        for capacity in [1, 2, 7, 64] {
            let mut lines = Lines { max: 6, ..Lines::new(BufReader::with_capacity(capacity, text)) };
            let mut seen = Vec::new();
            while let Some(line) = lines.next().await.unwrap() {
                seen.push((lines.number, line));
            }
            let text = |text: &str| Line::Text(text.as_bytes().to_vec());
            let all = [text("one"), text(""), Line::TooLong, text("four\r"), text("five")];
            assert_eq!(seen, (1..).zip(all).collect::<Vec<_>>(), "{capacity}");
            assert_eq!(lines.bytes, 33);
        }
    }
}
