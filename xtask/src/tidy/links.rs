//! Every relative link in the docs leads somewhere: to a file of the repository, and to a heading in it.

use super::Finding;
use super::markdown::{Link, anchors, links};
use super::tree::{Tree, extension_of};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_extension("md") {
        for link in links(text).iter().filter(|link| is_relative(link.target)) {
            let problem = problem(tree, path, link);
            findings.extend(problem.map(|problem| Finding::new(path, link.line, problem)));
        }
    }
    findings
}

/// No scheme (`https:`, `mailto:`) and no other host (`//host`).
fn is_relative(target: &str) -> bool {
    let scheme = target.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    });
    !scheme && !target.starts_with("//")
}

fn problem(tree: &Tree, from: &str, link: &Link<'_>) -> Option<String> {
    let (file, anchor) = link.target.split_once('#').unwrap_or((link.target, ""));
    let Some(path) = resolve(from, &decoded(file)) else {
        return Some(format!("`{}` leads out of the repository", link.target));
    };
    if !tree.has_file(&path) && !tree.has_folder(&path) {
        return Some(format!("`{}` leads nowhere: there is no {path}", link.target));
    }
    let text = tree.text(&path).filter(|_| !anchor.is_empty() && extension_of(&path) == Some("md"))?;
    let known = anchors(text).contains(&decoded(anchor));
    (!known).then(|| format!("`{}` leads nowhere: {path} has no heading `#{anchor}`", link.target))
}

/// The target's path from the repository's root; `None` if it lies outside. No file at all means the linking one, and
/// a leading slash the root, as on GitHub.
fn resolve(from: &str, file: &str) -> Option<String> {
    if file.is_empty() {
        return Some(from.to_owned());
    }
    let folder =
        if file.starts_with('/') { "" } else { from.rsplit_once('/').map_or("", |(folder, _)| folder) };
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(file.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Undoes `%20` and its like; what is no such thing stays.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|hex| str::from_utf8(hex).ok());
        let byte = hex.filter(|_| first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("README.md", "# Redrive\n## Try it\n"),
            ("docs/guide.md", text),
            ("docs/why not.md", ""),
            ("docs/decisions/0001-journal.md", "# A journal of our own\n"),
            ("crates/core/src/lib.rs", ""),
        ]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        let text = "\
# Guide
[a](decisions/0001-journal.md#a-journal-of-our-own) [b](../README.md#try-it) [c](#guide) [d](/README.md)
[e](why%20not.md) [f](decisions/) [g](..) [h](../crates/core/src/lib.rs#L1) [i](./guide.md)
[j](https://example.org/none) [k](mailto:a@example.org) [l](//example.org)
";
        assert_eq!(findings(text), [""; 0]);
    }

    #[test]
    fn a_missing_file_is_found() {
        let expected =
            "docs/guide.md:2: `decisions/0002.md` leads nowhere: there is no docs/decisions/0002.md";
        assert_eq!(findings("\n[a](decisions/0002.md)\n"), [expected]);
    }

    #[test]
    fn a_missing_heading_is_found() {
        let expected =
            "docs/guide.md:1: `../README.md#install` leads nowhere: README.md has no heading `#install`";
        assert_eq!(findings("[a](../README.md#install)\n"), [expected]);
        assert_eq!(findings("# Guide\n[a](#giude)\n").len(), 1);
    }

    #[test]
    fn a_link_out_of_the_repository_is_found() {
        assert_eq!(
            findings("[a](../../x.md)\n"),
            ["docs/guide.md:1: `../../x.md` leads out of the repository"]
        );
    }

    #[test]
    fn percent_signs_that_mean_nothing_stay() {
        assert_eq!(decoded("a%20b%zz%"), "a b%zz%");
    }
}
