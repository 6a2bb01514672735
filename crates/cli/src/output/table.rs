//! Tables without borders: heads in upper case, two spaces between columns, numbers to the right.

use comfy_table::{Attribute, CellAlignment, Color, Table};

use super::text::{clipped, printable};
use crate::span::Span;

/// The longest text of a cell; what is longer is cut, whatever the terminal's width is.
const CELL_CHARS_MAX: usize = 60;

/// The head of a column.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column {
    /// Of text, which stands to the left.
    Text(&'static str),
    /// Of numbers, which stand to the right.
    Number(&'static str),
}

/// A colour with a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hue {
    Good,
    Waiting,
    Busy,
    Bad,
    Faint,
}

/// What stands in a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    hue: Option<Hue>,
}

impl Cell {
    /// Text from wherever, on one line.
    pub(crate) fn text(text: impl AsRef<str>) -> Self {
        Self { text: printable(text.as_ref()), hue: None }
    }

    /// The beginning of what may be long.
    pub(crate) fn clipped(text: impl AsRef<str>) -> Self {
        Self { text: clipped(text.as_ref(), CELL_CHARS_MAX), hue: None }
    }

    pub(crate) fn number(number: impl Into<u64>) -> Self {
        Self { text: number.into().to_string(), hue: None }
    }

    /// A span for people.
    pub(crate) fn age(ms: u64) -> Self {
        Self { text: Span::from_millis(ms).rough(), hue: None }
    }

    /// A setting's span, exactly.
    pub(crate) fn span(ms: u64) -> Self {
        Self { text: Span::from_millis(ms).to_string(), hue: None }
    }

    /// Nothing.
    pub(crate) fn none() -> Self {
        Self { text: "-".to_owned(), hue: Some(Hue::Faint) }
    }

    /// What there is, or nothing.
    pub(crate) fn maybe<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or_else(Self::none, cell)
    }

    /// A word that says where something stands, in its colour.
    pub(crate) fn state(word: &str) -> Self {
        let hue = match word {
            "ready" | "running" | "active" | "closed" | "ok" => Some(Hue::Good),
            "delayed" | "paused" | "half_open" | "warn" => Some(Hue::Waiting),
            "leased" => Some(Hue::Busy),
            "dead" | "failed" | "revoked" | "open" | "fail" => Some(Hue::Bad),
            "done" | "cancelled" | "expired" => Some(Hue::Faint),
            _ => None,
        };
        Self { text: printable(word), hue }
    }

    fn drawn(self) -> comfy_table::Cell {
        let cell = comfy_table::Cell::new_owned(self.text);
        match self.hue {
            None => cell,
            Some(Hue::Good) => cell.fg(Color::Green),
            Some(Hue::Waiting) => cell.fg(Color::Yellow),
            Some(Hue::Busy) => cell.fg(Color::Cyan),
            Some(Hue::Bad) => cell.fg(Color::Red),
            Some(Hue::Faint) => cell.add_attribute(Attribute::Dim),
        }
    }
}

/// Rows below heads.
pub(crate) fn table(columns: &[Column], rows: Vec<Vec<Cell>>, coloured: bool) -> String {
    let mut table = bare(coloured);
    table.set_header(columns.iter().map(|column| {
        let (Column::Text(head) | Column::Number(head)) = column;
        comfy_table::Cell::new(head).add_attribute(Attribute::Bold)
    }));
    table.add_rows(rows.into_iter().map(|row| row.into_iter().map(Cell::drawn)));
    for (at, column) in columns.iter().enumerate() {
        if let (Column::Number(_), Some(drawn)) = (column, table.column_mut(at)) {
            drawn.set_cell_alignment(CellAlignment::Right);
        }
    }
    finished(table)
}

/// Names and what stands behind them.
pub(crate) fn card(fields: &[(&str, Cell)], coloured: bool) -> String {
    let mut table = bare(coloured);
    for (name, cell) in fields {
        let name = comfy_table::Cell::new(name).add_attribute(Attribute::Bold);
        table.add_row([name, cell.clone().drawn()]);
    }
    finished(table)
}

fn bare(coloured: bool) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::TableStyle::new());
    table.force_no_tty();
    if coloured {
        table.enforce_styling();
    }
    table
}

fn finished(mut table: Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let mut text = String::new();
    for line in table.lines() {
        text.extend([line.trim_end(), "\n"]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [Column::Text("QUEUE"), Column::Number("READY"), Column::Text("STATE")];

    fn rows() -> Vec<Vec<Cell>> {
        vec![
            vec![Cell::text("orders"), Cell::number(5_u32), Cell::state("ready")],
            vec![Cell::text("日本\u{1b}"), Cell::number(12_345_u32), Cell::none()],
        ]
    }

    #[test]
    fn text_stands_left_and_numbers_right() {
        assert_eq!(
            table(&COLUMNS, rows(), false),
            "QUEUE       READY  STATE\norders          5  ready\n日本\\u{1b}  12345  -\n"
        );
        assert_eq!(table(&COLUMNS, Vec::new(), false), "QUEUE  READY  STATE\n");
        let fields = [("name", Cell::text("a")), ("lease timeout", Cell::span(1_500))];
        assert_eq!(card(&fields, false), "name           a\nlease timeout  1.5s\n");
    }

    #[test]
    fn colours_do_not_move_columns() {
        let plain = table(&COLUMNS, rows(), false);
        let coloured = table(&COLUMNS, rows(), true);
        assert!(coloured.contains("\u{1b}["), "{coloured:?}");
        let mut bare = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, behind)) = rest.split_once('\u{1b}') {
            bare.push_str(before);
            rest = behind.split_once('m').unwrap().1;
        }
        bare.push_str(rest);
        let trimmed: Vec<&str> = bare.lines().map(str::trim_end).collect();
        assert_eq!(trimmed, plain.lines().collect::<Vec<_>>());
    }

    #[test]
    fn a_long_text_is_cut_for_everybody_alike() {
        let text = table(&[Column::Text("A")], vec![vec![Cell::clipped("x".repeat(100))]], false);
        assert_eq!(text, format!("A\n{}…\n", "x".repeat(59)));
    }
}
