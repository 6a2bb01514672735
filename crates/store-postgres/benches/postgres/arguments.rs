//! The command line.

use crate::NAME;

/// The flags.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// Exit with 1 where a bar is short.
    pub(crate) check: bool,
    /// Shrink everything: shows that it runs, and nothing else.
    pub(crate) quick: bool,
    /// How many messages pass through under an old transaction.
    pub(crate) messages: Option<u64>,
    /// Only these groups; none means all.
    only: Vec<String>,
}

impl Arguments {
    /// Reads the flags; `groups` are the names that `--only` knows.
    pub(crate) fn parse(words: impl Iterator<Item = String>, groups: &[&str]) -> Result<Self, String> {
        let mut arguments = Self::default();
        let mut words = words;
        while let Some(flag) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{flag} needs a value"));
            match flag.as_str() {
                // Cargo passes this one to every bench.
                "--bench" => {}
                "--check" => arguments.check = true,
                "--quick" => arguments.quick = true,
                "--messages" => {
                    let messages = value()?.parse().ok().filter(|messages| *messages > 0);
                    arguments.messages = Some(messages.ok_or("--messages needs a number")?);
                }
                "--only" => arguments.only.extend(names(&value()?, groups)?),
                unknown => return Err(format!("{NAME} does not know `{unknown}`")),
            }
        }
        Ok(arguments)
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
