//! What a test wants of its Redis.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// When a server with an append-only file waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendFsync {
    /// Before it answers.
    Always,
    /// Once a second, whatever it has answered meanwhile.
    EverySecond,
    /// Never: the kernel knows best.
    No,
}

/// The settings of a Redis. By default it is one that keeps what it has acknowledged.
#[derive(Clone, Debug)]
pub struct RedisSettings {
    appendonly: bool,
    appendfsync: AppendFsync,
    pub(super) password: Option<String>,
    pub(super) tls: Option<Tls>,
    /// Where its data is, if not in its own folder.
    data: Option<PathBuf>,
    extra: Vec<(String, String)>,
}

/// Who a server is to clients that speak TLS, each as PEM.
#[derive(Clone, Debug)]
pub(super) struct Tls {
    certificate: String,
    key: String,
    authority: String,
}

/// What a server listens on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ports {
    pub(super) client: u16,
    /// Where the other nodes of a cluster call; none where it is alone.
    pub(super) bus: Option<u16>,
    pub(super) tls: Option<u16>,
}

impl Default for RedisSettings {
    fn default() -> Self {
        let (password, tls, data, extra) = (None, None, None, Vec::new());
        Self { appendonly: true, appendfsync: AppendFsync::Always, password, tls, data, extra }
    }
}

impl RedisSettings {
    /// Those of the servers that tests share: they keep nothing, and a node that is slow is not given up soon.
    pub fn shared() -> Self {
        Self::default().appendonly(false).set("cluster-node-timeout", "15000")
    }

    /// Whether there is an append-only file. Without, everything is lost when the server ends.
    #[must_use]
    pub fn appendonly(self, appendonly: bool) -> Self {
        Self { appendonly, ..self }
    }

    /// When that file is synced. Whatever it is, what was answered survives the end of the process.
    #[must_use]
    pub fn appendfsync(self, appendfsync: AppendFsync) -> Self {
        Self { appendfsync, ..self }
    }

    /// The password of clients (`requirepass`), and of a replica to its master. It is part of the URL as it is, so that it
    /// has letters and digits only.
    #[must_use]
    pub fn password(self, password: &str) -> Self {
        Self { password: Some(password.to_owned()), ..self }
    }

    /// A second port for clients that speak TLS, with this certificate, its key, and the authority of their
    /// certificates, all as PEM. They need none unless `tls-auth-clients` is set.
    #[must_use]
    pub fn tls(self, certificate: &str, key: &str, authority: &str) -> Self {
        let [certificate, key, authority] = [certificate, key, authority].map(str::to_owned);
        Self { tls: Some(Tls { certificate, key, authority }), ..self }
    }

    /// A folder for its data which is not its own, such as one on a [`LoopFs`](crate::LoopFs). It is made, and stays.
    #[must_use]
    pub fn data_in(self, folder: impl Into<PathBuf>) -> Self {
        Self { data: Some(folder.into()), ..self }
    }

    /// Any other setting, as in `redis.conf`, where a value may be several words; the last one counts.
    #[must_use]
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.extra.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Where the data of a server is that has this folder.
    pub(super) fn data_of(&self, folder: &Path) -> PathBuf {
        self.data.clone().unwrap_or_else(|| folder.join("data"))
    }

    /// The text of a configuration file.
    pub(super) fn file(&self, ports: Ports, folder: &Path) -> String {
        let quoted = |value: String| format!("\"{value}\"");
        let mut lines = vec![
            ("bind", "127.0.0.1".to_owned()),
            ("port", ports.client.to_string()),
            ("dir", quoted(self.data_of(folder).display().to_string())),
            ("appendonly", if self.appendonly { "yes" } else { "no" }.to_owned()),
            ("appendfsync", self.appendfsync.word().to_owned()),
            // What is kept is in the append-only file, or nowhere.
            ("save", "\"\"".to_owned()),
            // Who looks at the processes sees whose it is.
            ("set-proc-title", "no".to_owned()),
            // A replica is not waited for: neither for others to come, nor for it to catch up when it ends.
            ("repl-diskless-sync-delay", "0".to_owned()),
            ("shutdown-timeout", "0".to_owned()),
        ];
        if let Some(password) = &self.password {
            lines.extend(["requirepass", "masterauth"].map(|name| (name, quoted(password.clone()))));
        }
        if let Some(port) = ports.bus {
            lines.extend([
                ("cluster-enabled", "yes".to_owned()),
                ("cluster-port", port.to_string()),
                ("cluster-announce-ip", "127.0.0.1".to_owned()),
                // A test that loses a node waits for it.
                ("cluster-node-timeout", "2000".to_owned()),
            ]);
        }
        if let Some(port) = ports.tls {
            lines.extend([("tls-port", port.to_string()), ("tls-auth-clients", "no".to_owned())]);
            let file = |(name, file, _)| (name, quoted(folder.join(file).display().to_string()));
            lines.extend(self.tls.iter().flat_map(Tls::files).map(file));
        }
        let extra = self.extra.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let own = lines.iter().map(|(name, value)| (*name, value.as_str()));
        own.chain(extra).fold(String::new(), |mut text, (name, value)| {
            writeln!(text, "{name} {value}").expect("a text takes everything");
            text
        })
    }
}

impl Tls {
    /// Which setting names which file, and what is in it.
    pub(super) fn files(&self) -> [(&'static str, &'static str, &str); 3] {
        [
            ("tls-cert-file", "shown.crt", &self.certificate),
            ("tls-key-file", "shown.key", &self.key),
            ("tls-ca-cert-file", "authority.crt", &self.authority),
        ]
    }
}

impl AppendFsync {
    fn word(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::EverySecond => "everysec",
            Self::No => "no",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(settings: &RedisSettings, ports: Ports) -> String {
        settings.file(ports, Path::new("/tmp/a"))
    }

    #[test]
    fn settings_become_lines_and_the_last_one_counts() {
        let settings = RedisSettings::default().appendfsync(AppendFsync::EverySecond);
        let settings = settings.set("replicaof", "127.0.0.1 7").set("maxmemory", "1mb");
        let file = file(&settings, Ports { client: 6379, ..Ports::default() });
        assert!(
            file.starts_with("bind 127.0.0.1\nport 6379\ndir \"/tmp/a/data\"\nappendonly yes\n"),
            "{file}"
        );
        assert!(file.contains("\nappendfsync everysec\n"), "{file}");
        assert!(file.ends_with("\nreplicaof 127.0.0.1 7\nmaxmemory 1mb\n"), "{file}");
        for absent in ["requirepass", "cluster", "tls"] {
            assert!(!file.contains(absent), "{file}");
        }
    }

    #[test]
    fn what_only_some_servers_have_is_only_in_their_files() {
        let ports = Ports { client: 1, bus: Some(2), tls: Some(3) };
        let settings = RedisSettings::shared().password("secret").tls("c", "k", "a");
        let file = file(&settings.data_in("/tmp/b"), ports);
        for line in [
            "dir \"/tmp/b\"",
            "appendonly no",
            "requirepass \"secret\"",
            "masterauth \"secret\"",
            "cluster-port 2",
            "tls-port 3",
            "tls-key-file \"/tmp/a/shown.key\"",
        ] {
            assert!(file.lines().any(|found| found == line), "{line} in {file}");
        }
        assert!(file.ends_with("\ncluster-node-timeout 15000\n"), "{file}");
    }
}
