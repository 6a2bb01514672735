//! Lists that come in pages.

use std::collections::BTreeMap;

use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{Answer, Failure, Query, Remote, Session};
use crate::output::{Format, Row};

/// How many items a page has: messages come with their bodies.
const PAGE: u64 = 100;

/// How much of a list.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct HowMany {
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: u64,
    /// All of them.
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
}

/// A list, page by page.
pub(crate) struct Pages<'a> {
    remote: &'a Remote,
    path: Vec<&'a str>,
    query: Query,
    /// The field that the items stand in.
    field: &'static str,
    left: u64,
    cursor: Option<String>,
    ended: bool,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(
        remote: &'a Remote,
        path: &[&'a str],
        query: Query,
        field: &'static str,
        how_many: HowMany,
    ) -> Self {
        let left = if how_many.all { u64::MAX } else { how_many.limit };
        Self { remote, path: path.to_vec(), query, field, left, cursor: None, ended: false }
    }

    /// The next page; nothing where there is none, or enough was read.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<Vec<Answer<T>>>, Failure> {
        if self.ended || self.left == 0 {
            return Ok(None);
        }
        let mut query = self.query.clone();
        query.push(("limit", self.left.min(PAGE).to_string()));
        query.extend(self.cursor.take().map(|cursor| ("cursor", cursor)));
        let page: Answer<BTreeMap<String, Box<RawValue>>> = self.remote.get(&self.path, &query).await?;
        let wrong = || self.remote.stranger(format!("answered a page without `{}`", self.field));
        let items = page.value.get(self.field).ok_or_else(wrong)?;
        let items: Vec<Answer<T>> = serde_json::from_str(items.get()).map_err(|_| wrong())?;
        let cursor = page.value.get("next_cursor").and_then(|cursor| serde_json::from_str(cursor.get()).ok());
        self.left = self.left.saturating_sub(items.len() as u64);
        self.ended = cursor.is_none();
        self.cursor = cursor;
        Ok(Some(items))
    }

    /// Whether there is more than was asked for.
    pub(crate) fn has_more(&self) -> bool {
        self.cursor.is_some()
    }
}

impl Session {
    /// Prints a list.
    pub(crate) async fn list<T: Row + DeserializeOwned>(
        &self,
        path: &[&str],
        query: Query,
        field: &'static str,
        how_many: HowMany,
    ) -> Result<(), Failure> {
        let mut pages = Pages::new(&self.remote, path, query, field, how_many);
        let mut list = self.output.list::<T>();
        while let Some(page) = pages.next().await? {
            for item in &page {
                list.item(item)?;
            }
        }
        list.end()?;
        self.say_more(&pages);
        Ok(())
    }

    /// Prints a list that comes as a whole.
    pub(crate) async fn whole<T: Row + DeserializeOwned>(
        &self,
        path: &[&str],
        field: &'static str,
    ) -> Result<(), Failure> {
        let answer: Answer<BTreeMap<String, Box<RawValue>>> = self.remote.get(path, &Query::new()).await?;
        let wrong = || self.remote.stranger(format!("answered without `{field}`"));
        let items = answer.value.get(field).ok_or_else(wrong)?;
        let items: Vec<Answer<T>> = serde_json::from_str(items.get()).map_err(|_| wrong())?;
        let mut list = self.output.list::<T>();
        items.iter().try_for_each(|item| list.item(item))?;
        list.end()
    }

    /// Says that a list goes on, where it does.
    pub(crate) fn say_more(&self, pages: &Pages<'_>) {
        if pages.has_more() && self.output.format == Format::Table {
            self.output.say("there are more: --limit N, or --all");
        }
    }
}
