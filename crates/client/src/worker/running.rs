//! A worker that runs.

use std::sync::Arc;

use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::builder::Worker;
use super::driver::Driver;
use crate::error::LeaseError;
use crate::transport::Transport;

/// Why a worker ended by itself.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorkerError {
    /// The broker refuses it, and another try does not help. What it held it has dropped: the leases run out.
    #[error(transparent)]
    Refused(#[from] LeaseError),
    /// It broke: this is a defect.
    #[error("the worker broke: {0}")]
    Broken(String),
}

/// What a worker was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Told {
    /// To work.
    Work,
    /// To end, after what it has begun.
    End,
    /// To end at once, and give back what it holds.
    EndNow,
}

/// A worker that runs. Where this is dropped it ends as [`Running::shutdown`] says, with nobody waiting for it.
#[derive(Debug)]
pub struct Running {
    tell: watch::Sender<Told>,
    task: JoinHandle<Result<(), WorkerError>>,
    ended: Option<Result<(), WorkerError>>,
}

impl Running {
    pub(super) fn start(worker: Worker, transport: Arc<dyn Transport>) -> Self {
        let (tell, told) = watch::channel(Told::Work);
        let driver = Driver::new(worker, transport, told);
        Self { tell, task: tokio::spawn(driver.run()), ended: None }
    }

    /// Ends it: nothing more is taken, handlers have the grace time, those that are left are dropped, and what is held is
    /// given back.
    pub async fn shutdown(mut self) -> Result<(), WorkerError> {
        self.begin_shutdown();
        self.ended().await
    }

    /// Begins to end, and does not wait for it.
    pub fn begin_shutdown(&self) {
        self.tell(Told::End);
    }

    /// Ends the grace time, also before it began: handlers are dropped, and what is held is given back.
    pub fn cut_short(&self) {
        self.tell(Told::EndNow);
    }

    fn tell(&self, what: Told) {
        self.tell.send_if_modified(|told| std::mem::replace(told, what.max(*told)) < what);
    }

    /// Waits until it has ended: because it was told to, or was refused for good.
    pub async fn ended(&mut self) -> Result<(), WorkerError> {
        if let Some(ended) = &self.ended {
            return ended.clone();
        }
        let ended = (&mut self.task).await;
        let ended = ended.unwrap_or_else(|error| Err(WorkerError::Broken(error.to_string())));
        self.ended.insert(ended).clone()
    }
}
