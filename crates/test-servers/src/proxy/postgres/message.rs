//! The frames of the protocol.

use std::io::{self, ErrorKind, Read, Write};

/// What PostgreSQL itself allows.
const LENGTH_MAX: u64 = 0x3fff_ffff;
/// A request to encrypt, by TLS or by GSSAPI.
const ENCRYPT: [u32; 2] = [80_877_103, 80_877_104];
/// A request to cancel what another connection does.
const CANCEL: u32 = 80_877_102;

/// A message: what kind it is, and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: u8,
    pub(super) body: Vec<u8>,
}

/// What a client begins with; it has no kind.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opening {
    Encrypt,
    Cancel(Vec<u8>),
    Session(Vec<u8>),
}

/// The next message, or nothing where they end.
pub(super) fn read(from: &mut impl Read) -> io::Result<Option<Message>> {
    let mut kind = [0];
    match from.read_exact(&mut kind) {
        Err(cause) if cause.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        outcome => outcome?,
    }
    Ok(Some(Message { kind: kind[0], body: read_body(from)? }))
}

pub(super) fn write(message: &Message, to: &mut impl Write) -> io::Result<()> {
    to.write_all(&[message.kind])?;
    write_body(&message.body, to)
}

pub(super) fn read_opening(from: &mut impl Read) -> io::Result<Opening> {
    let body = read_body(from)?;
    let code = body.first_chunk().map(|code| u32::from_be_bytes(*code));
    Ok(match code {
        Some(code) if ENCRYPT.contains(&code) => Opening::Encrypt,
        Some(CANCEL) => Opening::Cancel(body),
        _ => Opening::Session(body),
    })
}

/// The length that is in front counts itself.
pub(super) fn write_body(body: &[u8], to: &mut impl Write) -> io::Result<()> {
    let length = u32::try_from(body.len() + 4).map_err(|_| ErrorKind::InvalidData)?;
    to.write_all(&length.to_be_bytes())?;
    to.write_all(body)
}

fn read_body(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u64::from(u32::from_be_bytes(length));
    let length =
        length.checked_sub(4).filter(|&length| length <= LENGTH_MAX).ok_or(ErrorKind::InvalidData)?;
    let mut body = Vec::new();
    let read = from.take(length).read_to_end(&mut body)?;
    if u64::try_from(read).is_ok_and(|read| read == length) {
        Ok(body)
    } else {
        Err(ErrorKind::UnexpectedEof.into())
    }
}

impl Message {
    /// Two texts at the beginning, each with a zero behind it: a name and a statement, or two names.
    pub(super) fn two_texts(&self) -> Option<(String, String)> {
        let mut parts = self.body.split(|&byte| byte == 0);
        let (first, second) = (parts.next()?, parts.next()?);
        // There is something behind the second zero, if only the end.
        parts.next()?;
        Some((text(first), text(second)))
    }

    /// A text at the beginning, with a zero behind it.
    pub(super) fn one_text(&self) -> Option<String> {
        let end = self.body.iter().position(|&byte| byte == 0)?;
        Some(text(&self.body[..end]))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let messages = [
            Message { kind: b'Q', body: b"SELECT 1\0".to_vec() },
            Message { kind: b'S', body: Vec::new() },
            Message { kind: b'd', body: vec![7; 100_000] },
        ];
        let mut bytes = Vec::new();
        for message in &messages {
            write(message, &mut bytes).unwrap();
        }
        let mut rest = bytes.as_slice();
        for message in messages {
            assert_eq!(read(&mut rest).unwrap(), Some(message));
        }
        assert_eq!(read(&mut rest).unwrap(), None);
    }

    #[test]
    fn a_message_that_is_cut_off_or_has_no_length_is_an_error() {
        for bytes in [&b"Q\0\0"[..], b"Q\0\0\0\x09SEL", b"Q\0\0\0\x03", b"Q\xff\xff\xff\xff"] {
            assert!(read(&mut &bytes[..]).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn openings_are_told_apart() {
        let opening = |code: u32| {
            let mut bytes = Vec::new();
            write_body(&code.to_be_bytes(), &mut bytes).unwrap();
            read_opening(&mut bytes.as_slice()).unwrap()
        };
        assert_eq!(opening(80_877_103), Opening::Encrypt);
        assert_eq!(opening(80_877_104), Opening::Encrypt);
        assert!(matches!(opening(80_877_102), Opening::Cancel(_)));
        assert!(matches!(opening(196_608), Opening::Session(_)));
    }

    #[test]
    fn texts_end_with_a_zero() {
        let of = |body: &[u8]| Message { kind: b'P', body: body.to_vec() };
        assert_eq!(of(b"s1\0SELECT 1\0\0\0").two_texts(), Some(("s1".to_owned(), "SELECT 1".to_owned())));
        assert_eq!(of(b"\0s1\0").two_texts(), Some((String::new(), "s1".to_owned())));
        assert_eq!(of(b"s1\0SELECT").two_texts(), None);
        assert_eq!(of(b"SELECT 1\0").one_text(), Some("SELECT 1".to_owned()));
        assert_eq!(of(b"SELECT 1").one_text(), None);
    }
}
