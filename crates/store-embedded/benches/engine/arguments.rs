//! The command line.

use std::path::PathBuf;

use crate::memory::Child;

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Run {
    /// Figures.
    Bench(Arguments),
    /// One measurement of memory, in a process that did nothing else before; the bench starts it itself.
    Child {
        /// Which.
        what: Child,
        /// Where, and how large.
        arguments: Arguments,
    },
}

/// The flags.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// Exit with 1 where a bar is short.
    pub(crate) check: bool,
    /// Shrink everything: shows that it runs, and nothing else.
    pub(crate) quick: bool,
    /// Only these groups; none means all.
    only: Vec<String>,
    /// Where the files go.
    pub(crate) dir: Option<PathBuf>,
}

impl Arguments {
    /// Reads the flags; `groups` are the names that `--only` knows.
    pub(crate) fn parse(words: impl Iterator<Item = String>, groups: &[&str]) -> Result<Run, String> {
        let mut arguments = Self::default();
        let mut child = None;
        let mut words = words;
        while let Some(flag) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{flag} needs a value"));
            match flag.as_str() {
                // Cargo passes this one to every bench.
                "--bench" => {}
                "--check" => arguments.check = true,
                "--quick" => arguments.quick = true,
                "--dir" => arguments.dir = Some(value()?.into()),
                "--only" => arguments.only.extend(names(&value()?, groups)?),
                "--child" => child = Some(Child::named(&value()?)?),
                unknown => return Err(format!("bench-engine does not know `{unknown}`")),
            }
        }
        Ok(match child {
            Some(what) => Run::Child { what, arguments },
            None => Run::Bench(arguments),
        })
    }

    /// Whether a group is to run.
    pub(crate) fn wants(&self, group: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == group)
    }
}

fn names(list: &str, groups: &[&str]) -> Result<Vec<String>, String> {
    let known = |name: &str| {
        if groups.contains(&name) {
            Ok(name.to_owned())
        } else {
            Err(format!("there is no group `{name}`, only {}", groups.join(", ")))
        }
    };
    list.split(',').map(known).collect()
}
