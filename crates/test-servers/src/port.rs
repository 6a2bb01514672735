//! Ports on the loopback that nobody listens on.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

use crate::random;

/// Below the ports that the kernel gives to clients. Of those, one could be a client's when a server comes back to it;
/// and a client that calls a port of them that is closed may be given that very port, and then talks to itself.
const PORTS: Range<u16> = 12_000..30_000;
/// Most ports are free: who has found none by then is not unlucky.
const TRIES: usize = 100;

/// A listener on a free port.
pub(crate) fn listen() -> io::Result<TcpListener> {
    let mut last = None;
    for _ in 0..TRIES {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, chosen()?)) {
            Ok(listener) => return Ok(listener),
            Err(cause) => last = Some(cause),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::AddrInUse.into()))
}

/// A port that was free a moment ago. Who listens on it may still find it taken, and asks again.
pub(crate) fn free() -> io::Result<u16> {
    Ok(listen()?.local_addr()?.port())
}

fn chosen() -> io::Result<u16> {
    let offset = random::number()? % u128::from(PORTS.end - PORTS.start);
    Ok(PORTS.start + u16::try_from(offset).expect("it is smaller than the range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_taken_is_not_free() {
        let taken: Vec<TcpListener> = (0..50).map(|_| listen().unwrap()).collect();
        for listener in &taken {
            assert_ne!(free().unwrap(), listener.local_addr().unwrap().port());
        }
    }
}
