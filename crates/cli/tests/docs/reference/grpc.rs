//! `docs/reference/grpc.md`, from the `.proto` file and the comments in it.

use std::path::Path;

use super::add;

const PROTO: &str = "crates/wire/proto/redrive/v1/redrive.proto";

const INTRODUCTION: &str = "\
# gRPC

Made from [`redrive.proto`](../../crates/wire/proto/redrive/v1/redrive.proto) by a test; do not edit. `REDRIVE_BLESS=1` writes it.

The service is `redrive.v1.Redrive`, on the port of the HTTP API, with health (`grpc.health.v1`) and reflection. A key goes into the
metadata as `authorization: Bearer KEY`.
";

/// What a block of the file describes.
struct Block {
    kind: &'static str,
    name: String,
    about: String,
    /// Name, kind and comment.
    entries: Vec<[String; 3]>,
}

pub(crate) fn make(root: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(root.join(PROTO)).map_err(|error| format!("{PROTO}: {error}"))?;
    let mut page = INTRODUCTION.to_owned();
    let about =
        text.lines().take_while(|line| line.starts_with("//")).map(comment).collect::<Vec<_>>().join("\n");
    add(&mut page, &format!("\n{about}\n"));
    let blocks = blocks(&text)?;
    for block in &blocks {
        let title = if block.kind == "service" { "##" } else { "###" };
        if block.kind != "service" && !page.contains("\n## Messages\n") {
            page.push_str("\n## Messages\n");
        }
        add(
            &mut page,
            &format!("\n{title} {}\n\n", if block.kind == "service" { "Calls" } else { &block.name }),
        );
        if !block.about.is_empty() {
            add(&mut page, &format!("{}\n\n", block.about));
        }
        if block.entries.is_empty() {
            page.push_str("Has no fields.\n");
            continue;
        }
        page.push_str("| | | |\n|---|---|---|\n");
        for [name, kind, about] in &block.entries {
            add(
                &mut page,
                &format!("| `{name}` | {} | {} |\n", linked(kind, &blocks), about.replace('|', "\\|")),
            );
        }
    }
    Ok(page)
}

fn comment(line: &str) -> &str {
    line.trim().trim_start_matches('/').trim()
}

fn blocks(text: &str) -> Result<Vec<Block>, String> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut about: Vec<&str> = Vec::new();
    let mut inside = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let code = line.split("//").next().unwrap_or_default().trim();
        let words: Vec<&str> = code.trim_end_matches(['{', '}', ' ']).split_whitespace().collect();
        match (code, words.as_slice()) {
            ("", _) if line.trim().is_empty() => about.clear(),
            ("", _) => about.push(comment(line)),
            (_, [word @ ("service" | "message" | "enum" | "oneof"), name]) => {
                let kind = match *word {
                    "service" => "service",
                    "enum" => "enum",
                    "oneof" => "oneof",
                    _ => "message",
                };
                if kind != "oneof" && code.contains('{') {
                    let about = about.join(" ");
                    blocks.push(Block { kind, name: (*name).to_owned(), about, entries: Vec::new() });
                }
                if !code.ends_with('}') {
                    inside.push(kind);
                }
                about.clear();
            }
            ("}", _) => {
                inside.pop();
                about.clear();
            }
            (_, ["syntax" | "package" | "option" | "import" | "reserved", ..]) => about.clear(),
            (entry, _) => {
                let block = blocks.last_mut().filter(|_| !inside.is_empty());
                let block = block.ok_or_else(|| format!("{PROTO}:{number}: `{entry}` is in nothing"))?;
                block.entries.push(described(entry, &about.join(" ")));
                about.clear();
            }
        }
    }
    Ok(blocks)
}

/// An rpc, a field, or a word of an enumeration.
fn described(entry: &str, about: &str) -> [String; 3] {
    let entry = entry.trim_end_matches(';');
    if let Some(call) = entry.strip_prefix("rpc ") {
        let (name, kinds) = call.split_once('(').unwrap_or((call, ""));
        let kinds = kinds.replace(") returns (", " → ").replace(')', "");
        return [name.to_owned(), kinds, about.to_owned()];
    }
    let declared = entry.rsplit_once(" = ").map_or(entry, |(declared, _)| declared);
    let (kind, name) = declared.rsplit_once(' ').unwrap_or(("", declared));
    [name.to_owned(), kind.to_owned(), about.to_owned()]
}

/// The kind with links to the messages of the file.
fn linked(kind: &str, blocks: &[Block]) -> String {
    let linked = |word: &str| match blocks.iter().find(|block| block.name == word) {
        Some(_) => format!("[{word}](#{})", word.to_lowercase()),
        None => word.to_owned(),
    };
    kind.split(' ').map(linked).collect::<Vec<_>>().join(" ").replace("map<", "map of ").replace('>', "")
}
