//! A page of the documentation as far as its commands go: which there are, what they should print, and which are left out
//! and why.

use std::ops::Range;
use std::path::Path;

/// How a block says that it is left out; the reason follows.
const NOT_RUN: &str = "<!-- not run: ";

/// Where the reader stops the server of the page.
const STOP: &str = "<!-- the server is stopped here -->";

/// Names for a shell that pages do not use: a block is `console`, with output, or `sh`, without.
const OTHER_SHELLS: [&str; 6] = ["bash", "shell", "shell-session", "sh-session", "terminal", "zsh"];

/// Pages whose Rust is compiled, by the documentation tests of the crate `redrive`.
const COMPILED: [&str; 1] = ["docs/guides/rust.md"];

/// What a page calls, wherever a command stands.
const PROGRAMS: [&str; 4] = ["redrive ", "cargo ", "curl ", "$ "];

/// A page with its commands.
#[derive(Debug)]
pub(crate) struct Page {
    /// From the root of the repository.
    pub(crate) name: String,
    pub(crate) lines: Vec<String>,
    pub(crate) steps: Vec<Step>,
}

/// One thing to run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) command: String,
    pub(crate) kind: Kind,
}

/// What must come of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Of a `console` block: these lines of the page are the output, counted from 0.
    Told(Range<usize>),
    /// A `sh` block: it must succeed, whatever it prints.
    Script,
    /// The server of the page is stopped.
    Stop,
}

/// A fenced block.
struct Fence {
    /// What stands behind the ticks.
    language: String,
    /// Its lines without the ticks, counted from 0.
    inside: Range<usize>,
    /// Why it is left out, where it is.
    not_run: Option<String>,
}

impl Page {
    pub(crate) fn read(root: &Path, name: &str) -> Result<Self, String> {
        let text = std::fs::read_to_string(root.join(name)).map_err(|error| format!("{name}: {error}"))?;
        Self::parse(name, &text)
    }

    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, String> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let at = |line: usize, problem: &str| format!("{name}:{}: {problem}", line + 1);
        let (fences, prose) = split(&lines).map_err(|line| at(line, "a block without an end"))?;
        if let Some(&line) = prose.iter().find(|&&line| is_bare_command(&lines[line])) {
            return Err(at(line, "a command that nothing runs: it belongs in a `console` or `sh` block"));
        }
        let mut steps = Vec::new();
        for fence in fences {
            let start = fence.inside.start;
            match fence.language.as_str() {
                shell if OTHER_SHELLS.contains(&shell) => {
                    return Err(at(start - 1, "a shell is called `console`, with output, or `sh`, without"));
                }
                "console" | "sh" if fence.not_run.as_deref() == Some("") => {
                    return Err(at(start - 1, "left out without a reason"));
                }
                "console" | "sh" if fence.not_run.is_some() => {}
                "console" => steps.extend(console(&lines, fence.inside).map_err(|(line, p)| at(line, p))?),
                "sh" => steps.push(script(&lines, fence.inside)),
                "" | "text" => {
                    if let Some(line) = fence.inside.clone().find(|&line| lines[line].starts_with("$ ")) {
                        return Err(at(line, "a command that nothing runs: the block must be `console`"));
                    }
                }
                rust if rust.starts_with("rust") && !COMPILED.contains(&name) => {
                    return Err(at(start - 1, "a program that nothing compiles"));
                }
                _ => {}
            }
        }
        let ends = prose.into_iter().filter(|&line| lines[line] == STOP);
        steps.extend(ends.map(|line| Step { line: line + 1, command: STOP.to_owned(), kind: Kind::Stop }));
        steps.sort_by_key(|step| step.line);
        Ok(Self { name: name.to_owned(), lines, steps })
    }
}

/// The fenced blocks, and the numbers of all other lines; or the line of a block that does not end.
fn split(lines: &[String]) -> Result<(Vec<Fence>, Vec<usize>), usize> {
    let (mut fences, mut prose) = (Vec::new(), Vec::new());
    let mut line = 0;
    while line < lines.len() {
        let Some(language) = lines[line].strip_prefix("```") else {
            prose.push(line);
            line += 1;
            continue;
        };
        let length = lines[line + 1..].iter().position(|text| text.starts_with("```")).ok_or(line)?;
        let inside = line + 1..line + 1 + length;
        fences.push(Fence {
            language: language.trim().to_owned(),
            not_run: not_run(&lines[..line]),
            inside: inside.clone(),
        });
        line = inside.end + 1;
    }
    Ok((fences, prose))
}

/// The reason in the comment right before a block.
fn not_run(before: &[String]) -> Option<String> {
    let comment = before.iter().rev().find(|line| !line.trim().is_empty())?;
    let reason = comment.trim().strip_prefix(NOT_RUN.trim_end())?;
    Some(reason.trim_end_matches("-->").trim().to_owned())
}

/// Code that is indented instead of fenced.
fn is_bare_command(line: &str) -> bool {
    line.strip_prefix("    ").is_some_and(|code| PROGRAMS.iter().any(|program| code.starts_with(program)))
}

type Misplaced = (usize, &'static str);

fn console(lines: &[String], inside: Range<usize>) -> Result<Vec<Step>, Misplaced> {
    let mut steps: Vec<Step> = Vec::new();
    let mut line = inside.start;
    while line < inside.end {
        let Some(command) = lines[line].strip_prefix("$ ") else {
            return Err((line, "output without a command"));
        };
        let mut command = command.to_owned();
        let first = line;
        line += 1;
        while line < inside.end
            && let Some(more) = lines[line].strip_prefix("> ")
        {
            command = format!("{command}\n{more}");
            line += 1;
        }
        let told = line..lines[line..inside.end]
            .iter()
            .position(|text| text.starts_with("$ "))
            .map_or(inside.end, |more| line + more);
        line = told.end;
        steps.push(Step { line: first + 1, command, kind: Kind::Told(told) });
    }
    Ok(steps)
}

fn script(lines: &[String], inside: Range<usize>) -> Step {
    Step { line: inside.start + 1, command: lines[inside].join("\n"), kind: Kind::Script }
}
