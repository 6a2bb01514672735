//! What no Rust file may have: too many lines, stray white space, unfinished work, tests that sleep.

use super::Finding;
use super::rust_source::{RustSource, Token, paths, test_lines};
use super::tree::Tree;

/// Beyond this a file has more than one subject; tests count, because they can move to a file of their own.
const LINES_MAX: usize = 600;

/// Marks in comments that work is not finished.
const MARKS: [&str; 2] = ["TODO", "FIXME"];

/// Macros that say the same.
const MACROS: [&str; 2] = ["todo!(", "unimplemented!("];

/// Waiting for time instead of a signal; the paths end like this for std and for every async runtime.
const SLEEPS: [[&str; 2]; 2] = [["thread", "sleep"], ["time", "sleep"]];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.with_extension("rs").flat_map(|(path, text)| check_file(path, text)).collect()
}

fn check_file(path: &str, text: &str) -> Vec<Finding> {
    let source = RustSource::parse(text);
    let tokens = source.tokens();
    let mut findings = Vec::new();
    findings.extend(too_long(path, text));
    findings.extend(stray_white_space(path, text));
    findings.extend(unfinished(path, &source));
    findings.extend(ignored_tests(path, &tokens));
    findings.extend(sleeping_tests(path, &tokens));
    findings
}

fn too_long(path: &str, text: &str) -> Option<Finding> {
    let lines = text.lines().count();
    let message = || format!("{lines} lines, {LINES_MAX} at most: split it by subject");
    (lines > LINES_MAX).then(|| Finding::new(path, LINES_MAX + 1, message()))
}

/// Also a carriage return counts as white space at the end of a line.
fn stray_white_space(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, number) in text.split('\n').zip(1..) {
        if line.contains('\t') {
            findings.push(Finding::new(path, number, "a tab: indent with spaces, write `\\t` in strings"));
        }
        if line.ends_with(char::is_whitespace) {
            findings.push(Finding::new(path, number, "white space at the end of the line"));
        }
    }
    findings
}

fn unfinished(path: &str, source: &RustSource) -> Vec<Finding> {
    let marks = MARKS.iter().flat_map(|mark| lines_with(&source.comments, mark));
    let macros = MACROS.iter().flat_map(|name| lines_with(&source.code, name));
    marks
        .chain(macros)
        .map(|line| Finding::new(path, line, "unfinished: do it now, or open an issue"))
        .collect()
}

fn lines_with<'a>(text: &'a str, wanted: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.lines().zip(1..).filter(move |(line, _)| line.contains(wanted)).map(|(_, number)| number)
}

fn ignored_tests(path: &str, tokens: &[Token<'_>]) -> Vec<Finding> {
    let bare = tokens
        .windows(4)
        .filter(|window| window.iter().map(|token| token.text).eq(["#", "[", "ignore", "]"]));
    bare.map(|window| Finding::new(path, window[0].line, "an ignored test says why: `#[ignore = \"…\"]`"))
        .collect()
}

fn sleeping_tests(path: &str, tokens: &[Token<'_>]) -> Vec<Finding> {
    let tests = test_lines(tokens);
    let in_test = |line: usize| is_test_file(path) || tests.iter().any(|lines| lines.contains(&line));
    let sleeps = paths(tokens).into_iter().filter(|mention| {
        SLEEPS.iter().any(|sleep| mention.segments.ends_with(sleep)) && in_test(mention.line)
    });
    sleeps.map(|sleep| Finding::new(path, sleep.line, "tests wait for a signal, not for time")).collect()
}

/// The conformance suite is tests through and through, although it is a library.
fn is_test_file(path: &str) -> bool {
    path.starts_with("crates/store-conformance/") || path.ends_with("/tests.rs") || path.contains("/tests/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_file_has_a_longest_length() {
        assert!(messages("a.rs", &"\n".repeat(LINES_MAX)).is_empty());
        assert_eq!(
            messages("a.rs", &"\n".repeat(LINES_MAX + 1)),
            ["a.rs:601: 601 lines, 600 at most: split it by subject"],
        );
    }

    #[test]
    fn stray_white_space_is_found() {
        assert_eq!(messages("a.rs", "fn a() {}\n\tfn b() {}\n").len(), 1);
        assert_eq!(messages("a.rs", "fn a() {} \n"), ["a.rs:1: white space at the end of the line"]);
        assert_eq!(messages("a.rs", "fn a() {}\r\n").len(), 1);
    }

    #[test]
    fn unfinished_work_is_found() {
        for text in
            ["// TODO: more\n", "/* FIXME */\n", "fn a() { todo!(\"b\") }\n", "fn a() { unimplemented!() }\n"]
        {
            assert_eq!(messages("a.rs", text), ["a.rs:1: unfinished: do it now, or open an issue"], "{text}");
        }
        assert!(messages("a.rs", "let mark = \"TODO\";\n").is_empty());
    }

    #[test]
    fn an_ignored_test_needs_a_reason() {
        assert_eq!(messages("a.rs", "#[test]\n#[ignore]\nfn a() {}\n").len(), 1);
        assert!(messages("a.rs", "#[test]\n#[ignore = \"needs a database\"]\nfn a() {}\n").is_empty());
    }

    #[test]
    fn a_test_that_sleeps_is_found() {
        let inside = "#[cfg(test)]\nmod tests {\n    fn a() { std::thread::sleep(b); }\n}\n";
        assert_eq!(
            messages("crates/x/src/a.rs", inside),
            ["crates/x/src/a.rs:3: tests wait for a signal, not for time"]
        );
        assert_eq!(messages("crates/x/tests/a.rs", "tokio::time::sleep(b).await;\n").len(), 1);
        assert_eq!(messages("crates/x/tests/a.rs", "use tokio::time::{sleep, timeout};\n").len(), 1);
        assert_eq!(messages("crates/x/src/a/tests.rs", "thread::sleep(b);\n").len(), 1);
        assert_eq!(messages("crates/store-conformance/src/rules/ack.rs", "thread::sleep(b);\n").len(), 1);
    }

    #[test]
    fn sleep_outside_of_tests_is_clippys_business() {
        assert!(
            messages("crates/x/src/a.rs", "fn a() { time::sleep(b); }\n#[cfg(test)]\nmod tests {}\n")
                .is_empty()
        );
    }
}
