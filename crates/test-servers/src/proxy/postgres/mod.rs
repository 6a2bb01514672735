//! What the proxy knows of PostgreSQL: the frames of the messages (`message.rs`), which text a prepared statement has, and
//! which answer belongs to which request (`ledger.rs`).

mod ledger;
mod message;

use std::io::{self, BufReader, Write};
use std::net::TcpStream;

use super::connection;
use super::switchboard::Switchboard;
use ledger::PostgresLedger;
use message::Opening;

/// Serves a client until one side ends, or a rule ends both.
pub(super) fn serve(client: &TcpStream, switchboard: &Switchboard) -> io::Result<()> {
    let mut reader = BufReader::new(client);
    loop {
        match message::read_opening(&mut reader)? {
            // It is for the proxy to say, because it could not read what follows.
            Opening::Encrypt => Write::write_all(&mut &*client, b"N")?,
            Opening::Cancel(request) => {
                return message::write_body(&request, &mut connection::connect(switchboard)?);
            }
            Opening::Session(request) => {
                let mut opening = Vec::new();
                message::write_body(&request, &mut opening)?;
                return connection::session::<PostgresLedger>(&opening, reader, client, switchboard);
            }
        }
    }
}
