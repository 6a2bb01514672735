//! The frames of Redis's protocol, in both of its versions.

use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::ops::Range;

/// What Redis itself allows of a value.
const LENGTH_MAX: u64 = 512 * 1024 * 1024;
/// A line is an error or a number; what may be longer has a length in front.
const LINE_MAX: u64 = 64 * 1024;

/// A request or a reply: its bytes, and where in them its words are, in order and whatever they are nested in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    bytes: Vec<u8>,
    words: Vec<Range<usize>>,
}

impl Frame {
    /// A request of these words.
    pub(crate) fn request(words: &[&[u8]]) -> Self {
        let mut frame = Self { bytes: format!("*{}\r\n", words.len()).into_bytes(), words: Vec::new() };
        for word in words {
            frame.bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            frame.words.push(frame.bytes.len()..frame.bytes.len() + word.len());
            frame.bytes.extend_from_slice(word);
            frame.bytes.extend_from_slice(b"\r\n");
        }
        frame
    }

    /// The next frame, or nothing where they end.
    pub(crate) fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        if from.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let mut frame = Self::default();
        // How many values are still to come.
        let mut awaited = 1_u64;
        while awaited > 0 {
            awaited = (awaited - 1).saturating_add(frame.read_value(from)?);
        }
        Ok(Some(frame))
    }

    pub(crate) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.bytes)
    }

    /// The letter in front, which says what it is.
    pub(crate) fn kind(&self) -> u8 {
        self.bytes.first().copied().unwrap_or_default()
    }

    /// What is not there is an empty word.
    pub(crate) fn words(&self) -> impl Iterator<Item = &[u8]> {
        self.words.iter().map(|range| &self.bytes[range.clone()])
    }

    pub(crate) fn text(&self, between: &str) -> String {
        let words: Vec<_> = self.words().map(String::from_utf8_lossy).collect();
        words.join(between)
    }

    /// Reads one value and answers how many more are part of it.
    fn read_value(&mut self, from: &mut impl BufRead) -> io::Result<u64> {
        let line = self.read_line(from)?;
        let (&kind, text) = self.bytes[line.clone()].split_first().ok_or(ErrorKind::InvalidData)?;
        match kind {
            b'+' | b'-' | b':' | b',' | b'(' | b'#' | b'_' => {
                self.words.push(line.start + 1..line.end);
                Ok(0)
            }
            b'$' | b'!' | b'=' => {
                let length = length(text)?;
                self.read_word(length, from)?;
                Ok(0)
            }
            b'*' | b'~' | b'>' => Ok(length(text)?.unwrap_or(0)),
            b'%' => Ok(length(text)?.unwrap_or(0).saturating_mul(2)),
            // Attributes come before the value that they are about.
            b'|' => Ok(length(text)?.unwrap_or(0).saturating_mul(2).saturating_add(1)),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }

    /// Where a line is, without its end.
    fn read_line(&mut self, from: &mut impl BufRead) -> io::Result<Range<usize>> {
        let start = self.bytes.len();
        from.take(LINE_MAX).read_until(b'\n', &mut self.bytes)?;
        let line = self.bytes[start..].strip_suffix(b"\r\n").ok_or(ErrorKind::UnexpectedEof)?;
        Ok(start..start + line.len())
    }

    /// Reads a word of this length, and the end of the line behind it.
    fn read_word(&mut self, length: Option<u64>, from: &mut impl BufRead) -> io::Result<()> {
        let start = self.bytes.len();
        let Some(length) = length else {
            self.words.push(start..start);
            return Ok(());
        };
        let read = from.take(length + 2).read_to_end(&mut self.bytes)?;
        if u64::try_from(read).is_ok_and(|read| read == length + 2) && self.bytes.ends_with(b"\r\n") {
            self.words.push(start..self.bytes.len() - 2);
            Ok(())
        } else {
            Err(ErrorKind::UnexpectedEof.into())
        }
    }
}

/// A length, or `-1` for what is not there.
fn length(text: &[u8]) -> io::Result<Option<u64>> {
    if text == b"-1" {
        return Ok(None);
    }
    let length = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    Ok(Some(length.filter(|&length| length <= LENGTH_MAX).ok_or(ErrorKind::InvalidData)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut bytes: &[u8]) -> io::Result<Option<Frame>> {
        Frame::read(&mut bytes)
    }

    #[test]
    fn what_is_written_is_read_again() {
        let big = vec![b'\n'; 100_000];
        let frames = [
            Frame::request(&[b"SET", b"a\r\nb", &big]),
            Frame::request(&[b"GET", b""]),
            Frame::request(&[b"PING"]),
        ];
        let mut bytes = Vec::new();
        for frame in &frames {
            frame.write(&mut bytes).unwrap();
        }
        let mut rest = bytes.as_slice();
        for frame in frames {
            assert_eq!(Frame::read(&mut rest).unwrap(), Some(frame));
        }
        assert_eq!(Frame::read(&mut rest).unwrap(), None);
    }

    #[test]
    fn words_are_found_in_whatever_they_are_nested() {
        for (bytes, words) in [
            (&b"+OK\r\n"[..], "OK"),
            (b"-ERR no such key\r\n", "ERR no such key"),
            (b"$-1\r\n", ""),
            (b"*-1\r\n", ""),
            (b"*0\r\n", ""),
            (b"*3\r\n:1\r\n*2\r\n$1\r\na\r\n$-1\r\n+b\r\n", "1,a,,b"),
            (b"%1\r\n+a\r\n~1\r\n:2\r\n", "a,2"),
            (b"|1\r\n+ttl\r\n:9\r\n$1\r\nv\r\n", "ttl,9,v"),
            (b">2\r\n+message\r\n#t\r\n", "message,t"),
        ] {
            let mut both = bytes.to_vec();
            both.extend_from_slice(b"+next\r\n");
            let mut rest = both.as_slice();
            let frame = Frame::read(&mut rest).unwrap().unwrap();
            assert_eq!((frame.text(",").as_str(), rest), (words, &b"+next\r\n"[..]));
            assert_eq!(frame.kind(), bytes[0]);
        }
    }

    #[test]
    fn what_is_cut_off_or_has_no_length_is_an_error() {
        for bytes in [
            &b"+OK"[..],
            b"$3\r\nab",
            b"$3\r\nabcde",
            b"*2\r\n+a\r\n",
            b"$x\r\n",
            b"*-2\r\n",
            b"?\r\n",
            b"\r\n",
        ] {
            assert!(read(bytes).is_err(), "{bytes:?}");
        }
        assert!(read(b"$536870913\r\n").is_err());
        let line = vec![b'+'; 70_000];
        assert!(read(&line).is_err());
    }
}
