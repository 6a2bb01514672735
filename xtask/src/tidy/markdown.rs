//! A Markdown file as far as links need it: where they point, and which anchors its headings have.

use std::collections::BTreeMap;

/// A link's target as written, without its title.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link<'a> {
    pub(super) line: usize,
    pub(super) target: &'a str,
}

/// Every link outside of code: inline ones, pictures, reference definitions, and the `src` and `href` of HTML.
pub(super) fn links(text: &str) -> Vec<Link<'_>> {
    let prose = prose_lines(text).into_iter();
    prose
        .flat_map(|(line, prose)| line_links(prose).into_iter().map(move |target| Link { line, target }))
        .collect()
}

/// The anchors that GitHub gives to the headings, and those that HTML sets by hand.
pub(super) fn anchors(text: &str) -> Vec<String> {
    let mut used: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = Vec::new();
    for (_, line) in prose_lines(text) {
        anchors
            .extend(["id=\"", "name=\""].iter().flat_map(|mark| attributes(line, mark)).map(str::to_owned));
        if let Some(heading) = heading(line) {
            let slug = slug(heading);
            let count = used.entry(slug.clone()).or_default();
            anchors.push(if *count == 0 { slug } else { format!("{slug}-{count}") });
            *count += 1;
        }
    }
    anchors
}

/// The lines outside of fenced code, with their numbers.
fn prose_lines(text: &str) -> Vec<(usize, &str)> {
    let mut fence: Option<&str> = None;
    let mut prose = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let mark = fence_mark(line);
        match fence {
            None if mark.is_some() => fence = mark,
            None => prose.push((number, line)),
            Some(open) if mark.is_some_and(|mark| mark.starts_with(open)) && closes(line) => fence = None,
            Some(_) => {}
        }
    }
    prose
}

/// The run of three or more backticks or tildes that a line begins with.
fn fence_mark(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let sign = line.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let mark = &line[..line.find(|c| c != sign).unwrap_or(line.len())];
    (mark.len() >= 3).then_some(mark)
}

/// A closing fence has nothing but its mark.
fn closes(line: &str) -> bool {
    line.trim().chars().all(|c| matches!(c, '`' | '~'))
}

fn line_links(line: &str) -> Vec<&str> {
    if let Some(target) = definition(line) {
        return vec![target];
    }
    let mut targets = Vec::new();
    for prose in outside_code(line) {
        targets.extend(
            prose.match_indices("](").filter_map(|(at, mark)| inline_target(&prose[at + mark.len()..])),
        );
        targets.extend(["src=\"", "href=\""].iter().flat_map(|mark| attributes(prose, mark)));
    }
    targets
}

/// The parts of a line between its code spans. A code span inside a link's text ends one part, and the link's target
/// begins the next: `](` stays whole.
fn outside_code(line: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        let span = &rest[start..];
        let ticks = &span[..span.find(|c| c != '`').unwrap_or(span.len())];
        let Some(end) = closing_ticks(&span[ticks.len()..], ticks) else {
            break;
        };
        parts.push(&rest[..start]);
        rest = &span[ticks.len() + end + ticks.len()..];
    }
    parts.push(rest);
    parts
}

/// Where a run of exactly these backticks begins.
fn closing_ticks(text: &str, ticks: &str) -> Option<usize> {
    let runs = text.match_indices(ticks);
    runs.map(|(at, _)| at)
        .find(|&at| !text[..at].ends_with('`') && !text[at + ticks.len()..].starts_with('`'))
}

/// What stands between `](` and its closing parenthesis, without a title; parentheses inside it are balanced.
fn inline_target(text: &str) -> Option<&str> {
    if let Some(text) = text.strip_prefix('<') {
        return text.split_once('>').map(|(target, _)| target);
    }
    let mut depth = 0_usize;
    let end = text.find(|c| match c {
        '(' => {
            depth += 1;
            false
        }
        ')' if depth > 0 => {
            depth -= 1;
            false
        }
        c => c == ')' || c.is_whitespace(),
    })?;
    Some(&text[..end])
}

/// The target of `[label]: target`; a footnote (`[^1]: …`) is none.
fn definition(line: &str) -> Option<&str> {
    let (label, target) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
    let target = target.split_whitespace().next()?;
    let is_link = !label.starts_with('^') && !label.contains(']');
    is_link.then(|| target.trim_start_matches('<').trim_end_matches('>'))
}

/// The values of an HTML attribute; the mark is its name with `="`.
fn attributes<'a>(line: &'a str, mark: &str) -> Vec<&'a str> {
    let values = line.match_indices(mark).filter(|(at, _)| line[..*at].ends_with(' '));
    values.filter_map(|(at, mark)| line[at + mark.len()..].split_once('"')).map(|(value, _)| value).collect()
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    ((1..=6).contains(&level) && text.starts_with(' ')).then(|| text.trim().trim_end_matches('#').trim_end())
}

/// GitHub's rule: small letters, no punctuation, a hyphen for each blank.
fn slug(heading: &str) -> String {
    let kept = without_targets(heading);
    let kept = kept.chars().filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// `[text](target)` counts as its text.
fn without_targets(heading: &str) -> String {
    let mut kept = String::new();
    let mut rest = heading;
    while let Some((text, tail)) = rest.split_once("](") {
        kept.push_str(text);
        rest = tail.split_once(')').map_or("", |(_, after)| after);
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str) -> Vec<&str> {
        links(text).into_iter().map(|link| link.target).collect()
    }

    #[test]
    fn links_of_every_kind_are_found() {
        assert_eq!(targets("a [b](c.md) and ![d](e.svg \"title\")"), ["c.md", "e.svg"]);
        assert_eq!(targets("[`code`](a.md) [b](<c d.md>) [e](f_(g).md)"), ["a.md", "c d.md", "f_(g).md"]);
        assert_eq!(targets("[label]: docs/a.md \"title\"\n[^1]: a footnote"), ["docs/a.md"]);
        assert_eq!(targets("<img src=\"a.svg\" alt=\"b\"> <a href=\"c.md\">"), ["a.svg", "c.md"]);
    }

    #[test]
    fn code_has_no_links() {
        assert!(targets("`[a](b)` and ``[c](`d)``").is_empty());
        assert_eq!(targets("```md\n[a](b)\n```\n[c](d)"), ["d"]);
        assert_eq!(targets("~~~~\n```\n[a](b)\n~~~\n~~~~\n[c](d)"), ["d"]);
        assert_eq!(targets("a lone ` tick [a](b)"), ["b"]);
    }

    #[test]
    fn links_know_their_lines() {
        assert_eq!(links("\n\n[a](b)\n"), [Link { line: 3, target: "b" }]);
    }

    #[test]
    fn anchors_follow_githubs_rule() {
        let text = "# The `Store` port: why?\n## A_b-c  d\n## [Link](x.md) text ##\n```\n# no\n```\n#no\n";
        assert_eq!(anchors(text), ["the-store-port-why", "a_b-c--d", "link-text"]);
    }

    #[test]
    fn a_repeated_heading_gets_a_number() {
        assert_eq!(anchors("# A\n# A\n# A\n"), ["a", "a-1", "a-2"]);
    }

    #[test]
    fn html_sets_anchors_by_hand() {
        assert_eq!(anchors("<a id=\"here\"></a>\n"), ["here"]);
    }
}
