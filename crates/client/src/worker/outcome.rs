//! What a handler says about its message.

use std::fmt::Display;
use std::time::Duration;

use crate::settle::Settle;

/// What a handler says: done, or why not.
pub type Outcome = Result<(), Failure>;

/// Why a message is not done, and what is to become of it.
///
/// Whatever can be printed becomes a [`Failure::Retry`] by `?`, so that a handler may fail with any error. It is not an
/// error itself for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The attempt failed: it is tried again when the queue's policy says, or is dead.
    Retry(String),
    /// The attempt failed: it is tried again as the policy says, but not before this much time.
    RetryAfter(Duration, String),
    /// The message goes back unharmed, and the attempt does not count; not before this much time, where one is given.
    Release(Option<Duration>),
    /// It must never be tried again.
    Bury(String),
}

impl Failure {
    /// The attempt failed with this error.
    pub fn retry(error: impl Display) -> Self {
        Self::Retry(format!("{error:#}"))
    }

    /// The attempt failed with this error, and is not to be tried again before this much time.
    pub fn retry_after(delay: Duration, error: impl Display) -> Self {
        Self::RetryAfter(delay, format!("{error:#}"))
    }

    /// The message goes back unharmed.
    pub fn release() -> Self {
        Self::Release(None)
    }

    /// It must never be tried again, for this reason.
    pub fn bury(reason: impl Display) -> Self {
        Self::Bury(format!("{reason:#}"))
    }
}

impl<E: Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::retry(error)
    }
}

/// What a handler may return.
pub trait IntoOutcome {
    /// What it says.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Ok(())
    }
}

impl<E: Into<Failure>> IntoOutcome for Result<(), E> {
    fn into_outcome(self) -> Outcome {
        self.map_err(Into::into)
    }
}

/// What is said to the broker.
pub(super) fn settle(outcome: Outcome, receipt: String) -> Settle {
    match outcome {
        Ok(()) => Settle::Ack { receipt },
        Err(Failure::Retry(error)) => Settle::Nack { receipt, error, delay: None },
        Err(Failure::RetryAfter(delay, error)) => Settle::Nack { receipt, error, delay: Some(delay) },
        Err(Failure::Release(delay)) => Settle::Release { receipt, delay },
        Err(Failure::Bury(reason)) => Settle::Bury { receipt, reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Outcome {
        if text.is_empty() {
            return Err(Failure::bury("empty"));
        }
        text.parse::<u32>()?;
        Ok(())
    }

    #[test]
    fn any_error_is_a_retry_and_a_failure_stays_what_it_is() {
        assert_eq!(parse("7"), Ok(()));
        assert_eq!(parse("x"), Err(Failure::Retry("invalid digit found in string".to_owned())));
        assert_eq!(parse("").into_outcome(), Err(Failure::Bury("empty".to_owned())));
        assert_eq!(Err::<(), _>("no").into_outcome(), Err(Failure::Retry("no".to_owned())));
    }

    #[test]
    fn every_outcome_is_a_settlement() {
        let receipt = || "r".to_owned();
        assert_eq!(settle(Ok(()), receipt()), Settle::Ack { receipt: receipt() });
        let later = settle(Err(Failure::retry_after(Duration::from_secs(1), "busy")), receipt());
        let delay = Some(Duration::from_secs(1));
        assert_eq!(later, Settle::Nack { receipt: receipt(), error: "busy".to_owned(), delay });
        assert_eq!(
            settle(Err(Failure::release()), receipt()),
            Settle::Release { receipt: receipt(), delay: None }
        );
    }
}
