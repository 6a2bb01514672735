//! An endpoint that webhooks are sent to, and that answers what the test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{self, Receiver as Line, SyncSender};
use std::thread;
use std::time::Duration;

/// A request as it came.
#[derive(Debug)]
pub(crate) struct Request {
    /// Its first line and its headers, in small letters.
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A running endpoint.
pub(crate) struct Receiver {
    pub(crate) url: String,
    status: Arc<AtomicU16>,
    came: Line<Request>,
}

impl Receiver {
    /// One that answers 200.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hooks", listener.local_addr().unwrap());
        let (tell, came) = mpsc::sync_channel(1_000);
        let status = Arc::new(AtomicU16::new(200));
        let answers = Arc::clone(&status);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(stream, &answers, &tell);
            }
        });
        Self { url, status, came }
    }

    /// What is answered from now on.
    pub(crate) fn answer(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    /// The next request.
    pub(crate) fn next(&self) -> Request {
        self.came.recv_timeout(Duration::from_mins(1)).expect("a webhook is sent")
    }
}

/// Reads one request and answers it. Whoever goes away in the midst of it is not missed.
fn serve(stream: TcpStream, status: &AtomicU16, tell: &SyncSender<Request>) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if line.trim().is_empty() {
            break;
        }
        let line = line.to_ascii_lowercase();
        if let Some(text) = line.strip_prefix("content-length:") {
            length = text.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let answer = format!(
        "HTTP/1.1 {} said\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno",
        status.load(Ordering::SeqCst)
    );
    let told = tell.send(Request { head, body: String::from_utf8(body).unwrap() });
    if told.is_ok() {
        drop(reader.into_inner().write_all(answer.as_bytes()));
    }
}
