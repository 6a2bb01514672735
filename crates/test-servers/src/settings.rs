//! What a test wants of its server.

use std::fmt::Write;
use std::path::Path;

/// The settings of a server. By default it is one that keeps what it has acknowledged.
#[derive(Clone, Debug)]
pub struct Settings {
    fsync: bool,
    max_connections: u32,
    extra: Vec<(String, String)>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { fsync: true, max_connections: 100, extra: Vec::new() }
    }
}

impl Settings {
    /// Those of the server that tests share. A power cut would ruin it, but it answers as any other: a commit is still
    /// waited for, because tests look at `synchronous_commit`.
    pub fn shared() -> Self {
        let settings = Self::default().fsync(false).max_connections(300);
        settings.set("full_page_writes", "off").set("shared_buffers", "128MB")
    }

    /// Whether a commit waits for the disk. Without, it still survives the end of every process.
    #[must_use]
    pub fn fsync(self, fsync: bool) -> Self {
        Self { fsync, ..self }
    }

    /// How many clients there may be at a time.
    #[must_use]
    pub fn max_connections(self, max_connections: u32) -> Self {
        Self { max_connections, ..self }
    }

    /// Any other setting, as in `postgresql.conf`; the last one counts.
    #[must_use]
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.extra.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The text of a configuration file.
    pub(crate) fn file(&self, port: u16, sockets: &Path) -> String {
        let (port, sockets) = (port.to_string(), sockets.display().to_string());
        let max_connections = self.max_connections.to_string();
        let own = [
            ("listen_addresses", "127.0.0.1"),
            ("port", port.as_str()),
            ("unix_socket_directories", sockets.as_str()),
            // We wait for words of the log.
            ("lc_messages", "C"),
            ("fsync", if self.fsync { "on" } else { "off" }),
            ("max_connections", max_connections.as_str()),
            // A standby that was away for a while finds what it missed, and its primary soon after that is back.
            ("wal_keep_size", "256MB"),
            ("wal_retrieve_retry_interval", "100ms"),
            // Whether it is a synchronous one shows when it reports.
            ("wal_receiver_status_interval", "1s"),
        ];
        let extra = self.extra.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        own.into_iter().chain(extra).fold(String::new(), |mut text, (name, value)| {
            writeln!(text, "{name} = {}", quoted(value)).expect("a text takes everything");
            text
        })
    }
}

/// A value as a literal of a configuration file, or of SQL where it has no backslash.
pub(crate) fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_lines_and_the_last_one_counts() {
        let settings = Settings::shared().set("application_name", "it's").set("fsync", "on");
        let file = settings.file(5432, Path::new("/tmp/a"));
        assert!(file.starts_with("listen_addresses = '127.0.0.1'\nport = '5432'\n"), "{file}");
        assert!(file.contains("unix_socket_directories = '/tmp/a'\n"), "{file}");
        assert!(file.ends_with("application_name = 'it''s'\nfsync = 'on'\n"), "{file}");
        assert!(!file.contains("synchronous_commit"), "{file}");
    }
}
