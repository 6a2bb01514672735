//! A list that is printed while its pages come in.

use std::marker::PhantomData;

use super::{Cell, Format, Output, Row, Tree, table};
use crate::remote::{Answer, Failure};

/// A list. Formats for programs are printed item by item, so that a long list needs no memory; a table is printed at the
/// end, when the widths of its columns are known.
pub(crate) struct List<'a, T> {
    output: &'a Output,
    rows: Vec<Vec<Cell>>,
    count: usize,
    of: PhantomData<T>,
}

impl<'a, T: Row> List<'a, T> {
    pub(super) fn new(output: &'a Output) -> Self {
        Self { output, rows: Vec::new(), count: 0, of: PhantomData }
    }

    pub(crate) fn item(&mut self, answer: &Answer<T>) -> Result<(), Failure> {
        self.count += 1;
        match self.output.format {
            Format::Table => {
                self.rows.push(answer.value.cells());
                Ok(())
            }
            Format::Id => self.output.line(&answer.value.id()),
            Format::Ndjson => self.output.line(&Tree::of(&answer.json).compact()),
            Format::Yaml => self.output.print(&Tree::of(&answer.json).yaml_item()),
            Format::Json => {
                let before = if self.count == 1 { "[\n" } else { ",\n" };
                let item = Tree::of(&answer.json).pretty().replace('\n', "\n  ");
                self.output.print(&format!("{before}  {item}"))
            }
        }
    }

    /// Prints what is left.
    pub(crate) fn end(self) -> Result<(), Failure> {
        match (self.output.format, self.count) {
            (Format::Table, _) => self.output.print(&table(T::COLUMNS, self.rows, self.output.coloured)),
            (Format::Json | Format::Yaml, 0) => self.output.line("[]"),
            (Format::Json, _) => self.output.line("\n]"),
            _ => Ok(()),
        }
    }
}
