//! The README's first command, run as it stands there: the product must start from it on a new machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::command::{Failure, cargo};

/// The command as the README has it.
pub(crate) const RUN_COMMAND: &str = "cargo run --bin redrive -- serve";
/// What the program prints when it is ready, before its address.
const READY: &str = "redrive is ready on http://";

/// Starts the product by the README's command, on a free port and a directory that goes again, and asks whether it is
/// ready.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let data = root.join("target").join("readme-data");
    // There is none, or it is what a run that was cut off left.
    drop(std::fs::remove_dir_all(&data));
    let arguments: Vec<&str> = RUN_COMMAND.split(' ').skip(1).collect();
    let mut command = cargo(root, &arguments);
    command.env("REDRIVE_LISTEN", "127.0.0.1:0").env("REDRIVE_DATA", &data).stdout(Stdio::piped());
    eprintln!("$ {RUN_COMMAND}");
    let not_started = |cause| Failure::NotStarted { command: RUN_COMMAND.to_owned(), cause };
    let mut child = command.spawn().map_err(not_started)?;
    let answer = answer(&mut child);
    stop(&mut child);
    drop(std::fs::remove_dir_all(&data));
    match answer {
        Ok(text) if text.starts_with("HTTP/1.1 200") => Ok(()),
        Ok(text) => Err(not_started(std::io::Error::other(format!("it is not ready: {text}")))),
        Err(cause) => Err(not_started(cause)),
    }
}

fn answer(child: &mut Child) -> std::io::Result<String> {
    let stdout = child.stdout.take().ok_or_else(|| std::io::Error::other("it has no output"))?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let address = line.trim().strip_prefix(READY).ok_or_else(|| std::io::Error::other("it did not start"))?;
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: redrive\r\nconnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// Ends what was started. Cargo runs the program in its own place, so that it is the program that gets the signal.
fn stop(child: &mut Child) {
    drop(child.kill());
    drop(child.wait());
}
