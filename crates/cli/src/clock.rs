//! Where the server's time comes from: the machine, or, in a build for tests, whoever moves it.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use redrive_broker::{Broker, Clock, pause};
use redrive_core::time::{Millis, Timestamp};
use redrive_store::StoreError;
use redrive_store_embedded::{EmbeddedStore, MachineClock, Options, StoreClock};

/// The longest sleep: a machine that was suspended looks at the clock again.
const SLEEP_MAX: Millis = Millis::from_secs(60);

/// The shortest wait for a time of a clock that is followed.
const TICK: Millis = Millis::new(1);

/// Where the server's time comes from.
#[derive(Debug, Clone)]
pub(crate) enum TimeSource {
    /// The clocks of the machine.
    Machine,
    /// A clock that stands still until a test moves it.
    #[cfg(feature = "test-clock")]
    Test(test::TestClock),
}

impl TimeSource {
    /// Opens a directory, and the clock that decides in it.
    pub(crate) fn open_embedded(
        &self,
        dir: &Path,
        options: Options,
    ) -> Result<(EmbeddedStore, Arc<dyn Clock>), StoreError> {
        match self {
            Self::Machine => {
                let store = EmbeddedStore::open(dir, options)?;
                let clock = EmbeddedClock(store.clock());
                Ok((store, Arc::new(clock)))
            }
            #[cfg(feature = "test-clock")]
            Self::Test(clock) => clock.open(dir, options),
        }
    }

    /// Adds what a test moves the clock by, and holds the sweepers by, to the API.
    #[cfg_attr(
        not(feature = "test-clock"),
        expect(unused_variables, reason = "only a test holds the sweepers")
    )]
    pub(crate) fn control(&self, app: axum::Router, broker: &Broker) -> axum::Router {
        match self {
            Self::Machine => app,
            #[cfg(feature = "test-clock")]
            Self::Test(clock) => clock.control(app, broker.clone()),
        }
    }
}

/// The clock of an embedded store.
#[derive(Debug)]
struct EmbeddedClock(StoreClock);

/// The clock of a store that other instances share, as it is followed here.
pub(crate) struct SharedClock<F>(pub(crate) F);

impl<F> std::fmt::Debug for SharedClock<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedClock")
    }
}

/// The machine's clock, for a store without one.
#[derive(Debug)]
pub(crate) struct WallClock;

async fn sleep_until(at: Timestamp, now: impl Fn() -> Timestamp + Send) {
    loop {
        let left = at.since(now());
        if left == Millis::ZERO {
            return;
        }
        pause(left.min(SLEEP_MAX)).await;
    }
}

#[async_trait]
impl Clock for EmbeddedClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn until(&self, at: Timestamp) {
        sleep_until(at, || self.0.now()).await;
    }
}

#[async_trait]
impl<F: Fn() -> Timestamp + Send + Sync> Clock for SharedClock<F> {
    fn now(&self) -> Timestamp {
        self.0()
    }

    async fn until(&self, at: Timestamp) {
        // What has come by this clock may not have come by the store's, where that was set back: who would look again
        // at once would do so without end.
        pause(TICK).await;
        sleep_until(at, || self.now()).await;
    }
}

#[async_trait]
impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        use redrive_store_embedded::Clock as _;
        MachineClock.wall()
    }

    async fn until(&self, at: Timestamp) {
        sleep_until(at, || self.now()).await;
    }
}

#[cfg(feature = "test-clock")]
pub(crate) mod test {
    //! For black-box tests: `POST /test/clock` with a number of milliseconds moves the clock ahead, and `POST /test/sweeper`
    //! with `true` holds the sweepers until somebody says `false`.

    use redrive_broker::{BrokerError, ManualClock};
    use redrive_store_embedded::disk::RealDisk;

    use super::{Arc, Broker, Clock, EmbeddedStore, Millis, Options, Path, StoreError, Timestamp, WallClock};

    #[derive(Debug, Clone)]
    pub(crate) struct TestClock(Arc<ManualClock>);

    impl TestClock {
        /// It starts at the time of the machine.
        pub(crate) fn new() -> Self {
            Self(Arc::new(ManualClock::new(WallClock.now())))
        }

        pub(super) fn open(
            &self,
            dir: &Path,
            options: Options,
        ) -> Result<(EmbeddedStore, Arc<dyn Clock>), StoreError> {
            let disk = RealDisk::new(dir).map_err(|error| StoreError::Unavailable(error.into()))?;
            let store = EmbeddedStore::open_on(Arc::new(disk), Arc::new(self.clone()), options)?;
            Ok((store, Arc::<ManualClock>::clone(&self.0)))
        }

        pub(super) fn control(&self, app: axum::Router, broker: Broker) -> axum::Router {
            let clock = self.clone();
            let advance = move |axum::Json(ms): axum::Json<u64>| async move {
                clock.0.advance(Millis::new(ms));
                axum::Json(clock.0.now().as_millis())
            };
            let sweeper = move |axum::Json(held): axum::Json<bool>| async move {
                match hold(&broker, held).await {
                    Ok(()) => axum::http::StatusCode::NO_CONTENT,
                    Err(error) => {
                        tracing::error!(%error, "what was due could not be swept");
                        axum::http::StatusCode::SERVICE_UNAVAILABLE
                    }
                }
            };
            app.route("/test/clock", axum::routing::post(advance))
                .route("/test/sweeper", axum::routing::post(sweeper))
                .route("/test/panic", axum::routing::post(panic))
        }
    }

    async fn hold(broker: &Broker, held: bool) -> Result<(), BrokerError> {
        if held {
            broker.hold_sweepers().await;
            return Ok(());
        }
        broker.let_sweepers_go().await
    }

    /// Shows what a panic shows of the request in which it happens.
    #[expect(clippy::panic, reason = "it is what it is for")]
    async fn panic(_: axum::http::HeaderMap, _: axum::body::Bytes) {
        panic!("told to by a test");
    }

    impl redrive_store_embedded::Clock for TestClock {
        fn wall(&self) -> Timestamp {
            self.0.now()
        }

        fn uptime(&self) -> Millis {
            Millis::new(self.0.now().as_millis())
        }
    }
}
