//! The description of the API says the limits that the server has.

use redrive_bus::{Dispatch, Format, Resent, WhyDisabled};
use redrive_core::limits;
use redrive_core::message::{DeadReason, Priority, State};
use redrive_core::policy::BreakerConfig;
use redrive_core::time::Millis;
use serde_json::{Value, json};

fn schema(name: &str) -> Value {
    let document = serde_json::to_value(super::super::openapi()).expect("it is served as JSON");
    document["components"]["schemas"][name].clone()
}

#[test]
fn texts_are_as_long_as_the_domain_takes_them() {
    for (name, bytes) in [
        ("QueueName", limits::QUEUE_NAME_BYTES_MAX),
        ("Class", limits::CLASS_BYTES_MAX),
        ("FairnessKey", limits::FAIRNESS_KEY_BYTES_MAX),
        ("ConsumerName", limits::CONSUMER_BYTES_MAX),
        ("DedupKey", limits::DEDUP_KEY_BYTES_MAX),
        ("Note", limits::NOTE_BYTES_MAX),
        ("ErrorPart", limits::ERROR_BYTES_MAX),
        ("ContentType", limits::CONTENT_TYPE_BYTES_MAX),
        ("Topic", limits::TOPIC_BYTES_MAX),
        ("TopicPattern", limits::TOPIC_BYTES_MAX),
        ("SubscriptionId", limits::SUBSCRIPTION_ID_BYTES_MAX),
        ("WebhookUrl", limits::URL_BYTES_MAX),
        ("Checkpoint", limits::CHECKPOINT_BYTES_MAX.div_ceil(3) * 4),
    ] {
        assert_eq!(schema(name)["maxLength"], json!(bytes), "{name}");
    }
}

#[test]
fn spans_are_as_long_as_the_domain_takes_them() {
    for (name, shortest, longest) in [
        ("Delay", 0, limits::DELAY_MAX),
        ("LeaseTime", 1, limits::LEASE_MAX),
        ("Extension", 0, limits::LEASE_MAX),
        ("RetentionAge", 0, limits::RETENTION_MAX),
        ("DedupWindow", 0, limits::DEDUP_WINDOW_MAX),
        ("TopicRetention", 1, limits::RETENTION_MAX),
    ] {
        let schema = schema(name);
        assert_eq!(
            (&schema["minimum"], &schema["maximum"]),
            (&json!(shortest), &json!(longest.get())),
            "{name}"
        );
    }
}

#[test]
fn counts_are_as_large_as_the_domain_takes_them() {
    assert_eq!(schema("Priority")["maximum"], json!(Priority::MAX.get()));
    assert_eq!(schema("Limit")["maximum"], json!(limits::PAGE_ITEMS_MAX));
    assert_eq!(schema("Multiplier")["maximum"], json!(limits::MULTIPLIER_MAX));
    assert_eq!(schema("Weights")["additionalProperties"]["maximum"], json!(limits::WEIGHT_MAX));
    assert_eq!(schema("Weights")["maxProperties"], json!(limits::KEY_SETTINGS_MAX));
    assert_eq!(schema("Weights")["propertyNames"], without_description(schema("FairnessKey")));
    let items = json!(limits::BATCH_ITEMS_MAX);
    assert_eq!(schema("EnqueueBatchRequest")["properties"]["messages"]["maxItems"], items);
    assert_eq!(schema("Batch_AckRequest")["properties"]["items"]["maxItems"], items);
    assert_eq!(schema("PublishRequest")["properties"]["events"]["maxItems"], items);
    assert_eq!(schema("InFlight")["maximum"], json!(limits::IN_FLIGHT_MAX));
    assert_eq!(schema("HeaderFilter")["maxProperties"], json!(limits::HEADER_FILTERS_MAX));
    for name in ["States", "MessageIds", "Classes", "FairnessKeys", "ConsumerNames", "DeadReasons"] {
        assert_eq!(schema(name)["maxItems"], json!(limits::FILTER_VALUES_MAX), "{name}");
    }
}

type Change = fn(&mut BreakerConfig, u64);

#[test]
fn a_breaker_is_taken_within_its_ranges_and_refused_beyond_them() {
    let taken = |change: Change, value: u64| {
        // With such a share, no single message of two or more opens it.
        let mut config = BreakerConfig { failure_share_permille: 999, ..BreakerConfig::default() };
        change(&mut config, value);
        config.check().is_ok()
    };
    let changes: [(&str, Change); 4] = [
        ("BreakerWindow", |config, ms| config.window = Millis::new(ms)),
        ("BreakerWindow", |config, ms| config.probe_timeout = Millis::new(ms)),
        ("BreakerOpen", |config, ms| config.open_for = Millis::new(ms)),
        ("BreakerMessages", |config, count| config.min_messages = u32::try_from(count).unwrap_or(u32::MAX)),
    ];
    for (name, change) in changes {
        let schema = schema(name);
        let (min, max) = (schema["minimum"].as_u64().expect(name), schema["maximum"].as_u64().expect(name));
        assert!(taken(change, min) && taken(change, max), "{name}");
        assert!(!taken(change, min - 1) && !taken(change, max + 1), "{name}");
    }
}

#[test]
fn choices_are_those_of_the_domain() {
    assert_eq!(schema("State")["enum"], json!(State::ALL.map(State::name)));
    assert_eq!(schema("DeadReason")["enum"], json!(DeadReason::ALL.map(DeadReason::name)));
    assert_eq!(schema("Dispatch")["enum"], json!(Dispatch::ALL.map(Dispatch::name)));
    assert_eq!(schema("WebhookFormat")["enum"], json!(Format::ALL.map(Format::name)));
    assert_eq!(schema("WhyDisabled")["enum"], json!(WhyDisabled::ALL.map(WhyDisabled::name)));
    assert_eq!(schema("HowResent")["enum"], json!(Resent::ALL.map(Resent::name)));
}

#[test]
fn what_may_be_left_out_is_not_described_as_null() {
    let document = serde_json::to_value(super::super::openapi()).expect("it is served as JSON");
    let paths = document["paths"].as_object().expect("there are paths");
    for operation in paths.values().flat_map(|path| path.as_object().expect("a path has operations").values())
    {
        let body = &operation["requestBody"]["content"];
        let schemas = body.as_object().into_iter().flatten().map(|(_, content)| &content["schema"]);
        let headers = operation["parameters"].as_array().into_iter().flatten();
        let headers = headers.filter(|one| one["in"] == "header").map(|one| &one["schema"]);
        for schema in schemas.chain(headers) {
            assert!(!schema.to_string().contains("null"), "{}: {schema}", operation["operationId"]);
        }
    }
}

fn without_description(mut schema: Value) -> Value {
    schema.as_object_mut().expect("a schema is an object").remove("description");
    schema
}
