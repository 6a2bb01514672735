//! What a command writes to its standard error: passed on with the id of its message, and the last of it kept.

use std::io::Write;

use tokio::io::{AsyncRead, AsyncReadExt};

/// How much is kept: as much as an error text may have.
const KEPT_BYTES: usize = redrive_client::ERROR_BYTES_MAX;
/// A line that is longer is passed on in pieces.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// The last of what was written.
#[derive(Debug, Default)]
pub(super) struct Tail(Vec<u8>);

impl Tail {
    fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        let over = self.0.len().saturating_sub(KEPT_BYTES);
        self.0.drain(..over);
    }

    /// As text, without what was cut in the middle.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).trim_start_matches('\u{FFFD}').trim().to_owned()
    }
}

/// Passes everything on until the end.
pub(super) async fn pass_on(from: impl AsyncRead + Unpin, id: &str, tail: &std::sync::Mutex<Tail>) {
    let mut from = from;
    let mut line = Vec::new();
    let mut chunk = vec![0; 4 * 1024];
    loop {
        let read = from.read(&mut chunk).await.unwrap_or(0);
        let Some(bytes) = chunk.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
        tail.lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(bytes);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(piece);
            if line.ends_with(b"\n") || line.len() >= LINE_BYTES_MAX {
                write(id, &mut line);
            }
        }
    }
    if !line.is_empty() {
        write(id, &mut line);
    }
}

/// One line in one piece, so that those of commands that run together do not mix.
fn write(id: &str, line: &mut Vec<u8>) {
    if !line.ends_with(b"\n") {
        line.push(b'\n');
    }
    let mut whole = format!("{id}: ").into_bytes();
    whole.append(line);
    // Nobody may be reading; that is no reason to end.
    drop(std::io::stderr().lock().write_all(&whole));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_of_it_is_kept() {
        let tail = std::sync::Mutex::new(Tail::default());
        let text = format!("{}\nthe end\n", "ä".repeat(KEPT_BYTES));
        pass_on(text.as_bytes(), "id", &tail).await;
        let kept = tail.lock().unwrap().text();
        assert!(kept.len() <= KEPT_BYTES && kept.ends_with("ä\nthe end"), "{kept}");
        assert!(kept.starts_with('ä'), "nothing that was cut in the middle");
    }
}
