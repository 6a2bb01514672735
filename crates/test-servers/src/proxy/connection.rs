//! One client and its server.

use std::io::{self, BufReader, BufWriter, Write};
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::Fault;
use super::ledger::{Ledger, Reply};
use super::rule::Occasion;
use super::switchboard::{Switchboard, Taken};

/// How long the server may take to accept a connection.
const CONNECT_MAX: Duration = Duration::from_secs(10);

pub(super) fn connect(switchboard: &Switchboard) -> io::Result<TcpStream> {
    let server = TcpStream::connect_timeout(&switchboard.server(), CONNECT_MAX)?;
    server.set_nodelay(true)?;
    Ok(server)
}

/// Leads a client to the server, which gets the opening first, until one side ends or a rule ends both.
pub(super) fn session<L: Ledger>(
    opening: &[u8],
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
    (&server).write_all(opening)?;
    let id = switchboard.connected(client, &server)?;
    let session = Session { id, client, server: &server, ledger: Mutex::new(L::new(taken)), switchboard };
    thread::scope(|threads| {
        threads.spawn(|| session.to_client());
        session.to_server(reader)
    })
}

struct Session<'a, L> {
    id: u64,
    client: &'a TcpStream,
    server: &'a TcpStream,
    ledger: Mutex<L>,
    switchboard: &'a Switchboard,
}

impl<L: Ledger> Session<'_, L> {
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
        while let Some(message) = L::read(reader)? {
            let cut = self.ledger().sent(&message, self.switchboard);
            if let Some(taken) = cut {
                server.flush()?;
                self.switchboard.fired(taken);
                return Ok(());
            }
            L::write(&message, &mut server)?;
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
        while let Some(message) = L::read(&mut reader)? {
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
                pass_on::<L>(&mut kept, &mut client)?;
            }
            if reader.buffer().is_empty() {
                client.flush()?;
            }
        }
        // The server ended in the middle of an answer: that is not the fault of a rule, and the client may know why.
        pass_on::<L>(&mut kept, &mut client)?;
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

    fn ledger(&self) -> MutexGuard<'_, L> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pass_on<L: Ledger>(kept: &mut Vec<L::Message>, client: &mut impl Write) -> io::Result<()> {
    kept.drain(..).try_for_each(|message| L::write(&message, client))
}
