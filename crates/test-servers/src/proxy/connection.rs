//! One client and its server.

use std::io::{self, BufReader, BufWriter, Write};
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::Fault;
use super::ledger::{Ledger, Reply};
use super::message::{self, Message, Opening};
use super::rule::Occasion;
use super::switchboard::{Switchboard, Taken};

/// How long the server may take to accept a connection.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Serves a client until one side ends, or a rule ends both.
pub(super) fn serve(client: &TcpStream, switchboard: &Switchboard) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut reader = BufReader::new(client);
    loop {
        match message::read_opening(&mut reader)? {
            // It is for the proxy to say, because it could not read what follows.
            Opening::Encrypt => io::Write::write_all(&mut &*client, b"N")?,
            Opening::Cancel(request) => return message::write_body(&request, &mut connect(switchboard)?),
            Opening::Session(request) => return session(&request, reader, client, switchboard),
        }
    }
}

fn connect(switchboard: &Switchboard) -> io::Result<TcpStream> {
    let server = TcpStream::connect_timeout(&switchboard.server(), CONNECT_MAX)?;
    server.set_nodelay(true)?;
    Ok(server)
}

fn session(
    request: &[u8],
    reader: BufReader<&TcpStream>,
    client: &TcpStream,
    switchboard: &Switchboard,
) -> io::Result<()> {
    let taken = switchboard.ask(Occasion::Connect);
    if let Some(taken) = taken.filter(|taken| taken.fault == Fault::CutBefore) {
        switchboard.fired(taken);
        return Ok(());
    }
    let server = connect(switchboard)?;
    message::write_body(request, &mut &server)?;
    let id = switchboard.connected(client, &server)?;
    let session =
        Session { id, client, server: &server, ledger: Mutex::new(Ledger::new(taken)), switchboard };
    thread::scope(|threads| {
        threads.spawn(|| session.to_client());
        session.to_server(reader)
    })
}

struct Session<'a> {
    id: u64,
    client: &'a TcpStream,
    server: &'a TcpStream,
    ledger: Mutex<Ledger>,
    switchboard: &'a Switchboard,
}

impl Session<'_> {
    /// Whichever side ends first, the other one ends with it.
    fn to_server(&self, mut reader: BufReader<&TcpStream>) -> io::Result<()> {
        let outcome = self.pass_to_server(&mut reader);
        self.switchboard.cut(self.id);
        outcome
    }

    fn to_client(&self) -> io::Result<()> {
        let outcome = self.pass_to_client();
        self.switchboard.cut(self.id);
        outcome
    }

    fn pass_to_server(&self, reader: &mut BufReader<&TcpStream>) -> io::Result<()> {
        let mut server = BufWriter::new(self.server);
        while let Some(message) = message::read(reader)? {
            let cut = self.ledger().sent(&message, self.switchboard);
            if let Some(taken) = cut {
                server.flush()?;
                self.switchboard.fired(taken);
                return Ok(());
            }
            message::write(&message, &mut server)?;
            // What the client sent at once is passed on at once.
            if reader.buffer().is_empty() {
                server.flush()?;
            }
        }
        Ok(())
    }

    fn pass_to_client(&self) -> io::Result<()> {
        let mut reader = BufReader::new(self.server);
        let mut client = BufWriter::new(self.client);
        let mut kept = Vec::new();
        while let Some(message) = message::read(&mut reader)? {
            let reply = self.ledger().received(&message);
            kept.push(message);
            let pass = match reply {
                Reply::Pass | Reply::Release => true,
                Reply::Keep => false,
                Reply::Last(taken) => {
                    client.flush()?;
                    if !self.act(taken) {
                        return Ok(());
                    }
                    true
                }
            };
            if pass {
                pass_on(&mut kept, &mut client)?;
            }
            if reader.buffer().is_empty() {
                client.flush()?;
            }
        }
        // The server ended in the middle of an answer: that is not the fault of a rule, and the client may know why.
        pass_on(&mut kept, &mut client)?;
        client.flush()
    }

    /// The server has answered what a rule has taken. Whether the client gets the answer after all.
    fn act(&self, taken: Taken) -> bool {
        self.switchboard.fired(taken);
        match taken.fault {
            Fault::StallReply => self.switchboard.wait_lifted(taken, self.id),
            Fault::CutReply | Fault::CutBefore => false,
        }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pass_on(kept: &mut Vec<Message>, client: &mut impl Write) -> io::Result<()> {
    kept.drain(..).try_for_each(|message| message::write(&message, client))
}
