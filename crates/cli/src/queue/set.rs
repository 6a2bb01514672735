//! `redrive queue set`.

use clap::{Args, ValueEnum};
use redrive_wire::{QueueView, UpdateQueueRequest};
use reqwest::Method;
use reqwest::header::IF_MATCH;

use super::settings::{Field, SettingArguments};
use crate::arguments::queue_name;
use crate::remote::{Answer, Failure, Query, Session};

#[derive(Debug, Args)]
pub(super) struct SetArguments {
    /// The queue.
    #[arg(value_parser = queue_name)]
    name: String,
    #[command(flatten)]
    settings: SettingArguments,
    /// Lets the server's default decide again; give it again for another setting.
    #[arg(long, value_name = "SETTING")]
    unset: Vec<Field>,
}

/// Reads the queue, changes what was said, and writes it back if nobody else did meanwhile.
pub(super) async fn run(session: &Session, arguments: SetArguments) -> Result<(), Failure> {
    let path = ["v1", "queues", &*arguments.name];
    let view: QueueView = session.remote.get(&path, &Query::new()).await?.value;
    let mut config = view.config.clone();
    for field in &arguments.unset {
        field.unset(&mut config);
    }
    if arguments.unset.is_empty() && arguments.settings == SettingArguments::default() {
        return Err(Failure::Usage(
            "name a setting to change; `redrive queue set --help` lists them".to_owned(),
        ));
    }
    let config = arguments.settings.over(config);
    if let Some(field) = arguments.unset.iter().find(|field| is_set(**field, &config)) {
        let name = field.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        return Err(Failure::Usage(format!("{name} must not be both set and unset")));
    }
    let request = session.remote.request(Method::PUT, &path, &Query::new());
    let request =
        request.header(IF_MATCH, format!("\"{}\"", view.version)).json(&UpdateQueueRequest { config });
    let answer: Answer<QueueView> = session.remote.answer(request).await?;
    let (name, version) = (&answer.value.name, answer.value.version);
    session.output.told(Some(&answer.json), &format!("queue {name} has settings of version {version}"), name)
}

fn is_set(field: Field, config: &redrive_wire::QueueConfig) -> bool {
    let mut without = config.clone();
    field.unset(&mut without);
    without != *config
}
