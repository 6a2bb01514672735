//! A master, its replicas, and sentinels that watch over them.

use std::path::Path;
use std::thread;
use std::time::Duration;
use std::{fs, io};

use super::{Redis, RedisSettings};
use crate::account::Account;
use crate::folder::{Folder, Tenant};
use crate::run::Run;
use crate::{Failure, port, random};

/// As many as agree on anything while one of them is away.
const SENTINELS: usize = 3;
/// What the master is called, whoever it is.
const NAME: &str = "work";
/// Who replicas and sentinels are to a server. Clients are somebody else.
const PEER: &str = "peer";
/// The name of a sentinel's settings, which it writes itself from then on.
const SETTINGS: &str = "sentinel.conf";
/// What its log says when it knows whom to watch.
const READY: &str = "+monitor master";
/// What it says when somebody else has its port.
const TAKEN: &str = "Address already in use";
/// How often that may happen.
const PORTS_MAX: usize = 10;
/// How often servers are asked whether it is so by now, and how long they are left alone in between.
const ASKED_MAX: usize = 6_000;
const PAUSE: Duration = Duration::from_millis(20);

/// Servers of which one is the master, and three sentinels that make another one the master when it is lost. A server that does not
/// answer them for five seconds is: on a busy machine, one may need a few.
///
/// Servers have numbers: the master that there is at first is 0.
#[derive(Debug)]
pub struct RedisSentinels {
    servers: Vec<Redis>,
    sentinels: Vec<Sentinel>,
    password: String,
}

/// A sentinel, which ends with this.
#[derive(Debug)]
struct Sentinel {
    port: u16,
    run: Run,
    _folder: Folder,
}

impl RedisSentinels {
    /// Starts a master with so many replicas, and waits until all sentinels know all of them and each other.
    pub fn start(settings: &RedisSettings, replicas: usize) -> Result<Self, Failure> {
        let word = || random::word().map_err(Failure::refused("a password"));
        let (password, secret) = (word()?, word()?);
        let settings = settings
            .clone()
            .password(&password)
            .set("user", &format!("{PEER} on >{secret} ~* &* +@all"))
            .set("masteruser", PEER)
            .set("masterauth", &secret);
        let mut servers = vec![Redis::start(settings)?];
        for _ in 0..replicas {
            servers.push(servers[0].replica()?);
        }
        let master = servers[0].port();
        let sentinels = (0..SENTINELS).map(|_| Sentinel::start(master, &secret)).collect::<Result<_, _>>()?;
        let group = Self { servers, sentinels, password };
        group.wait_until("that all sentinels know each other", |group| {
            let said = group.asked(&["SENTINEL", "MASTER", NAME])?;
            let known =
                |said: &String, name: &str, count: usize| said.contains(&format!("{name}\n{count}\n"));
            Ok(said.iter().all(|said| {
                known(said, "num-slaves", replicas) && known(said, "num-other-sentinels", SENTINELS - 1)
            }))
        })?;
        Ok(group)
    }

    /// Where it is, by its sentinels: `redis+sentinel://:PASSWORD@127.0.0.1:PORT,…/NAME`.
    pub fn url(&self) -> String {
        let places: Vec<String> =
            self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port)).collect();
        format!("redis+sentinel://:{}@{}/{NAME}", self.password, places.join(","))
    }

    /// The password of clients.
    pub fn password(&self) -> &str {
        &self.password
    }

    /// One server.
    pub fn server(&self, server: usize) -> &Redis {
        &self.servers[server]
    }

    /// The same, to be killed, frozen or started again. One that is started again is what it was at first: a master, or a replica
    /// of the first master.
    pub fn server_mut(&mut self, server: usize) -> &mut Redis {
        &mut self.servers[server]
    }

    /// Cuts a server off from its replicas and from the sentinels. Clients reach it as before, and so do those that it calls itself.
    pub fn cut_off(&self, server: usize) -> Result<(), Failure> {
        self.servers[server].command(&["ACL", "SETUSER", PEER, "off"])?;
        self.servers[server].command(&["CLIENT", "KILL", "USER", PEER]).map(drop)
    }

    /// Takes that back.
    pub fn join(&self, server: usize) -> Result<(), Failure> {
        self.servers[server].command(&["ACL", "SETUSER", PEER, "on"]).map(drop)
    }

    /// Waits until all sentinels say that another server than this one is the master, and it says so, too; answers its number.
    pub fn wait_until_followed(&self, server: usize) -> Result<usize, Failure> {
        let mut found = server;
        self.wait_until("that another server is the master", |group| {
            let said = group.asked(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME])?;
            let is = |number: &usize| {
                said.iter().all(|said| said.ends_with(&format!("\n{}", group.servers[*number].port())))
            };
            found = (0..group.servers.len()).find(is).unwrap_or(server);
            Ok(found != server && group.servers[found].command(&["ROLE"])?.starts_with("master"))
        })?;
        Ok(found)
    }

    /// Waits until a server follows another one and has all that it has.
    pub fn wait_until_replica(&self, server: usize) -> Result<(), Failure> {
        self.wait_until("that it is a replica", |group| {
            let said = group.servers[server].command(&["INFO", "replication"])?;
            Ok(said.contains("role:slave") && said.contains("master_link_status:up"))
        })
    }

    /// What each sentinel answers.
    fn asked(&self, words: &[&str]) -> Result<Vec<String>, Failure> {
        self.sentinels.iter().map(|sentinel| super::server::command(sentinel.port, words)).collect()
    }

    fn wait_until(
        &self,
        awaited: &str,
        mut holds: impl FnMut(&Self) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        for _ in 0..ASKED_MAX {
            match holds(self) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(failure) if is_cut(&failure) => {}
                Err(failure) => return Err(failure),
            }
            pause();
        }
        let log = self.sentinels.first().map(|sentinel| sentinel.run.log().tail()).unwrap_or_default();
        Err(Failure::Silent { awaited: awaited.to_owned(), log })
    }
}

/// Whether a connection was cut: a server that sentinels tell to follow another one cuts those of all its clients.
fn is_cut(failure: &Failure) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(failure, Failure::Refused { cause, .. } if matches!(cause.kind(), BrokenPipe | ConnectionReset | UnexpectedEof))
}

impl Sentinel {
    fn start(master: u16, secret: &str) -> Result<Self, Failure> {
        let (program, account) = (super::find()?, Account::find("redis")?);
        let mut tries = 0;
        loop {
            tries += 1;
            let port = port::free().map_err(Failure::refused("a free port"))?;
            let mut folder = Folder::new(Tenant::Redis, account)?;
            let path = folder.path().join(SETTINGS);
            fs::write(&path, settings(port, folder.path(), master, secret))
                .and_then(|()| account.own(&path))
                .map_err(Failure::refused(SETTINGS))?;
            let mut command = account.command(&program, folder.path());
            command.arg(&path).arg("--sentinel");
            let run = Run::start(command)?;
            folder.watch(Some(run.number()))?;
            match run.wait_for(READY, 0) {
                Ok(()) => return Ok(Self { port, run, _folder: folder }),
                Err(Failure::Silent { log, .. }) if log.contains(TAKEN) && tries < PORTS_MAX => {}
                Err(failure) => return Err(failure),
            }
        }
    }
}

impl Drop for Sentinel {
    /// What cannot be ended here is left to the watchdog of its folder.
    fn drop(&mut self) {
        drop(super::server::kill(&mut self.run));
    }
}

fn settings(port: u16, folder: &Path, master: u16, secret: &str) -> String {
    let quorum = SENTINELS / 2 + 1;
    format!(
        "bind 127.0.0.1\n\
         port {port}\n\
         dir \"{}\"\n\
         sentinel monitor {NAME} 127.0.0.1 {master} {quorum}\n\
         sentinel auth-user {NAME} {PEER}\n\
         sentinel auth-pass {NAME} {secret}\n\
         sentinel down-after-milliseconds {NAME} 5000\n\
         sentinel failover-timeout {NAME} 6000\n",
        folder.display()
    )
}

#[expect(clippy::disallowed_methods, reason = "sentinels give no signal when they agree")]
fn pause() {
    thread::sleep(PAUSE);
}
