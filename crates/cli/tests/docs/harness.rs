//! The harness itself: pages that are wrong must be found.

use std::path::Path;

use crate::compare::alike;
use crate::page::Page;
use crate::play::play;

type Check = fn() -> Result<(), String>;

pub(crate) const CHECKS: [(&str, Check); 6] = [
    ("harness::what_changes_may_differ", what_changes_may_differ),
    ("harness::commands_that_nothing_runs_are_found", commands_that_nothing_runs_are_found),
    ("harness::a_page_is_one_shell", a_page_is_one_shell),
    ("harness::other_output_is_found", other_output_is_found),
    ("harness::a_failure_that_the_page_hides_is_found", a_failure_that_the_page_hides_is_found),
    ("harness::a_page_may_start_a_server", a_page_may_start_a_server),
];

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

fn what_changes_may_differ() -> Result<(), String> {
    let id = "01934b1c-6f3e-7a30-9c55-0d3a5b1f6f21";
    for (expected, got, same) in [
        ("a b", "a b", true),
        ("a b", "a c", false),
        ("a …c", "a bbbc", true),
        ("a …c d", "a bbbc", false),
        ("…x…", "axb", true),
        ("age [..]s", "age 12s", true),
        ("a\n…\nd", "a\nb\nc\nd", true),
        ("a\n…\nd", "a\nb\nc", false),
        ("a", "a\nb", false),
        ("id 01934b1c-0000-7a30-9c55-0d3a5b1f6f21.", &format!("id {id}."), true),
        ("at 2026-01-01T00:00:00Z", "at 2026-11-17T18:00:01.234Z", true),
        ("at 2026-01-01T00:00:00Z", "at 2026-11-17 18:00", false),
        (&format!("{id}{id}"), "0123456789012345678901234567890123456789", true),
        ("attempt 1", "attempt 2", false),
    ] {
        if alike(&lines(expected), &lines(got)) != same {
            return Err(format!("`{expected}` and `{got}`: {same} was expected"));
        }
    }
    Ok(())
}

fn commands_that_nothing_runs_are_found() -> Result<(), String> {
    for (text, problem) in [
        ("# A\n\n    redrive queue list\n", "p.md:3: a command that nothing runs"),
        ("```\n$ redrive queue list\n```\n", "p.md:2: a command that nothing runs"),
        ("```bash\nls\n```\n", "p.md:1: a shell is called"),
        ("```console\nls\n```\n", "p.md:2: output without a command"),
        ("<!-- not run: -->\n```sh\nls\n```\n", "p.md:2: left out without a reason"),
        ("```rust\nfn main() {}\n```\n", "p.md:1: a program that nothing compiles"),
        ("```console\n$ ls\n", "p.md:1: a block without an end"),
    ] {
        match Page::parse("p.md", text) {
            Err(found) if found.starts_with(problem) => {}
            other => return Err(format!("{text}\n`{problem}` was expected, not {other:?}")),
        }
    }
    let left_out = Page::parse("p.md", "<!-- not run: needs the moon -->\n\n```sh\nfly\n```\n")?;
    if left_out.steps.is_empty() { Ok(()) } else { Err("what is left out was not".to_owned()) }
}

fn played(text: &str) -> Result<(), String> {
    play(Path::new("/nonexistent"), Page::parse("p.md", text)?, false)
}

fn a_page_is_one_shell() -> Result<(), String> {
    played(
        "```sh\nname=orders\nmkdir below\ncd below\n```\n```console\n$ echo $name; pwd\norders\n~/below\n\
         $ cat <<END\n> two\n> lines\n> END\ntwo\nlines\n$ false\n$ echo $?\n1\n$ echo :7400\n:7400\n\
         $ cat\n$ curl -s -o answer -w '%{http_code}' $REDRIVE_URL/readyz; echo\n200\n```\n",
    )
}

fn other_output_is_found() -> Result<(), String> {
    let found = played("```console\n$ echo one\none\n$ echo two\nthree\n```\n");
    let expected = "p.md:4: $ echo two\nexpected:\n    three\ngot:\n    two\n";
    if found == Err(expected.to_owned()) { Ok(()) } else { Err(format!("{found:?}")) }
}

fn a_failure_that_the_page_hides_is_found() -> Result<(), String> {
    for text in ["```console\n$ false\n```\n", "```sh\ntrue\nfalse\n```\n", "```console\n$ exit 0\n```\n"] {
        if played(text).is_ok() {
            return Err(format!("{text} passed"));
        }
    }
    Ok(())
}

fn a_page_may_start_a_server() -> Result<(), String> {
    played(
        "```console\n$ cargo run --bin redrive -- serve\n…\nredrive is ready on http://127.0.0.1:7400\n```\n\
         ```sh\ncurl -sf http://127.0.0.1:7400/readyz\n```\n<!-- the server is stopped here -->\n\
         ```console\n$ curl -s http://127.0.0.1:7400/readyz\n$ echo $?\n7\n```\n",
    )?;
    let other = played("```console\n$ redrive serve --listen nowhere\nredrive is ready\n```\n");
    if other.is_err() { Ok(()) } else { Err("a server that did not start was not noticed".to_owned()) }
}
