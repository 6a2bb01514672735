//! The README's first command, run as it stands there: the product must start from it on a new machine.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;

use crate::command::{Failure, cargo};
use crate::server::Server;

/// The command as the README has it.
pub(crate) const RUN_COMMAND: &str = "cargo run --bin redrive -- serve";

/// Starts the product by the README's command, and asks whether it is ready.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let arguments: Vec<&str> = RUN_COMMAND.split(' ').skip(1).collect();
    let server = Server::start(cargo(root, &arguments), root.join("target").join("readme-data"))?;
    let wrong = |cause| Failure::NotStarted { command: RUN_COMMAND.to_owned(), cause };
    match answer(server.address()) {
        Ok(text) if text.starts_with("HTTP/1.1 200") => Ok(()),
        Ok(text) => Err(wrong(io::Error::other(format!("it is not ready: {text}")))),
        Err(cause) => Err(wrong(cause)),
    }
}

fn answer(address: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}
