//! An HTTP client that costs next to nothing: one connection, one request that is always the same.

use anyhow::{Context as _, anyhow, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The end of a head.
const HEAD_END: &[u8] = b"\r\n\r\n";
/// Answers are small.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// A connection, and what it says.
#[derive(Debug)]
pub(crate) struct Poster {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Poster {
    /// Connects; each request is a POST of `json` to `path`, under `token` if there is one.
    pub(crate) async fn connect(
        address: &str,
        path: &str,
        json: &str,
        token: Option<&str>,
    ) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("connecting to {address}"))?;
        stream.set_nodelay(true)?;
        let length = json.len();
        let key = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n{key}content-length: {length}\r\n\r\n"
        );
        let request = [head.as_bytes(), json.as_bytes()].concat();
        Ok(Self { stream, request, answer: Vec::new() })
    }

    /// Sends the request, and does not wait for the answer.
    pub(crate) async fn send(&mut self) -> anyhow::Result<()> {
        Ok(self.stream.write_all(&self.request).await?)
    }

    /// Sends the request, and waits for the answer, which must say that it worked.
    pub(crate) async fn post(&mut self) -> anyhow::Result<()> {
        self.send().await?;
        self.answer.clear();
        loop {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                bail!("the server hung up");
            }
            if is_whole(&self.answer)? {
                break;
            }
            if self.answer.len() > ANSWER_BYTES_MAX {
                bail!("the answer does not end");
            }
        }
        if self.answer.starts_with(b"HTTP/1.1 20") {
            return Ok(());
        }
        bail!("the server refused: {}", String::from_utf8_lossy(&self.answer))
    }
}

impl Poster {
    /// The body of the last answer.
    pub(crate) fn body(&self) -> &[u8] {
        let end = self.answer.windows(HEAD_END.len()).position(|bytes| bytes == HEAD_END);
        end.map_or(&[], |end| &self.answer[end + HEAD_END.len()..])
    }
}

/// Whether an answer with a length is here with all of its body.
fn is_whole(answer: &[u8]) -> anyhow::Result<bool> {
    let Some(end) = answer.windows(HEAD_END.len()).position(|bytes| bytes == HEAD_END) else {
        return Ok(false);
    };
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize =
        length.and_then(|text| text.trim().parse().ok()).ok_or_else(|| anyhow!("no length: {head}"))?;
    Ok(answer.len() >= end + HEAD_END.len() + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_with_the_last_byte_of_its_body() {
        let answer = b"HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\n{\"\"}";
        assert!(is_whole(answer).unwrap());
        assert!((0..answer.len()).all(|end| !is_whole(&answer[..end]).unwrap_or(false)));
        assert!(is_whole(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
