//! A Rust file, split into its code and its comments.
//!
//! The checks look for words such as `async`, and a word in a comment or in a string is not a use of it. That also
//! lets the checks name what they look for in plain strings without finding themselves.

use std::ops::RangeInclusive;

/// Both views have the lines of the file; what belongs to neither (strings, characters) is blank in both.
pub(super) struct RustSource {
    pub(super) code: String,
    pub(super) comments: String,
}

/// A word or a sign of the code. A raw identifier (`r#move`) is the word without its mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) line: usize,
    pub(super) text: &'a str,
}

/// A path, such as `std::fs`, with the groups of `use` declarations resolved.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CodePath<'a> {
    pub(super) line: usize,
    pub(super) segments: Vec<&'a str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece {
    Code,
    Comment,
    Literal,
}

impl RustSource {
    pub(super) fn parse(text: &str) -> Self {
        let mut source = Self { code: String::new(), comments: String::new() };
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, length) = next_piece(rest);
            let (taken, tail) = rest.split_at(length);
            push(&mut source.code, taken, piece == Piece::Code);
            push(&mut source.comments, taken, piece == Piece::Comment);
            rest = tail;
        }
        source
    }

    pub(super) fn tokens(&self) -> Vec<Token<'_>> {
        self.code.lines().zip(1..).flat_map(|(text, line)| line_tokens(text, line)).collect()
    }
}

/// Every path in the code, and every beginning of it: `std::fs::File` gives `std`, `std::fs` and `std::fs::File`, so
/// that a search only has to compare the ends.
pub(super) fn paths<'a>(tokens: &[Token<'a>]) -> Vec<CodePath<'a>> {
    let mut found = Vec::new();
    // What each open brace continues: the path before it in a `use` group, nothing in a block.
    let mut open: Vec<Vec<&str>> = Vec::new();
    let mut current: Vec<&str> = Vec::new();
    let mut continues = false;
    for token in tokens {
        match token.text {
            "::" => continues = true,
            "{" => {
                let prefix = if continues { current.clone() } else { Vec::new() };
                current.clone_from(&prefix);
                open.push(prefix);
                continues = true;
            }
            "," => {
                current = open.last().cloned().unwrap_or_default();
                continues = true;
            }
            "}" => {
                open.pop();
                continues = false;
            }
            word if word.starts_with(is_word) => {
                if !continues {
                    current.clear();
                }
                current.push(word);
                found.push(CodePath { line: token.line, segments: current.clone() });
                continues = false;
            }
            _ => {
                current.clear();
                continues = false;
            }
        }
    }
    found
}

/// The lines of the items under `#[cfg(test)]`.
pub(super) fn test_lines(tokens: &[Token<'_>]) -> Vec<RangeInclusive<usize>> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let texts: Vec<&str> = tokens.iter().map(|token| token.text).collect();
    let starts = (0..tokens.len()).filter(|&at| texts[at..].starts_with(&MARK));
    starts.map(|at| tokens[at].line..=item_end(&tokens[at + MARK.len()..])).collect()
}

/// The line where an item ends: at its semicolon, or where its first brace is closed.
fn item_end(tokens: &[Token<'_>]) -> usize {
    let mut depth = 0_usize;
    for token in tokens {
        match token.text {
            ";" if depth == 0 => return token.line,
            "}" if depth <= 1 => return token.line,
            "}" => depth -= 1,
            "{" => depth += 1,
            _ => {}
        }
    }
    tokens.last().map_or(1, |token| token.line)
}

fn line_tokens(text: &str, line: usize) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        rest = rest.strip_prefix("r#").unwrap_or(rest);
        let length = if rest.starts_with(is_word) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (token, tail) = rest.split_at(length);
        tokens.push(Token { line, text: token });
        rest = tail.trim_start();
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Adds the text to a view, or as many blanks; the ends of lines stay, so that both views have the file's lines.
fn push(view: &mut String, text: &str, shown: bool) {
    if shown {
        view.push_str(text);
    } else {
        view.extend(text.chars().map(|c| if c == '\n' { c } else { ' ' }));
    }
}

/// The kind and the length of what comes first. Code comes one character at a time, except for words: a quote inside
/// one would be taken for the beginning of a string.
fn next_piece(rest: &str) -> (Piece, usize) {
    if rest.starts_with("//") {
        (Piece::Comment, rest.find('\n').unwrap_or(rest.len()))
    } else if rest.starts_with("/*") {
        (Piece::Comment, block_comment_length(rest))
    } else if let Some(length) = literal_length(rest) {
        (Piece::Literal, length)
    } else if rest.starts_with(is_word) {
        (Piece::Code, rest.find(|c| !is_word(c)).unwrap_or(rest.len()))
    } else {
        (Piece::Code, rest.chars().next().map_or(0, char::len_utf8))
    }
}

/// Block comments nest.
fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest[at..];
        let (deeper, shallower) = (here.starts_with("/*"), here.starts_with("*/"));
        depth = depth + usize::from(deeper) - usize::from(shallower);
        at += if deeper || shallower { 2 } else { here.chars().next().map_or(1, char::len_utf8) };
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn literal_length(rest: &str) -> Option<usize> {
    let unmarked = rest.strip_prefix(['b', 'c']).unwrap_or(rest);
    let mark = rest.len() - unmarked.len();
    let length = match unmarked.chars().next()? {
        'r' => raw_string_length(unmarked)?,
        '"' => quoted_length(unmarked, '"'),
        '\'' => character_length(unmarked)?,
        _ => return None,
    };
    Some(mark + length)
}

/// `None` for a raw identifier, or a word that only begins with an r.
fn raw_string_length(rest: &str) -> Option<usize> {
    let hashes = rest[1..].find(|c| c != '#')?;
    let body = 1 + hashes + 1;
    if !rest[1 + hashes..].starts_with('"') {
        return None;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    Some(rest[body..].find(&close).map_or(rest.len(), |end| body + end + close.len()))
}

/// `None` for a lifetime, which begins like a character but is not closed.
fn character_length(rest: &str) -> Option<usize> {
    let mut characters = rest.chars().skip(1);
    let first = characters.next()?;
    let is_character = first == '\\' || characters.next() == Some('\'');
    is_character.then(|| quoted_length(rest, '\''))
}

fn quoted_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        let source = RustSource::parse(text);
        source.code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn has_path(text: &str, wanted: &[&str]) -> bool {
        let source = RustSource::parse(text);
        paths(&source.tokens()).iter().any(|path| path.segments.ends_with(wanted))
    }

    #[test]
    fn comments_are_not_code() {
        assert_eq!(code("a // b\nc /* d /* e */ f */ g"), "a c g");
        assert_eq!(code("//! a\n/// b\nc"), "c");
    }

    #[test]
    fn strings_are_not_code() {
        assert_eq!(code(r##"a "b \" // c" d r#"e " f"# g br"h" i b"j" k"##), "a d g i k");
        assert_eq!(code("a \"b\nc\" d"), "a d");
    }

    #[test]
    fn characters_are_told_from_lifetimes() {
        assert_eq!(code(r#"'"' a '\'' b<'c> &'d str, '\u{7f}' e b'"' f"#), "a b<'c> &'d str, e f");
    }

    #[test]
    fn a_word_that_ends_like_a_mark_is_code() {
        assert_eq!(code("var r#move br b c"), "var r#move br b c");
    }

    #[test]
    fn comments_keep_their_lines() {
        let source = RustSource::parse("a\n\"//\n\" // here\n");
        assert_eq!(source.comments.lines().nth(2).map(str::trim), Some("// here"));
    }

    #[test]
    fn paths_are_found_in_groups() {
        let source =
            "use std::{\n    collections::{BTreeMap, BTreeSet},\n    fs,\n};\nfn f() { std::env::args(); }";
        assert!(has_path(source, &["std", "fs"]));
        assert!(has_path(source, &["std", "collections", "BTreeSet"]));
        assert!(has_path(source, &["std", "env"]));
        assert!(!has_path(source, &["collections", "fs"]));
        assert!(!has_path("use std::{io};\nuse crate::fs;", &["std", "fs"]));
        assert!(!has_path("use std::io;\nlet a = [b, fs];", &["std", "fs"]));
        assert!(!has_path("fn f(a: std::io::Result<A>, fs: B) {}", &["std", "fs"]));
    }

    #[test]
    fn only_whole_words_are_words() {
        assert!(has_path("let a = Instant::now();", &["Instant"]));
        assert!(!has_path("let a = Instantly;", &["Instant"]));
    }

    #[test]
    fn test_code_is_the_item_under_its_mark() {
        let text =
            "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n#[cfg(test)]\nmod d;\n";
        let source = RustSource::parse(text);
        assert_eq!(test_lines(&source.tokens()), [2..=6, 8..=9]);
    }
}
