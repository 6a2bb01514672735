//! `redrive subscription update`.

use clap::{Args, ValueEnum};
use redrive_wire::{Maybe, SubscriptionView, TargetUpdate, UpdateSubscriptionRequest};
use reqwest::Method;
use reqwest::header::IF_MATCH;

use super::get;
use super::settings::{EndpointArguments, Field, SettingArguments};
use crate::arguments::{subscription_id, topic_pattern};
use crate::remote::{Answer, Failure, Query, Session};

#[derive(Debug, Args)]
pub(super) struct UpdateArguments {
    /// The subscription.
    #[arg(value_parser = subscription_id)]
    id: String,
    /// Of which topics.
    #[arg(long, value_parser = topic_pattern)]
    pattern: Option<String>,
    /// Where a webhook is sent from now on.
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
    #[command(flatten)]
    settings: SettingArguments,
    /// Lets the server's default decide again; give it again for another setting.
    #[arg(long, value_name = "SETTING")]
    unset: Vec<Field>,
}

/// Reads the subscription, changes what was said, and writes it back if nobody else did meanwhile.
pub(super) async fn run(session: &Session, arguments: UpdateArguments) -> Result<(), Failure> {
    let nothing = arguments.unset.is_empty() && arguments.settings == SettingArguments::default();
    if nothing && arguments.pattern.is_none() && arguments.webhook.is_none() {
        return Err(Failure::Usage(
            "name a setting to change; `redrive subscription update --help` lists them".to_owned(),
        ));
    }
    let known = get(session, &arguments.id).await?.value;
    let version = known.version;
    let (path, request) = (["v1", "subscriptions", &*arguments.id], changed(known, &arguments)?);
    let put = session.remote.request(Method::PUT, &path, &Query::new());
    let put = put.header(IF_MATCH, format!("\"{version}\"")).json(&request);
    let answer: Answer<SubscriptionView> = session.remote.answer(put).await?;
    let (id, version) = (&answer.value.id, answer.value.version);
    session.output.told(
        Some(&answer.json),
        &format!("subscription {id} has settings of version {version}"),
        id,
    )
}

/// All that is set from now on.
fn changed(
    known: SubscriptionView,
    arguments: &UpdateArguments,
) -> Result<UpdateSubscriptionRequest, Failure> {
    let mut endpoint = known.target.url.map(|url| TargetUpdate {
        url,
        format: known.target.format,
        disable_after_ms: known.target.disable_after_ms.map_or(Maybe::Nothing, Maybe::Some),
    });
    let about_endpoint = arguments.webhook.is_some()
        || arguments.settings.endpoint != EndpointArguments::default()
        || arguments.unset.iter().any(|field| matches!(field, Field::Format | Field::DisableAfter));
    if about_endpoint && endpoint.is_none() {
        let kind = known.target.kind;
        return Err(Failure::Conflict(format!("{} is no webhook: its target is a {kind}", known.id)));
    }
    let mut request = UpdateSubscriptionRequest {
        pattern: arguments.pattern.clone().unwrap_or(known.pattern),
        filter: known.filter,
        target: None,
        retry: known.retry,
        timeout_ms: known.timeout_ms,
        max_in_flight: known.max_in_flight,
        breaker: known.breaker,
    };
    for field in &arguments.unset {
        field.unset(&mut request, endpoint.as_mut());
    }
    let mut request = arguments.settings.clone().over(request);
    if let Some(endpoint) = &mut endpoint {
        endpoint.url = arguments.webhook.clone().unwrap_or_else(|| endpoint.url.clone());
        arguments.settings.endpoint.over(endpoint);
    }
    if let Some(field) = both(&request, endpoint.as_ref(), &arguments.unset) {
        return Err(Failure::Usage(format!("{field} must not be both set and unset")));
    }
    request.target = endpoint.filter(|_| about_endpoint);
    Ok(request)
}

/// A setting that was unset and is set all the same. A filter may be: its headers are forgotten, and others named.
fn both(
    request: &UpdateSubscriptionRequest,
    endpoint: Option<&TargetUpdate>,
    unset: &[Field],
) -> Option<String> {
    let is_set = |field: &&Field| {
        let (mut without, mut endpoint_without) = (request.clone(), endpoint.cloned());
        field.unset(&mut without, endpoint_without.as_mut());
        without != *request || endpoint_without.as_ref() != endpoint
    };
    let field = unset.iter().filter(|field| **field != Field::Filter).find(is_set)?;
    field.to_possible_value().map(|value| value.get_name().to_owned())
}
