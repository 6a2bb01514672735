//! `redrive config default`: the table of keys as a file.

use clap::{Args as _, Command};

use crate::config::{KEYS, Key, Layer};
use crate::serve::ServeArguments;

/// How wide a line of comment is at most.
const WIDTH: usize = 100;

/// A configuration file that says what holds anyway. A key without a default is commented out.
pub(crate) fn text() -> String {
    let flags = ServeArguments::augment_args(Command::new("serve"));
    let flags: Vec<&str> = flags.get_arguments().filter_map(clap::Arg::get_long).collect();
    let keys = KEYS.iter().zip(Layer::defaults().written_values());
    let keys: Vec<String> = keys.map(|(key, default)| paragraph(key, default, &flags)).collect();
    let head = "The configuration of `redrive serve`. Values here win over the defaults, variables of the \
                environment over values here, flags over both.";
    comment(head) + &keys.concat()
}

/// What a key is for, by which names it is set, and what it is.
fn paragraph(key: &Key, default: Option<String>, flags: &[&str]) -> String {
    let flag = Some(key.flag()).filter(|flag| flags.contains(&flag.trim_start_matches('-')));
    let alias = key.alias().map(str::to_owned);
    let names: Vec<String> = [Some(key.variable()), alias, flag].into_iter().flatten().collect();
    let about = comment(&key.about.concat());
    let names = comment(&names.join(", "));
    match (default, key.example) {
        (Some(value), _) => format!("\n{about}{names}{} = {value}\n", key.name),
        (None, example) => format!("\n{about}{names}# {} = {}\n", key.name, example.unwrap_or_default()),
    }
}

/// Lines of comment, broken between words.
fn comment(text: &str) -> String {
    let (mut lines, mut line) = (String::new(), String::from("#"));
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines += &line;
            lines.push('\n');
            "#".clone_into(&mut line);
        }
        line.push(' ');
        line += word;
    }
    lines + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn what_is_printed_says_what_holds_anyway() {
        let (layer, _) = Layer::written(&text()).unwrap();
        assert_eq!(layer, Layer::defaults());
        let of = |layer: Layer| format!("{:?}", Config::of(layer).unwrap());
        assert_eq!(of(layer), of(Layer::default()));
    }

    #[test]
    fn every_key_is_in_it_and_what_is_commented_out_can_be_said() {
        let text = text();
        for key in KEYS {
            assert!(text.contains(&format!("\n# {}", key.variable())), "{}", key.name);
            let line = text
                .lines()
                .find(|line| line.trim_start_matches("# ").starts_with(&format!("{} = ", key.name)));
            let line = line.unwrap_or_else(|| panic!("{} is not in it", key.name)).trim_start_matches("# ");
            Layer::written(line).unwrap();
        }
        assert!(text.contains("# REDRIVE_LEASE_TIMEOUT_MS, ACK_TIMEOUT_SECONDS\nlease_timeout_ms = 30000\n"));
        assert!(text.contains("# REDRIVE_LISTEN, --listen\nlisten = \"127.0.0.1:7400\"\n"));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
    }
}
