//! The picture of a state. Nothing is asked and nothing is kept: the same state at the same time is the same picture.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table, TableState};
use redrive_core::time::Timestamp;

use super::state::{LeaseLine, Link, QueueLine, State};
use crate::output::{clipped, printable};
use crate::span::Span;

/// The longest name that is shown.
const NAME_CHARS: usize = 40;
/// The least lines that leases get.
const LEASES_MIN: u16 = 6;

const HELP: [&str; 7] = [
    "q, Esc, Ctrl-C  quit",
    "p, space        let the picture stand still, and go on",
    "down, tab, j    the next queue",
    "up, k           the queue before",
    "?, h            this help",
    "",
    "IN/S and OUT/S are messages a second that came in and that were acked since the last look.",
];

/// Draws the state at `now`, which is this machine's time.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State, now: Timestamp) {
    let queues = u16::try_from(state.queues.len()).unwrap_or(u16::MAX).saturating_add(2);
    let [head, attention, table, rest, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Max(queues),
        Constraint::Min(LEASES_MIN),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(title(state, now)).style(Modifier::BOLD), head);
    frame.render_widget(Paragraph::new(told(state)), attention);
    draw_queues(frame, state, table);
    if state.help {
        frame.render_widget(Paragraph::new(HELP.map(Line::from).to_vec()), rest);
    } else {
        draw_leases(frame, state, now, rest);
    }
    let keys = "q quit  p pause  arrows choose a queue  ? help";
    frame.render_widget(Paragraph::new(keys).style(Modifier::DIM), foot);
}

/// The server, its time, and whether it is heard.
fn title(state: &State, now: Timestamp) -> String {
    let time = redrive_wire::Time(state.server_time(now).as_millis()).to_string();
    let time = time.get(..19).unwrap_or(&time);
    let clock = match state.offset {
        Some(offset) => format!("  {time}Z  clock {offset:+} ms"),
        None => String::new(),
    };
    let link = match &state.link {
        Link::Connecting => "  connecting".to_owned(),
        Link::Live => String::new(),
        Link::Lost { since, why } => {
            let ago = Span::from_millis(now.since(*since).get()).rough();
            format!("  lost for {ago}, trying again: {}", printable(why))
        }
    };
    let paused = if state.paused { "  paused" } else { "" };
    format!("redrive top  {}{clock}{paused}{link}", printable(&state.url))
}

fn told(state: &State) -> Line<'static> {
    let said = state.attention();
    if !said.is_empty() {
        return Line::from(format!("needs attention: {}", said.join("; "))).style(bad());
    }
    match (&state.link, state.queues.is_empty()) {
        (Link::Connecting, _) => Line::from(""),
        (_, true) => Line::from("no queues yet"),
        (_, false) => Line::from("nothing needs attention"),
    }
}

fn bad() -> Style {
    Style::new().red()
}

fn draw_queues(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let head = ["QUEUE", "READY", "DELAYED", "LEASED", "OVERDUE", "DEAD", "IN/S", "OUT/S", "OLDEST"];
    let head = Row::new(head.iter().enumerate().map(|(at, text)| cell(at, (*text).to_owned())));
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(9),
    ];
    let mut rows: Vec<Row<'_>> = state.queues.iter().map(queue).collect();
    if state.more {
        rows.push(Row::new(["and more queues, which are not shown"]));
    }
    let table = Table::new(rows, widths)
        .header(head.style(Modifier::BOLD))
        .row_highlight_style(Modifier::REVERSED)
        .highlight_symbol("> ")
        .highlight_spacing(ratatui::widgets::HighlightSpacing::Always);
    frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(state.at()));
}

/// The first column is text, the others are numbers.
fn cell(at: usize, text: String) -> Line<'static> {
    if at == 0 { Line::from(text) } else { Line::from(text).right_aligned() }
}

fn queue(line: &QueueLine) -> Row<'static> {
    let (stats, counts) = (&line.stats, &line.stats.states);
    let rate =
        |of: fn((f64, f64)) -> f64| line.rates.map_or("-".to_owned(), |rates| format!("{:.1}", of(rates)));
    let paused = if line.paused { " (paused)" } else { "" };
    let cells = [
        format!("{}{paused}", clipped(&stats.queue, NAME_CHARS)),
        counts.ready.to_string(),
        counts.delayed.to_string(),
        counts.leased.to_string(),
        stats.overdue.to_string(),
        counts.dead.to_string(),
        rate(|(arrived, _)| arrived),
        rate(|(_, done)| done),
        stats.oldest_ready_age_ms.map_or("-".to_owned(), |ms| Span::from_millis(ms).rough()),
    ];
    Row::new(cells.into_iter().enumerate().map(|(at, text)| cell(at, text)))
}

fn draw_leases(frame: &mut Frame<'_>, state: &State, now: Timestamp, area: Rect) {
    let Some(of) = &state.leases_of else { return };
    let [head, area] = Layout::vertical([Constraint::Length(2), Constraint::Fill(1)]).areas(area);
    let said = match state.leases.len() {
        0 => format!("\nnothing of {} is leased", printable(of)),
        _ => format!("\nleases of {}, the first to end first", printable(of)),
    };
    frame.render_widget(Paragraph::new(said), head);
    if state.leases.is_empty() {
        return;
    }
    let time = state.server_time(now);
    let widths = [Constraint::Length(38), Constraint::Fill(1), Constraint::Length(9), Constraint::Length(20)];
    let rows = state.leases.iter().map(|lease| self::lease(lease, time));
    let head = Row::new(["MESSAGE", "CONSUMER", "ATTEMPT", "ENDS IN"]).style(Modifier::BOLD);
    frame.render_widget(Table::new(rows, widths).header(head), area);
}

fn lease(lease: &LeaseLine, time: Timestamp) -> Row<'static> {
    let cells = |left: String| {
        let consumer = clipped(&lease.consumer, NAME_CHARS);
        Row::new([printable(&lease.message), consumer, lease.attempt.to_string(), left])
    };
    if lease.deadline <= time {
        let late = seconds(time.since(lease.deadline).get());
        return cells(format!("overdue for {late}")).style(bad());
    }
    // Rounded up: what shows nothing has ended.
    cells(seconds(lease.deadline.since(time).get().saturating_add(999)))
}

fn seconds(ms: u64) -> String {
    Span::from_millis(ms / 1_000 * 1_000).rough()
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::top::state::tests::{leased, queue, snapshot};

    /// The picture as lines.
    fn drawn(state: &State, now: u64, size: (u16, u16)) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
        terminal.draw(|frame| draw(frame, state, Timestamp::from_millis(now))).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let line = |y: u16| (0..size.0).map(|x| buffer[(x, y)].symbol()).collect::<Vec<&str>>().concat();
        (0..size.1).map(|y| line(y).trim_end().to_owned()).collect()
    }

    fn state() -> State {
        let mut state = State::new("http://here:7400/");
        let at = 1_700_000_000_000;
        state.saw(snapshot(
            vec![queue("orders", at, 10, 5), queue("mail", at, 0, 0)],
            Vec::new(),
            at - 1_500,
        ));
        let leases = vec![leased("message-a", at + 12_000), leased("message-b", at + 2_000)];
        let queues = vec![queue("orders", at + 1_000, 20, 8), queue("mail", at + 1_000, 0, 0)];
        state.saw(snapshot(queues, leases, at - 500));
        state
    }

    const NOW: u64 = 1_700_000_000_000 - 500;

    #[test]
    fn queues_and_leases_are_drawn() {
        let lines = drawn(&state(), NOW, (120, 16));
        assert_eq!(lines[0], "redrive top  http://here:7400  2023-11-14T22:13:21Z  clock +1500 ms");
        assert_eq!(lines[1], "nothing needs attention");
        let words =
            |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<String>>().join(" ");
        assert_eq!(words(&lines[2]), "QUEUE READY DELAYED LEASED OVERDUE DEAD IN/S OUT/S OLDEST");
        assert_eq!(words(&lines[3]), "> orders 5 4 3 0 0 10.0 3.0 1m1s");
        assert_eq!(words(&lines[4]), "mail 5 4 3 0 0 0.0 0.0 1m1s");
        let rest = lines[5..].join("\n");
        assert!(rest.contains("leases of orders, the first to end first"), "{rest}");
        let lease = |id: &str| words(lines.iter().find(|line| line.starts_with(id)).unwrap());
        assert_eq!(lease("message-b"), "message-b worker-1 2 1s");
        assert_eq!(lease("message-a"), "message-a worker-1 2 11s");
        assert_eq!(lines[15], "q quit  p pause  arrows choose a queue  ? help");
    }

    #[test]
    fn a_lease_counts_down_each_second_until_it_is_overdue() {
        let state = state();
        let left = |ms: u64| {
            let lines = drawn(&state, NOW + ms, (120, 16));
            let line = lines.iter().find(|line| line.starts_with("message-b")).unwrap().clone();
            line.split("  ").last().unwrap().trim().to_owned()
        };
        assert_eq!(
            [left(0), left(999), left(1_000), left(3_500)],
            ["1s", "1s", "overdue for 0s", "overdue for 2s"]
        );
    }

    #[test]
    fn what_is_lost_paused_and_asked_for_is_seen() {
        let mut state = state();
        state.lost("connection refused".to_owned(), Timestamp::from_millis(NOW));
        (state.paused, state.help) = (true, true);
        let lines = drawn(&state, NOW + 5_000, (140, 20));
        assert!(lines[0].contains("  paused  lost for 5s, trying again: connection refused"), "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("q, Esc, Ctrl-C  quit")), "{lines:?}");
        assert!(lines[3].starts_with("> orders"), "what was known stays");
    }

    #[test]
    fn no_size_and_no_state_is_too_small() {
        for size in [(1, 1), (3, 2), (20, 5), (300, 80)] {
            for state in [State::new("http://here"), state()] {
                drawn(&state, NOW, size);
            }
        }
    }

    #[test]
    fn names_cannot_move_the_cursor() {
        let mut state = State::new("http://here");
        state.saw(snapshot(vec![queue("a\u{1b}[2Jb", 1, 0, 0)], Vec::new(), 1));
        assert!(drawn(&state, 1, (120, 10)).iter().all(|line| !line.contains('\u{1b}')));
    }
}
