//! The settings of a subscription: as flags, and as a table.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use redrive_wire::{Breaker, Maybe, Retry, SubscriptionView, TargetUpdate, UpdateSubscriptionRequest};

use crate::arguments::{OrNone, pair};
use crate::output::Cell;
use crate::queue::retry::{self, RetryArguments, breaker, breaker_text};
use crate::queue::settings::{set, set_or_none};
use crate::span::Span;

/// Settings, each only where it is given.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub(super) struct SettingArguments {
    /// Only events with this header, and one of these values; give it again for another header.
    #[arg(long = "filter", value_name = "NAME=VALUE,…", value_parser = header, help_heading = "Settings")]
    filters: Vec<(String, Vec<String>)>,
    #[command(flatten)]
    retry: RetryArguments,
    /// How long an attempt may take.
    #[arg(long, value_name = "SPAN", help_heading = "Settings")]
    timeout: Option<Span>,
    /// How many deliveries are under way at a time, at one server.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Settings")]
    max_in_flight: Option<u32>,
    /// Whether a breaker stops deliveries during an outage: on, off, or some of
    /// window=1m,min-messages=4,failure-share=0.5,open-for=30s,probe-timeout=30s.
    #[arg(long, value_name = "on|off|WHEN", value_parser = breaker, help_heading = "Settings")]
    breaker: Option<OrNone<Breaker>>,
    #[command(flatten)]
    pub(super) endpoint: EndpointArguments,
}

/// What is set of a webhook.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub(super) struct EndpointArguments {
    /// How a webhook gets an event: as one JSON object, or its data as the body and the rest in headers.
    #[arg(long, value_name = "FORMAT", help_heading = "Settings")]
    format: Option<Format>,
    /// For how long a webhook may do nothing but fail before it is switched off.
    #[arg(long, value_name = "SPAN|none", help_heading = "Settings")]
    disable_after: Option<OrNone<Span>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Structured,
    Binary,
}

/// A setting that can go back to the server's default, by the name of its flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Field {
    Filter,
    MaxAttempts,
    BaseDelay,
    Multiplier,
    MaxDelay,
    Jitter,
    Timeout,
    MaxInFlight,
    Breaker,
    Format,
    DisableAfter,
}

fn header(text: &str) -> Result<(String, Vec<String>), String> {
    let (name, values) = pair(text).map_err(|_| "must be NAME=VALUE, or NAME=ONE,ANOTHER".to_owned())?;
    Ok((name, values.split(',').map(str::to_owned).collect()))
}

impl SettingArguments {
    /// What is set, over what was.
    pub(super) fn over(self, mut request: UpdateSubscriptionRequest) -> UpdateSubscriptionRequest {
        request.filter.extend(self.filters);
        request.retry = self.retry.over(request.retry.take());
        set(&mut request.timeout_ms, self.timeout.map(Span::millis));
        set(&mut request.max_in_flight, self.max_in_flight);
        set_or_none(&mut request.breaker, self.breaker, |breaker| breaker);
        request
    }
}

impl EndpointArguments {
    pub(super) fn format(&self) -> Option<String> {
        self.format.map(|format| if format == Format::Binary { "binary" } else { "structured" }.to_owned())
    }

    pub(super) fn disable_after(&self) -> Maybe<u64> {
        let mut after = Maybe::Unset;
        set_or_none(&mut after, self.disable_after, Span::millis);
        after
    }

    /// What is set of an endpoint, over what was.
    pub(super) fn over(&self, endpoint: &mut TargetUpdate) {
        set(&mut endpoint.format, self.format());
        set_or_none(&mut endpoint.disable_after_ms, self.disable_after, Span::millis);
    }
}

impl Field {
    /// Lets the server's default decide again.
    pub(super) fn unset(self, request: &mut UpdateSubscriptionRequest, endpoint: Option<&mut TargetUpdate>) {
        let mut retry = request.retry.take().unwrap_or_default();
        match self {
            Self::Filter => request.filter = BTreeMap::new(),
            Self::MaxAttempts => retry.max_attempts = Maybe::Unset,
            Self::BaseDelay => retry.base_delay_ms = None,
            Self::Multiplier => retry.multiplier = None,
            Self::MaxDelay => retry.max_delay_ms = Maybe::Unset,
            Self::Jitter => retry.jitter = None,
            Self::Timeout => request.timeout_ms = None,
            Self::MaxInFlight => request.max_in_flight = None,
            Self::Breaker => request.breaker = Maybe::Unset,
            Self::Format => {
                if let Some(endpoint) = endpoint {
                    endpoint.format = None;
                }
            }
            Self::DisableAfter => {
                if let Some(endpoint) = endpoint {
                    endpoint.disable_after_ms = Maybe::Unset;
                }
            }
        }
        request.retry = (retry != Retry::default()).then_some(retry);
    }
}

/// Every setting that is in force by the name of its flag, its value, and who set it.
pub(super) fn rows(view: &SubscriptionView) -> Vec<Vec<Cell>> {
    let Some(settings) = &view.settings else { return Vec::new() };
    let set = view.retry.clone().unwrap_or_default();
    let policy = retry::rows(&settings.retry).into_iter().zip(retry::rows(&set));
    let policy = policy.map(|((name, _, value), (_, _, set))| (name, value, set.is_some()));
    let breaker = settings.breaker.clone().map_or(Maybe::Nothing, Maybe::Some);
    let timeout = Some(Span::from_millis(settings.timeout_ms).to_string());
    let others = [
        ("timeout", timeout, view.timeout_ms.is_some()),
        ("max-in-flight", Some(settings.max_in_flight.to_string()), view.max_in_flight.is_some()),
        ("breaker", Some(breaker_text(&breaker)), !view.breaker.is_unset()),
    ];
    let row = |(name, value, own): (&str, Option<String>, bool)| {
        let from = if own { "subscription" } else { "default" };
        vec![Cell::text(name), Cell::maybe(value, Cell::clipped), Cell::text(from)]
    };
    policy.chain(others).map(row).collect()
}

/// A filter as its flag takes it.
pub(super) fn filter_text(filter: &redrive_wire::HeaderFilter) -> String {
    let one = |(name, values): (&String, &Vec<String>)| format!("{name}={}", values.join(","));
    filter.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        settings: SettingArguments,
    }

    fn read(flags: &str) -> Result<SettingArguments, String> {
        let flags = ["x"].into_iter().chain(flags.split_whitespace());
        Flags::try_parse_from(flags).map(|flags| flags.settings).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_are_what_the_server_is_told() {
        let flags = "--filter region=eu,us --filter tier=gold --max-attempts none --timeout 5s --breaker off";
        let request = read(flags).unwrap().over(UpdateSubscriptionRequest::default());
        let json = serde_json::to_string(&request).unwrap();
        assert_eq!(
            json,
            r#"{"pattern":"","filter":{"region":["eu","us"],"tier":["gold"]},"retry":{"max_attempts":null},"timeout_ms":5000,"breaker":null}"#
        );
        assert_eq!(filter_text(&request.filter), "region=eu,us tier=gold");
        let endpoint = read("--format binary --disable-after none").unwrap().endpoint;
        assert_eq!(
            (endpoint.format().as_deref(), endpoint.disable_after()),
            (Some("binary"), Maybe::Nothing)
        );
    }

    #[test]
    fn a_wrong_setting_is_named() {
        for (flags, said) in [
            ("--filter region", "must be NAME=VALUE"),
            ("--timeout 5", "has no unit: write 5s"),
            ("--max-in-flight 0", "0 is not in 1.."),
            ("--format thin", "possible values: structured, binary"),
            ("--disable-after 5", "or none for no limit"),
            ("--breaker maybe", "must be on, off"),
        ] {
            let error = read(flags).unwrap_err();
            assert!(error.contains(said), "{flags}: {error}");
        }
    }

    #[test]
    fn every_field_can_be_unset() {
        let flags = "--filter a=b --max-attempts 1 --base-delay 1s --multiplier 2 --max-delay 1s --jitter full --timeout 1s \
                     --max-in-flight 1 --breaker on --format binary --disable-after 1d";
        let settings = read(flags).unwrap();
        let mut endpoint = TargetUpdate { url: String::new(), format: None, disable_after_ms: Maybe::Unset };
        let bare = endpoint.clone();
        settings.endpoint.over(&mut endpoint);
        let mut request = settings.over(UpdateSubscriptionRequest::default());
        for field in Field::value_variants() {
            let before = (request.clone(), endpoint.clone());
            field.unset(&mut request, Some(&mut endpoint));
            assert_ne!((request.clone(), endpoint.clone()), before, "{field:?}");
        }
        assert_eq!((request, endpoint), (UpdateSubscriptionRequest::default(), bare));
    }
}
