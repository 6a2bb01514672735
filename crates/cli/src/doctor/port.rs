//! Whether the server could listen where it is told to, or who does already.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use super::finding::Finding;
use super::server::version;
use crate::config::Config;
use crate::remote::{Connection, Failure, Remote};

const NAME: &str = "port";

pub(super) async fn check(config: &Config) -> Finding {
    let listen = config.listen;
    match TcpListener::bind(listen) {
        Ok(_) => Finding::ok(NAME, format!("{listen} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => taken(listen, config.port.has_tls()).await,
        Err(error) => Finding::fail(NAME, format!("{listen}: {error}")),
    }
}

/// A Redrive that runs there is what most people want; anything else is in the way.
async fn taken(listen: SocketAddr, tls: bool) -> Finding {
    match asked(listen, tls).await {
        Ok(version) => Finding::ok(NAME, format!("a redrive {version} answers on {listen}")),
        // It may be ours, with a certificate that nobody here knows.
        Err(failure) if tls => {
            Finding::warn(NAME, format!("{listen} is in use; who answers is not known: {failure}"))
        }
        Err(failure) => Finding::fail(NAME, format!("{listen} is in use, and not by a redrive: {failure}")),
    }
}

async fn asked(listen: SocketAddr, tls: bool) -> Result<String, Failure> {
    let scheme = if tls { "https" } else { "http" };
    let wrong = |_| Failure::Failed(format!("{listen} cannot be asked"));
    let url = format!("{scheme}://{}", reachable(listen)).parse().map_err(wrong)?;
    version(&Remote::new(&Connection { url, token: None, ca: None })?).await
}

/// The address by which this machine reaches itself.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_listens_everywhere_is_asked_here() {
        let of = |listen: &str| reachable(listen.parse().unwrap()).to_string();
        assert_eq!(of("0.0.0.0:1"), "127.0.0.1:1");
        assert_eq!(of("[::]:1"), "[::1]:1");
        assert_eq!(of("10.0.0.1:1"), "10.0.0.1:1");
    }
}
