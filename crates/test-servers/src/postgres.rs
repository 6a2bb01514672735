//! A PostgreSQL of a test's own.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use crate::account::Account;
use crate::binaries::Binaries;
use crate::folder::{Folder, Tenant};
use crate::processes::{children, signal};
use crate::run::Run;
use crate::settings::quoted;
use crate::template::{DATABASE, SETTINGS, USER};
use crate::{Failure, Settings, port, program, template};

/// What the log says when clients are served, also by a standby.
const READY: &str = "database system is ready to accept";
/// What it says when somebody was faster.
const TAKEN: &str = "Address already in use";
/// How often that may happen.
const PORTS_MAX: usize = 10;
/// How often a new connection may still see the old settings; each of them takes some milliseconds.
const RELOADS_MAX: usize = 1_000;

/// A server with temporary data, on a port of the loopback and on a Unix socket.
///
/// It ends when this is dropped, or with our process, and takes its data with it. In between it can be killed and come
/// back on the same port with the data it had.
#[derive(Debug)]
pub struct Postgres {
    pub(crate) binaries: Binaries,
    pub(crate) account: Account,
    settings: Settings,
    pub(crate) password: String,
    /// What it calls itself to a primary.
    pub(crate) name: String,
    port: u16,
    run: Option<Run>,
    pub(crate) folder: Folder,
}

impl Postgres {
    /// Starts a server with empty data and waits until it serves clients.
    pub fn start(settings: Settings) -> Result<Self, Failure> {
        let (binaries, account) = (Binaries::find()?, Account::find("postgres")?);
        let folder = Folder::new(Tenant::Postgres, account)?;
        let password = template::lay_out(&binaries, account, &folder)?;
        let name = "primary".to_owned();
        let mut server = Self { binaries, account, settings, password, name, port: 0, run: None, folder };
        server.start_on_a_free_port()?;
        Ok(server)
    }

    /// One that is not started yet, over data that came from this one.
    pub(crate) fn copied(&self, name: &str, folder: Folder) -> Self {
        let (binaries, settings) = (self.binaries.clone(), self.settings.clone());
        let (account, password) = (self.account, self.password.clone());
        Self { binaries, account, settings, password, name: name.to_owned(), port: 0, run: None, folder }
    }

    /// Where it is, with a password: `postgres://postgres:…@127.0.0.1:PORT/redrive`.
    pub fn url(&self) -> String {
        self.url_of(&format!("127.0.0.1:{}", self.port))
    }

    /// The same by its Unix socket.
    pub fn socket_url(&self) -> String {
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        self.url_of(&format!("{folder}:{}", self.port))
    }

    /// Where either this one or another one of the same origin is, for clients that look for the one that can be
    /// written.
    pub fn url_with(&self, other: &Self) -> String {
        let hosts = format!("127.0.0.1:{},127.0.0.1:{}", self.port, other.port);
        format!("{}?target_session_attrs=read-write", self.url_of(&hosts))
    }

    fn url_of(&self, hosts: &str) -> String {
        format!("postgres://{USER}:{}@{hosts}/{DATABASE}", self.password)
    }

    /// The port, which stays the same over restarts.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder with the data, the socket and nothing else.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The last lines of its log.
    pub fn log(&self) -> String {
        self.run.as_ref().map(|run| run.log().tail()).unwrap_or_default()
    }

    /// Runs SQL by `psql`, in one transaction where it has several statements, and answers the values it printed.
    pub fn sql(&self, sql: &str) -> Result<String, Failure> {
        let mut psql = self.account.command(&self.binaries.path("psql"), self.folder.path());
        psql.args(["--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--set", "ON_ERROR_STOP=1"]);
        psql.args(["--host", "127.0.0.1", "--username", USER, "--dbname", DATABASE, "--command", sql]);
        psql.arg("--port").arg(self.port.to_string()).env("PGPASSWORD", &self.password);
        Ok(program::run(psql)?.trim_end().to_owned())
    }

    /// Changes a setting that needs no restart, and waits until new connections see it.
    pub fn set(&self, name: &str, value: &str) -> Result<(), Failure> {
        self.sql(&format!("ALTER SYSTEM SET {name} = {}", quoted(value)))?;
        let before = self.sql("SELECT clock_timestamp()")?;
        self.sql("SELECT pg_reload_conf()")?;
        for _ in 0..RELOADS_MAX {
            if self.sql(&format!("SELECT pg_conf_load_time() > '{before}'"))? == "t" {
                return Ok(());
            }
        }
        Err(Failure::Silent { awaited: format!("{name} = {value}"), log: self.log() })
    }

    /// Ends it as `kill -9` does, every process of it at once, and waits until the last one is gone.
    pub fn kill9(&mut self) -> Result<(), Failure> {
        let Some(mut run) = self.run.take() else {
            return Err(Failure::Stopped);
        };
        kill9(&mut run)?;
        self.folder.watch(None)
    }

    /// Shuts it down, and waits until its last process is gone. Clients are cut off, and what they have not committed
    /// is lost.
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

    pub(crate) fn start_on_a_free_port(&mut self) -> Result<(), Failure> {
        for _ in 1..PORTS_MAX {
            self.port = port::free().map_err(Failure::refused("a free port"))?;
            match self.launch() {
                Err(Failure::Silent { log, .. }) if log.contains(TAKEN) => {}
                launched => return launched,
            }
        }
        self.port = port::free().map_err(Failure::refused("a free port"))?;
        self.launch()
    }

    fn launch(&mut self) -> Result<(), Failure> {
        let path = self.folder.data().join(SETTINGS);
        let settings = self.settings.file(self.port, self.folder.path());
        fs::write(&path, settings)
            .and_then(|()| self.account.own(&path))
            .map_err(Failure::refused(SETTINGS))?;

        let mut command = self.account.command(&self.binaries.path("postgres"), self.folder.path());
        command.arg("-D").arg(self.folder.data());
        let run = self.run.insert(Run::start(command)?);
        self.folder.watch(Some(run.number()))?;
        let ready = self.wait_for(READY, 0);
        if ready.is_err() {
            // The first failure says more than a second.
            drop(self.stop());
        }
        ready
    }

    /// How far the log is, for [`Self::wait_for`].
    pub(crate) fn position(&self) -> usize {
        self.run.as_ref().map(|run| run.log().position()).unwrap_or_default()
    }

    /// Waits until the log says this at or behind a position.
    pub(crate) fn wait_for(&self, words: &str, from: usize) -> Result<(), Failure> {
        self.run.as_ref().ok_or(Failure::Stopped)?.wait_for(words, from)
    }

    /// Sends a signal to the process that is the parent of all others.
    pub(crate) fn signal(&self, sent: Signal) -> Result<(), Failure> {
        self.run.as_ref().ok_or(Failure::Stopped)?.signal(sent)
    }
}

impl Drop for Postgres {
    /// What cannot be ended here is left to the watchdog of the folder, who has nobody to tell, either.
    fn drop(&mut self) {
        drop(self.stop());
    }
}

fn kill9(run: &mut Run) -> Result<(), Failure> {
    let postmaster = run.pid()?;
    // One that stands still starts no others, and its dead children keep their numbers.
    signal(postmaster, Signal::STOP)?;
    for child in children(postmaster)? {
        signal(child, Signal::KILL)?;
    }
    signal(postmaster, Signal::KILL)?;
    run.ended("the end after SIGKILL")
}

/// First the fast shutdown, which writes a checkpoint, then the immediate one.
fn stop(run: &mut Run) -> Result<(), Failure> {
    for emphasis in [Signal::INT, Signal::QUIT] {
        run.signal(emphasis)?;
        if run.ends() {
            return run.ended("the end");
        }
    }
    kill9(run)
}
