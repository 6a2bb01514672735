//! The README names the commands that run and test the product, and CI runs the second and nothing else.

use super::Finding;
use super::tree::Tree;
use crate::readme::RUN_COMMAND;

const README: &str = "README.md";
const CI: &str = ".ci/run";
const TEST_COMMAND: &str = "cargo xtask test";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for command in [TEST_COMMAND, RUN_COMMAND] {
        if !tree.text(README).is_some_and(|text| text.contains(command)) {
            findings.push(Finding::new(README, 1, format!("the command `{command}` is missing")));
        }
    }
    let (last, line) = last_line(tree.text(CI).unwrap_or_default());
    if last != format!("exec {TEST_COMMAND}") {
        findings.push(Finding::new(CI, line, format!("the last line is not `exec {TEST_COMMAND}`")));
    }
    findings
}

/// The last line with something on it, and its number.
fn last_line(text: &str) -> (&str, usize) {
    text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()).last().unwrap_or(("", 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD_README: (&str, &str) =
        (README, "# Redrive\n\n    cargo run --bin redrive -- serve\n    cargo xtask test\n");
    const GOOD_CI: (&str, &str) = (CI, "#!/usr/bin/env bash\nset -eu\nexec cargo xtask test\n\n");

    #[test]
    fn both_name_the_command() {
        assert!(check(&Tree::of(&[GOOD_README, GOOD_CI])).is_empty());
    }

    #[test]
    fn a_readme_without_the_command_is_found() {
        let missing = |command: &str| Finding::new(README, 1, format!("the command `{command}` is missing"));
        assert_eq!(check(&Tree::of(&[GOOD_CI])), [missing(TEST_COMMAND), missing(RUN_COMMAND)]);
        let half = "    cargo test\n    cargo run --bin redrive -- serve\n";
        assert_eq!(check(&Tree::of(&[(README, half), GOOD_CI])), [missing(TEST_COMMAND)]);
    }

    #[test]
    fn a_ci_that_does_more_or_less_is_found() {
        let message = "the last line is not `exec cargo xtask test`";
        let more = "exec cargo xtask test\n./deploy\n";
        assert_eq!(check(&Tree::of(&[GOOD_README, (CI, more)])), [Finding::new(CI, 2, message)]);
        let partial = "exec cargo xtask test --only fmt\n";
        assert_eq!(check(&Tree::of(&[GOOD_README, (CI, partial)])), [Finding::new(CI, 1, message)]);
        assert_eq!(check(&Tree::of(&[GOOD_README])), [Finding::new(CI, 1, message)]);
    }
}
