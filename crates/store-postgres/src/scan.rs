//! Messages that match a filter, by id: what list and the bulk verbs look through.
//!
//! However few match, one call looks at a bounded number of messages; where it ends, the next goes on.

use redrive_core::message::{DeadReason, FairnessKey, MessageId, State};
use redrive_store::Filter;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use crate::error::Fault;
use crate::queue::Known;
use crate::row::{MESSAGE_COLUMNS, STORY_COLUMNS, count, message_id, millis, reason_number, signed, uuid};
use crate::session::{Param, Session};

/// How many messages one call looks at.
const WINDOW: usize = 10_000;

const CONTENT: &str = ", content.body, content.content_type, content.headers";
const JOIN_CONTENT: &str = "JOIN redrive.content ON content.no = m.no";

/// Where the content begins in a row.
pub(crate) const CONTENT_AT: usize = MESSAGE_COLUMNS + STORY_COLUMNS;

/// Which messages, and how they are read.
pub(crate) struct Scan<'a> {
    pub(crate) filter: &'a Filter,
    pub(crate) now: redrive_core::time::Timestamp,
    pub(crate) after: Option<MessageId>,
    /// The largest id that may be found.
    pub(crate) until: Option<MessageId>,
    pub(crate) newest_first: bool,
    pub(crate) limit: usize,
    pub(crate) content: bool,
    /// What else must hold, in SQL.
    pub(crate) starts: &'static str,
}

/// What was found.
pub(crate) struct Found {
    pub(crate) rows: Vec<Row>,
    /// Where to go on, where there may be more.
    pub(crate) looked_to: Option<MessageId>,
}

/// A condition with its parameters.
#[derive(Default)]
struct Conditions {
    texts: Vec<String>,
    params: Vec<(Box<dyn ToSql + Sync + Send>, Type)>,
}

impl Conditions {
    /// A parameter; answers its name.
    fn param(&mut self, value: impl ToSql + Sync + Send + 'static, of: Type) -> String {
        self.params.push((Box::new(value), of));
        // The first parameter is the queue.
        format!("${}", self.params.len() + 1)
    }

    fn any(&mut self, what: &str, values: Vec<impl ToSql + Sync + Send + 'static>, of: Type) {
        if !values.is_empty() {
            let name = self.param(values, of);
            self.texts.push(format!("{what} = ANY ({name})"));
        }
    }
}

impl Scan<'_> {
    /// What narrows down the messages that are looked at.
    fn range(&self, all: &mut Conditions) -> String {
        let mut range = String::new();
        if let Some(after) = self.after {
            let name = all.param(uuid(after), Type::UUID);
            range = format!("AND m.id {} {name}", if self.newest_first { "<" } else { ">" });
        }
        if let Some(until) = self.until {
            let name = all.param(uuid(until), Type::UUID);
            range = format!("{range} AND m.id <= {name}");
        }
        if !self.filter.ids.is_empty() {
            let ids: Vec<Uuid> = self.filter.ids.iter().map(|id| uuid(*id)).collect();
            let name = all.param(ids, Type::UUID_ARRAY);
            range = format!("{range} AND m.id = ANY ({name})");
        }
        // Dead and done messages have an order by id of their own: among a million that wait, a few are found at once.
        range.push_str(match self.filter.states.as_slice() {
            [State::Dead] => " AND m.state = 3",
            [State::Done] => " AND m.state = 4",
            [State::Leased] => " AND m.state = 2",
            _ => "",
        });
        range
    }

    /// Which of them match.
    fn matching(&self, all: &mut Conditions, known: &Known) -> String {
        let filter = self.filter;
        if !filter.states.is_empty() {
            let now = millis(self.now);
            let states = filter.states.iter().map(|state| match state {
                State::Delayed => format!("(m.state < 2 AND m.visible_at > {now})"),
                State::Ready => format!("(m.state < 2 AND m.visible_at <= {now})"),
                State::Leased => "m.state = 2".to_owned(),
                State::Dead => "m.state = 3".to_owned(),
                State::Done => "m.state = 4".to_owned(),
            });
            all.texts.push(format!("({})", states.collect::<Vec<_>>().join(" OR ")));
        }
        if !filter.kinds.is_empty() || !filter.sources.is_empty() {
            let passes = |kind: &_, source: &_| {
                (filter.kinds.is_empty() || filter.kinds.contains(kind))
                    && (filter.sources.is_empty() || filter.sources.contains(source))
            };
            let classes = all.param(known.classes().those(passes), Type::INT4_ARRAY);
            all.texts.push(format!("m.class_id = ANY ({classes})"));
        }
        let keys: Vec<String> = filter.keys.iter().map(|key: &FairnessKey| key.as_str().to_owned()).collect();
        all.any("m.fairness_key", keys, Type::TEXT_ARRAY);
        if !filter.consumers.is_empty() {
            let consumers: Vec<String> =
                filter.consumers.iter().map(|name| name.as_str().to_owned()).collect();
            all.any("m.consumer", consumers, Type::TEXT_ARRAY);
            all.texts.push("m.state = 2".to_owned());
        }
        if !filter.reasons.is_empty() {
            let reasons: Vec<i16> =
                filter.reasons.iter().map(|reason: &DeadReason| reason_number(*reason)).collect();
            all.any("m.dead_reason", reasons, Type::INT2_ARRAY);
            all.texts.push("m.state = 3".to_owned());
        }
        if let Some(print) = filter.fingerprint {
            let name = all.param(signed(print.to_bits()), Type::INT8);
            all.texts.push(format!("m.state = 3 AND m.fingerprint = {name}"));
        }
        if let Some(range) = &filter.attempts {
            all.texts.push(format!(
                "m.attempts BETWEEN {} AND {}",
                count(*range.start()),
                count(*range.end())
            ));
        }
        if let Some(range) = &filter.created {
            all.texts.push(format!(
                "m.created_at BETWEEN {} AND {}",
                millis(*range.start()),
                millis(*range.end())
            ));
        }
        if let Some(error) = &filter.error {
            let name = all.param(error.clone(), Type::TEXT);
            all.texts.push(format!("m.storied AND strpos(story.last_error, {name}) > 0"));
        }
        if !self.starts.is_empty() {
            all.texts.push(self.starts.to_owned());
        }
        if all.texts.is_empty() { "true".to_owned() } else { all.texts.join(" AND ") }
    }

    /// Looks through the messages of a queue.
    pub(crate) async fn run(&self, session: &Session, known: &Known) -> Result<Found, Fault> {
        known.read_classes(session).await?;
        let mut all = Conditions::default();
        let range = self.range(&mut all);
        let of_range = all.params.len() + 1;
        let matching = self.matching(&mut all, known);
        let direction = if self.newest_first { "DESC" } else { "ASC" };
        let fill = |text: &str| {
            let (columns, join) = if self.content { (CONTENT, JOIN_CONTENT) } else { ("", "") };
            text.replace("{range}", &range)
                .replace("{direction}", direction)
                .replace("{window}", &WINDOW.to_string())
                .replace("{matching}", &matching)
                .replace("{limit}", &(self.limit + 1).to_string())
                .replace("{, content}", columns)
                .replace("{join content}", &session.link().in_schema(join))
        };
        let mut params: Vec<(Param<'_>, Type)> = vec![(&known.id, Type::INT4)];
        params.extend(all.params.iter().map(|(value, of)| (value.as_ref() as Param<'_>, of.clone())));
        let sql = &session.link().sql;
        let mut rows = session.rows_of(&fill(&sql.scan.text), &params).await?;
        if rows.len() > self.limit {
            rows.truncate(self.limit);
            let looked_to = rows.last().map(id).transpose()?;
            return Ok(Found { rows, looked_to });
        }
        // Fewer than asked for: either that was all, or the window ended.
        params.truncate(of_range);
        let end = session.rows_of(&fill(&sql.scan_end.text), &params).await?;
        let looked_to = end.first().map(id).transpose()?;
        Ok(Found { rows, looked_to })
    }
}

fn id(row: &Row) -> Result<MessageId, Fault> {
    Ok(message_id(crate::row::Columns::from(row, 0).take()?))
}
