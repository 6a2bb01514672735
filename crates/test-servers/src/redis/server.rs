//! A Redis of a test's own.

use std::fs;
use std::io::{self, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use super::RedisSettings;
use super::resp::Frame;
use super::settings::Ports;
use crate::account::Account;
use crate::folder::{Folder, Tenant};
use crate::run::Run;
use crate::{Failure, port};

/// What the log says when clients are served, all data read.
const READY: &str = "Ready to accept connections";
/// What a replica says when it has what its master has.
const IN_SYNC: &str = "MASTER <-> REPLICA sync: Finished with success";
/// What the log says when somebody else was faster.
const TAKEN: &str = "Address already in use";
/// How often that may happen.
const PORTS_MAX: usize = 10;
/// The name of the settings' file.
const SETTINGS: &str = "redis.conf";
/// How long a server may take to accept a connection, and to answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// A server with temporary data, on a port of the loopback.
///
/// It ends when this is dropped, or with our process, and takes its data with it. In between it can be killed and come
/// back on the same port with the data it had, and be frozen and go on.
#[derive(Debug)]
pub struct Redis {
    program: PathBuf,
    account: Account,
    settings: RedisSettings,
    /// Whether it is part of a cluster.
    is_node: bool,
    ports: Ports,
    run: Option<Run>,
    frozen: bool,
    folder: Folder,
}

impl Redis {
    /// Starts a server with empty data and waits until it serves clients.
    pub fn start(settings: RedisSettings) -> Result<Self, Failure> {
        Self::start_as(settings, false)
    }

    /// The same as a node of a cluster, which it has still to meet.
    pub(super) fn start_node(settings: RedisSettings) -> Result<Self, Failure> {
        Self::start_as(settings, true)
    }

    fn start_as(settings: RedisSettings, is_node: bool) -> Result<Self, Failure> {
        let (program, account) = (super::find()?, Account::find("redis")?);
        let folder = Folder::new(Tenant::Redis, account)?;
        let ports = Ports::default();
        let mut server =
            Self { program, account, settings, is_node, ports, run: None, frozen: false, folder };
        server.lay_out().map_err(Failure::refused("the folder of a Redis"))?;
        server.start_on_free_ports()?;
        Ok(server)
    }

    /// A server with the same settings that follows this one, once it has all that this one has. `REPLICAOF NO ONE` makes a
    /// master of it.
    pub fn replica(&self) -> Result<Self, Failure> {
        let master = format!("127.0.0.1 {}", self.port());
        let replica = Self::start(self.settings.clone().set("replicaof", &master))?;
        replica.run.as_ref().ok_or(Failure::Stopped)?.wait_for(IN_SYNC, 0)?;
        Ok(replica)
    }

    /// Where it is: `redis://127.0.0.1:PORT`, with a password where it has one.
    pub fn url(&self) -> String {
        format!("redis://{}", self.place(self.port()))
    }

    /// Where it is for clients that speak TLS: `rediss://127.0.0.1:PORT`.
    pub fn tls_url(&self) -> Option<String> {
        Some(format!("rediss://{}", self.place(self.ports.tls?)))
    }

    fn place(&self, port: u16) -> String {
        let password = self.settings.password.as_ref().map(|password| format!(":{password}@"));
        format!("{}127.0.0.1:{port}", password.unwrap_or_default())
    }

    /// The port, which stays the same over restarts.
    pub fn port(&self) -> u16 {
        self.ports.client
    }

    /// Where the other nodes of a cluster call.
    pub(super) fn bus_port(&self) -> Option<u16> {
        self.ports.bus
    }

    /// The password of clients, where they need one.
    pub(super) fn password(&self) -> Option<&str> {
        self.settings.password.as_deref()
    }

    /// The folder with the data, the settings and nothing else.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The last lines of its log.
    pub fn log(&self) -> String {
        self.run.as_ref().map(|run| run.log().tail()).unwrap_or_default()
    }

    /// Whether nobody has ended it or lets it stand still.
    pub fn is_running(&self) -> bool {
        self.run.is_some() && !self.frozen
    }

    /// Runs one command on a connection of its own, and answers what it was told: each value on a line, and nothing for
    /// one that is not there.
    pub fn command(&self, words: &[&str]) -> Result<String, Failure> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        Ok(self.ask(&words)?.text("\n"))
    }

    /// The same for words that are no text.
    pub(super) fn ask(&self, words: &[&[u8]]) -> Result<Frame, Failure> {
        if !self.is_running() {
            return Err(Failure::Stopped);
        }
        let mut requests = Vec::new();
        requests.extend(self.password().map(|password| Frame::request(&[b"AUTH", password.as_bytes()])));
        requests.push(Frame::request(words));
        let reply = exchange(self.port(), &requests).map_err(Failure::refused(shown(words)))?;
        answered(words, reply)
    }

    /// Ends it as `kill -9` does, with whoever writes its files for it, and waits until the last of them is gone.
    pub fn kill(&mut self) -> Result<(), Failure> {
        let Some(mut run) = self.run.take() else {
            return Err(Failure::Stopped);
        };
        kill(&mut run)?;
        self.folder.watch(None)
    }

    /// Shuts it down, and waits until it is gone. Clients are cut off.
    pub fn stop(&mut self) -> Result<(), Failure> {
        let Some(mut run) = self.run.take() else {
            return Ok(());
        };
        stop(&mut run)?;
        self.folder.watch(None)
    }

    /// Starts it again with the data it had, on the same port, and waits until it serves clients. One that runs is
    /// shut down first.
    pub fn restart(&mut self) -> Result<(), Failure> {
        self.stop()?;
        self.launch()
    }

    /// Lets it stand still: it keeps its connections and answers nothing.
    pub fn freeze(&mut self) -> Result<(), Failure> {
        self.run.as_ref().ok_or(Failure::Stopped)?.signal(Signal::STOP)?;
        self.frozen = true;
        Ok(())
    }

    /// Lets it go on, as if nothing had happened.
    pub fn thaw(&mut self) -> Result<(), Failure> {
        self.run.as_ref().ok_or(Failure::Stopped)?.signal(Signal::CONT)?;
        self.frozen = false;
        Ok(())
    }

    fn lay_out(&self) -> io::Result<()> {
        let data = self.settings.data_of(self.folder.path());
        fs::create_dir(&data)?;
        self.account.own(&data)?;
        for (_, file, text) in self.settings.tls.iter().flat_map(super::settings::Tls::files) {
            fs::write(self.folder.path().join(file), text)?;
        }
        self.account.own(self.folder.path())
    }

    fn start_on_free_ports(&mut self) -> Result<(), Failure> {
        let mut tries = 0;
        loop {
            tries += 1;
            self.choose_ports().map_err(Failure::refused("a free port"))?;
            match self.launch() {
                Err(Failure::Silent { log, .. }) if log.contains(TAKEN) && tries < PORTS_MAX => {}
                launched => return launched,
            }
        }
    }

    fn choose_ports(&mut self) -> io::Result<()> {
        let free_if = |wanted: bool| wanted.then(port::free).transpose();
        let (bus, tls) = (free_if(self.is_node)?, free_if(self.settings.tls.is_some())?);
        self.ports = Ports { client: port::free()?, bus, tls };
        Ok(())
    }

    fn launch(&mut self) -> Result<(), Failure> {
        let path = self.folder.path().join(SETTINGS);
        fs::write(&path, self.settings.file(self.ports, self.folder.path()))
            .and_then(|()| self.account.own(&path))
            .map_err(Failure::refused(SETTINGS))?;
        let mut command = self.account.command(&self.program, self.folder.path());
        command.arg(&path);
        let run = self.run.insert(Run::start(command)?);
        self.frozen = false;
        self.folder.watch(Some(run.number()))?;
        let ready = run.wait_for(READY, 0);
        if ready.is_err() {
            // The first failure says more than a second.
            drop(self.stop());
        }
        ready
    }
}

impl Drop for Redis {
    /// What cannot be ended here is left to the watchdog of the folder, who has nobody to tell, either.
    fn drop(&mut self) {
        drop(self.kill());
    }
}

/// Runs one command at whoever listens on that port, without a password.
pub(super) fn command(port: u16, words: &[&str]) -> Result<String, Failure> {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let reply = exchange(port, &[Frame::request(&words)]).map_err(Failure::refused(shown(&words)))?;
    Ok(answered(&words, reply)?.text("\n"))
}

fn answered(words: &[&[u8]], reply: Frame) -> Result<Frame, Failure> {
    match reply.kind() {
        b'-' => Err(Failure::Answered { command: shown(words), error: reply.text("") }),
        _ => Ok(reply),
    }
}

/// Sends requests one by one and answers the last reply, or the first that is an error.
fn exchange(port: u16, requests: &[Frame]) -> io::Result<Frame> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = TcpStream::connect_timeout(&address, ANSWER_MAX)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    let mut reader = BufReader::new(&stream);
    let mut last = Frame::default();
    for request in requests {
        request.write(&mut &stream)?;
        last = Frame::read(&mut reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if last.kind() == b'-' {
            break;
        }
    }
    Ok(last)
}

pub(super) fn kill(run: &mut Run) -> Result<(), Failure> {
    run.signal_group(Signal::KILL)?;
    run.ended("the end after SIGKILL")
}

/// One that stands still would not hear it.
fn stop(run: &mut Run) -> Result<(), Failure> {
    run.signal(Signal::TERM)?;
    run.signal(Signal::CONT)?;
    if run.ends() { run.ended("the end") } else { kill(run) }
}

/// The first words of a command: which one it is, and of what.
fn shown(words: &[&[u8]]) -> String {
    let words: Vec<_> = words.iter().take(3).map(|word| String::from_utf8_lossy(word)).collect();
    words.join(" ")
}
