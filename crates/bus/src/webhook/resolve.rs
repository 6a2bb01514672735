//! From a name to the addresses that are dialled.
//!
//! A name is looked up once for each connection, everything that comes back is judged, and what is dialled is what was
//! judged. A name that leads to a public address and to a private one is refused as a whole: whoever set that up has
//! something in mind.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::guard::{Guard, Refused};

/// How long one lookup may take.
const LOOKUP_TIME_MAX: Duration = Duration::from_secs(5);
/// Most addresses that one name may have.
const ANSWERS_MAX: usize = 64;
/// Most lookups of the system's resolver at a time. Each blocks a thread, of which the runtime has some five hundred, and
/// others need them.
const LOOKUPS_MAX: usize = 128;

/// Finds the addresses of a name.
#[async_trait]
pub trait Lookup: fmt::Debug + Send + Sync {
    /// The addresses of `host`, in the order in which they are to be tried.
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the system.
#[derive(Debug, Clone)]
pub struct SystemLookup {
    free: Arc<Semaphore>,
}

impl Default for SystemLookup {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }
}

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let permit = Arc::clone(&self.free).acquire_owned().await.map_err(io::Error::other)?;
        let host = host.to_owned();
        // Whoever asked may give up; the thread goes on, and its place is taken until it ends.
        let found = spawn_blocking(move || {
            let found = (host.as_str(), 0).to_socket_addrs();
            drop(permit);
            found
        });
        let found = found.await.map_err(io::Error::other)??;
        Ok(found.map(|addr| addr.ip()).take(ANSWERS_MAX + 1).collect())
    }
}

/// There is no address to dial.
#[derive(Debug, Error)]
pub(super) enum Unresolved {
    #[error("the host could not be looked up: {0}")]
    Failed(io::Error),
    #[error("the host could not be looked up within {} s", LOOKUP_TIME_MAX.as_secs())]
    TimedOut,
    #[error("the host has no address")]
    NoAddress,
    #[error("the host has more than {ANSWERS_MAX} addresses")]
    TooMany,
    #[error(transparent)]
    Refused(Refused),
}

/// What is asked for the addresses of a new connection. Whether one may be dialled depends on the port as well, which
/// reqwest does not tell, so there is one of these for each port.
#[derive(Debug, Clone)]
pub(super) struct Checked {
    pub(super) guard: Arc<Guard>,
    pub(super) lookup: Arc<dyn Lookup>,
    pub(super) port: u16,
}

impl Checked {
    pub(super) async fn addresses(&self, host: &str) -> Result<Vec<SocketAddr>, Unresolved> {
        let found = timeout(LOOKUP_TIME_MAX, self.lookup.lookup(host)).await;
        let found = found.map_err(|_| Unresolved::TimedOut)?.map_err(Unresolved::Failed)?;
        if found.is_empty() {
            return Err(Unresolved::NoAddress);
        }
        if found.len() > ANSWERS_MAX {
            return Err(Unresolved::TooMany);
        }
        for addr in &found {
            self.guard.check(host, *addr, self.port).map_err(Unresolved::Refused)?;
        }
        Ok(found.into_iter().map(|addr| SocketAddr::new(addr, self.port)).collect())
    }
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let checked = self.clone();
        Box::pin(async move {
            let found = checked.addresses(name.as_str()).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use proptest::prelude::*;

    use super::super::url::WebhookUrl;
    use super::*;

    #[derive(Debug)]
    struct Fixed(Vec<IpAddr>);

    #[async_trait]
    impl Lookup for Fixed {
        async fn lookup(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            Ok(self.0.clone())
        }
    }

    #[derive(Debug)]
    struct Never;

    #[async_trait]
    impl Lookup for Never {
        async fn lookup(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            pending().await
        }
    }

    fn checked(lookup: impl Lookup + 'static, port: u16) -> Checked {
        Checked { guard: Arc::default(), lookup: Arc::new(lookup), port }
    }

    async fn addresses(found: &[&str]) -> Result<Vec<SocketAddr>, String> {
        let found = found.iter().map(|addr| addr.parse().unwrap()).collect();
        let answered = checked(Fixed(found), 443).addresses("example.com").await;
        answered.map_err(|refused| refused.to_string())
    }

    #[tokio::test]
    async fn what_is_judged_is_what_is_dialled() {
        let expected = ["1.1.1.1:443".parse().unwrap(), "[2606:4700::1]:443".parse().unwrap()];
        assert_eq!(addresses(&["1.1.1.1", "2606:4700::1"]).await.as_deref(), Ok(&expected[..]));
    }

    #[tokio::test]
    async fn one_bad_address_spoils_the_rest_wherever_it_stands() {
        let mut found = vec!["1.1.1.1"; 4];
        for at in 0..found.len() {
            found[at] = "10.0.0.1";
            let refused = addresses(&found).await.unwrap_err();
            assert_eq!(refused, "the address 10.0.0.1 is not allowed: private");
            found[at] = "1.1.1.1";
        }
    }

    #[tokio::test]
    async fn no_address_and_too_many_are_refused() {
        assert_eq!(addresses(&[]).await.unwrap_err(), "the host has no address");
        assert!(addresses(&["1.1.1.1"; ANSWERS_MAX]).await.is_ok());
        let refused = addresses(&["1.1.1.1"; ANSWERS_MAX + 1]).await.unwrap_err();
        assert_eq!(refused, "the host has more than 64 addresses");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lookup_has_its_time() {
        let refused = checked(Never, 443).addresses("example.com").await.unwrap_err();
        assert_eq!(refused.to_string(), "the host could not be looked up within 5 s");
    }

    #[tokio::test]
    async fn the_system_knows_this_machine_and_the_guard_refuses_it() {
        let found = SystemLookup::default().lookup("localhost").await.unwrap();
        assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
        let refused = checked(SystemLookup::default(), 80).addresses("localhost").await.unwrap_err();
        assert!(refused.to_string().ends_with("is not allowed: loopback"), "{refused}");
    }

    proptest! {
        #[test]
        fn a_name_leads_only_where_it_may(
            label in "[a-z][a-z0-9_]{0,9}",
            port in prop::sample::select(vec![80_u16, 443]),
            v4 in prop::collection::vec(any::<[u8; 4]>(), 0..3),
            v6 in prop::collection::vec(any::<[u16; 8]>(), 0..2),
        ) {
            let url = WebhookUrl::parse(&format!("http://{label}.example:{port}/"), &Guard::default());
            let url = url.unwrap();
            let found = v4.into_iter().map(IpAddr::from).chain(v6.into_iter().map(IpAddr::from));
            let found: Vec<IpAddr> = found.collect();
            let checked = checked(Fixed(found.clone()), url.port());
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let dialled = runtime.block_on(checked.addresses(url.host()));
            let bad = |addr: &IpAddr| Guard::default().check(url.host(), *addr, url.port()).is_err();
            match dialled {
                Ok(dialled) => {
                    prop_assert!(dialled.iter().all(|addr| addr.port() == port && !bad(&addr.ip())));
                    prop_assert!(dialled.iter().map(SocketAddr::ip).eq(found));
                }
                Err(_) => prop_assert!(found.is_empty() || found.iter().any(bad)),
            }
        }
    }
}
