//! `docs/lifecycle.md` is made from the transition table, and fails here when the two differ.
//!
//! `REDRIVE_BLESS=1 cargo test -p redrive-core --test lifecycle_doc` writes it anew.

use std::fmt::Write;
use std::path::Path;

use redrive_core::lifecycle::{ARROWS, Verb};
use redrive_core::message::State;

fn name(state: Option<State>) -> &'static str {
    state.map_or("[*]", State::name)
}

fn page() -> String {
    let mut page = String::from(
        "# The life of a message\n\n\
         Made from the table in [`table.rs`](../crates/core/src/lifecycle/table.rs) by a test; do not edit.\n\n\
         ```mermaid\nstateDiagram-v2\n",
    );
    let mut lines: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for arrow in ARROWS {
        let (from, to) = (name(arrow.from), name(arrow.to));
        match lines.iter_mut().find(|line| (line.0, line.1) == (from, to)) {
            Some(line) => line.2.push(arrow.verb.name()),
            None => lines.push((from, to, vec![arrow.verb.name()])),
        }
    }
    for (from, to, verbs) in lines {
        writeln!(page, "    {from} --> {to}: {}", verbs.join(", ")).expect("a string takes it");
    }
    page.push_str("```\n\nThe ends of a `move` are in two queues.\n\n| verb | from → to | live event |\n|---|---|---|\n");
    for verb in Verb::ALL {
        for arrow in ARROWS.iter().filter(|arrow| arrow.verb == verb) {
            let (from, to) =
                (arrow.from.map_or("nothing", State::name), arrow.to.map_or("gone", State::name));
            let event = arrow.event().map_or("–".to_owned(), |event| format!("`{event}`"));
            writeln!(page, "| {verb} | {from} → {to} | {event} |").expect("a string takes it");
        }
    }
    page
}

#[test]
fn the_page_is_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lifecycle.md");
    if std::env::var_os("REDRIVE_BLESS").is_some() {
        std::fs::write(&path, page()).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).expect("the page is there");
    assert_eq!(written, page(), "docs/lifecycle.md is not made from the table; see the top of this test");
}
