//! Server-sent events, as the HTML standard has them: lines, fields, and a blank line after each event.

/// The longest line and the longest event: a server that sends more is not ours.
const BYTES_MAX: usize = 1024 * 1024;

/// The longest id that is remembered. Every event that follows has a copy of it.
const ID_BYTES_MAX: usize = 64;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SseEvent {
    /// The last id that was seen, with this event or before.
    pub(crate) id: String,
    /// Its name; `message` where it has none.
    pub(crate) name: String,
    pub(crate) data: String,
}

/// What was sent is too long to be an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Reads events from pieces of bytes, wherever those are cut.
#[derive(Debug, Default)]
pub(crate) struct SseReader {
    line: Vec<u8>,
    /// Whether the last byte was a carriage return, after which a line feed ends nothing.
    returned: bool,
    begun: bool,
    name: String,
    data: String,
    id: String,
    /// How long the server wants its readers to stay away when they were cut off.
    pub(crate) retry_ms: Option<u64>,
}

impl SseReader {
    /// Takes a piece, and gives the events that are whole now.
    pub(crate) fn take(&mut self, piece: &[u8]) -> Result<Vec<SseEvent>, TooLong> {
        let mut events = Vec::new();
        for byte in piece {
            let ends_nothing = *byte == b'\n' && self.returned;
            self.returned = *byte == b'\r';
            match byte {
                _ if ends_nothing => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ if self.line.len() + self.data.len() >= BYTES_MAX => return Err(TooLong),
                byte => self.line.push(*byte),
            }
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        // A byte order mark may stand before everything.
        let text = if self.begun { &*text } else { text.strip_prefix('\u{feff}').unwrap_or(&text) };
        self.begun = true;
        if text.is_empty() {
            return self.end_event();
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            "id" if !value.contains('\0') && value.len() <= ID_BYTES_MAX => value.clone_into(&mut self.id),
            "retry" if value.bytes().all(|b| b.is_ascii_digit()) => {
                self.retry_ms = value.parse().ok().or(self.retry_ms);
            }
            // A comment, or a field of the future.
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<SseEvent> {
        let (name, mut data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
        // What has no data is no event.
        data.pop()?;
        let name = if name.is_empty() { "message".to_owned() } else { name };
        Some(SseEvent { id: self.id.clone(), name, data })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event(id: &str, name: &str, data: &str) -> SseEvent {
        SseEvent { id: id.to_owned(), name: name.to_owned(), data: data.to_owned() }
    }

    const TEXT: &str = "\u{feff}retry: 2000\n: redrive\n\nid: 7\nevent: ack\ndata: {\"a\":1}\n\ndata:one\r\ndata:  two\r\n\r\nevent: none\n\nid\ndata\r\rdata: unfinished\n";

    fn expected() -> Vec<SseEvent> {
        vec![event("7", "ack", "{\"a\":1}"), event("7", "message", "one\n two"), event("", "message", "")]
    }

    #[test]
    fn events_are_read_as_the_standard_says() {
        let mut reader = SseReader::default();
        assert_eq!(reader.take(TEXT.as_bytes()).unwrap(), expected());
        assert_eq!(reader.retry_ms, Some(2_000));
        assert!(reader.take(b"retry: soon\nretry: 99999999999999999999\n").unwrap().is_empty());
        assert_eq!(reader.retry_ms, Some(2_000), "what is no number changes nothing");
    }

    #[test]
    fn a_line_without_end_is_refused_and_not_kept() {
        let mut reader = SseReader::default();
        let piece = vec![b'x'; 64 * 1024];
        let taken = (0..100).take_while(|_| reader.take(&piece).is_ok()).count();
        assert_eq!(taken, 16);
        let mut reader = SseReader::default();
        let line = b"data: xxxxxxxxxxxxxxxxxxxxxxxxxxxx\n".repeat(1_024);
        assert!((0..100).any(|_| reader.take(&line).is_err()), "nor many lines of one event");
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_pieces_are_cut(cuts in proptest::collection::vec(0..TEXT.len(), 0..8)) {
            let mut cuts = cuts;
            cuts.extend([0, TEXT.len()]);
            cuts.sort_unstable();
            let mut reader = SseReader::default();
            let pieces = cuts.windows(2).map(|cut| &TEXT.as_bytes()[cut[0]..cut[1]]);
            let events: Vec<SseEvent> = pieces.flat_map(|piece| reader.take(piece).unwrap()).collect();
            prop_assert_eq!(events, expected());
        }
    }
}
