//! The failure fingerprint: errors that differ only in numbers, ids, addresses and quoted strings are one
//! group.
//!
//! Fingerprints are stored with dead letters. Changing a rule here splits the groups that exist, so the tests
//! pin some of them.
//!
//! The rules, from left to right over the text, each byte looked at a bounded number of times:
//!
//! * A run of white space and control characters is one space.
//! * `'…'`, `"…"` and `` `…` `` lose their content. An apostrophe inside a word opens nothing, and a quote
//!   that is never closed is kept as it is.
//! * A word of ASCII letters and digits with a digit in it is a value (`42`, `30ms`, `0x7ffe`, `a1b2c3`); so
//!   are eight or more hex digits without one (`deadbeef`), a UUID and an IPv6 address. Values joined by one
//!   of `. , : - _ / +` are one value (`10.0.0.1:5432`, `2024-01-02T03:04:05.678Z`), and so is a number with
//!   its sign. A value becomes `#`, and `##` is `#`, so that `order #7` is `order 7`.
//! * In a word with other letters only the digits are values, since many scripts put no space around numbers.
//!
//! What was normalised once stays as it is: beside a quote, `#` counts as the letter or digit that it
//! replaced.

// What is read here came from outside.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::invalid::Invalid;

/// Stands for a number, an id or an address.
const VALUE: char = '#';
/// Stands for the content of a quoted string.
const QUOTED: char = '…';
/// What may stand between the parts of one value.
const JOINERS: [char; 7] = ['.', ',', ':', '-', '_', '/', '+'];
/// What a sign, or an address that starts with a colon, may follow.
const OPENERS: [char; 9] = [' ', '(', '[', '{', '<', '=', ',', ':', ';'];
/// Both signs for micro: `800µs` must be the same as `2ms`.
const MICRO: [char; 2] = ['\u{b5}', '\u{3bc}'];
/// Hex digits without a decimal one that are an id; shorter ones are words such as `facade`.
const HEX_ID_LEN_MIN: usize = 8;
/// Length of a UUID with its hyphens.
const UUID_LEN: usize = 36;
/// Length of the longest IPv6 address as text.
const IPV6_LEN_MAX: usize = 45;

/// Names a group of failures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The group of an error: the first eight bytes of the SHA-256 of its normal form.
    pub fn of(error: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(normalise(error).as_bytes()).into();
        Self(digest.iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
    }

    /// The fingerprint that a store kept as a number.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The fingerprint as a number, for a store to keep.
    pub const fn to_bits(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refused = || Invalid::unusable("fingerprint", "must be 16 hex digits in lower case");
        let lower_hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 16 || !text.bytes().all(lower_hex) {
            return Err(refused());
        }
        u64::from_str_radix(text, 16).map(Self).map_err(|_| refused())
    }
}

/// The error without what changes from one occurrence to the next: the title of its group.
pub fn normalise(error: &str) -> String {
    scan(error).out
}

fn scan(error: &str) -> Scan<'_> {
    let mut scan = Scan { rest: error, out: String::with_capacity(error.len()), unclosed: Vec::new() };
    while let Some(next) = scan.rest.chars().next() {
        match next {
            c if is_blank(c) => scan.blank(),
            '\'' | '"' | '`' => scan.quote(next),
            c if is_word(c) => scan.word(),
            VALUE => scan.drop_value(1),
            '+' | '-' => scan.sign(),
            ':' => scan.colon(),
            _ => scan.keep(next.len_utf8()),
        }
    }
    scan.out.truncate(scan.out.trim_end().len());
    scan
}

struct Scan<'a> {
    rest: &'a str,
    out: String,
    /// Quotes known to have no closing one ahead; looking again for each would take quadratic time.
    unclosed: Vec<char>,
}

impl Scan<'_> {
    fn blank(&mut self) {
        self.rest = self.rest.trim_start_matches(is_blank);
        if !self.out.is_empty() {
            self.out.push(' ');
        }
    }

    fn quote(&mut self, quote: char) {
        let content = self.rest.get(1..).unwrap_or_default();
        if !self.quote_may_open(quote) {
            return self.keep(1);
        }
        let Some(after) = after_closing(content, quote) else {
            self.unclosed.push(quote);
            return self.keep(1);
        };
        self.rest = after;
        self.out.extend([quote, QUOTED, quote]);
    }

    /// An apostrophe follows a letter, an opening quote does not, except in Python's `b'…'` and `u'…'`.
    fn quote_may_open(&self, quote: char) -> bool {
        let mut before = self.out.chars().rev();
        let (last, last_but_one) = (before.next(), before.next());
        let apostrophe = match last {
            Some('b' | 'u') => last_but_one.is_some_and(is_word_or_value),
            _ => last.is_some_and(is_word_or_value),
        };
        last != Some('\\') && !(quote == '\'' && apostrophe) && !self.unclosed.contains(&quote)
    }

    fn word(&mut self) {
        let (word, rest) = split_word(self.rest);
        let digitless = !word.contains(char::is_numeric);
        match values_len(self.rest) {
            // `#abcdefab` may be what is left of `é7abcdefab`, where it was no value either.
            Some(len) if !(digitless && self.out.ends_with(VALUE)) => self.drop_value(len),
            _ => {
                self.rest = rest;
                for c in word.chars() {
                    if c.is_numeric() {
                        self.push_value();
                    } else {
                        self.out.push(c);
                    }
                }
            }
        }
    }

    fn sign(&mut self) {
        let number = self.rest.get(1..).filter(|after| after.starts_with(|c: char| c.is_ascii_digit()));
        match number.and_then(values_len) {
            Some(len) if self.at_opening() => self.drop_value(len.saturating_add(1)),
            _ => self.keep(1),
        }
    }

    fn colon(&mut self) {
        match values_len(self.rest) {
            Some(len) if self.at_opening() => self.drop_value(len),
            _ => self.keep(1),
        }
    }

    fn at_opening(&self) -> bool {
        self.out.chars().next_back().is_none_or(|last| OPENERS.contains(&last))
    }

    /// Replaces the first `len` bytes.
    fn drop_value(&mut self, len: usize) {
        self.rest = self.rest.get(len..).unwrap_or_default();
        self.push_value();
    }

    fn push_value(&mut self) {
        if !self.out.ends_with(VALUE) {
            self.out.push(VALUE);
        }
    }

    /// Copies the first `len` bytes.
    fn keep(&mut self, len: usize) {
        let (kept, rest) = self.rest.split_at_checked(len).unwrap_or((self.rest, ""));
        self.out.push_str(kept);
        self.rest = rest;
    }
}

/// What follows the closing quote. A `'` inside a word is an apostrophe, a `"` after a backslash is escaped.
fn after_closing(content: &str, quote: char) -> Option<&str> {
    let mut before = quote;
    let mut rest = content.chars();
    while let Some(c) = rest.next() {
        let closes = match quote {
            '\'' => !rest.as_str().starts_with(is_word_or_value),
            '"' => before != '\\',
            _ => true,
        };
        if c == quote && closes {
            return Some(rest.as_str());
        }
        before = c;
    }
    None
}

/// Length of the values at the start of `text` that are joined to one.
fn values_len(text: &str) -> Option<usize> {
    let mut end = value_len(text)?;
    while let Some(joined) = text.get(end..).and_then(|rest| rest.strip_prefix(JOINERS)).and_then(value_len) {
        end = end.saturating_add(1).saturating_add(joined);
    }
    Some(end)
}

/// Length of the one value at the start of `text`.
fn value_len(text: &str) -> Option<usize> {
    uuid_len(text).or_else(|| ipv6_len(text)).or_else(|| id_len(text))
}

fn uuid_len(text: &str) -> Option<usize> {
    let (uuid, rest) = text.split_at_checked(UUID_LEN)?;
    (!rest.starts_with(is_word_or_value) && Uuid::try_parse(uuid).is_ok()).then_some(UUID_LEN)
}

fn ipv6_len(text: &str) -> Option<usize> {
    let of_address = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
    let len = text.bytes().take(IPV6_LEN_MAX).take_while(of_address).count();
    let (address, _) = text.split_at_checked(len)?;
    let address = address.trim_end_matches([':', '.']);
    let followed_by_word = text.get(address.len()..)?.starts_with(is_word);
    let has_digit = address.contains(|c: char| c.is_ascii_digit());
    (!followed_by_word && has_digit && address.parse::<Ipv6Addr>().is_ok()).then_some(address.len())
}

fn id_len(text: &str) -> Option<usize> {
    let (word, rest) = split_word(text);
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    let all_hex = word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let long_hex = all_hex && word.len() >= HEX_ID_LEN_MIN && !rest.starts_with(VALUE);
    let plain = word.chars().all(|c| c.is_ascii() || MICRO.contains(&c));
    (plain && (has_digit || long_hex)).then_some(word.len())
}

fn split_word(text: &str) -> (&str, &str) {
    let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric()
}

fn is_word_or_value(c: char) -> bool {
    is_word(c) || c == VALUE
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Two occurrences of one problem.
    const SAME: &[(&str, &str)] = &[
        ("request timed out after 5000ms", "request timed out after 12031ms"),
        ("request timed out after 5000 ms", "request timed out after 30 ms"),
        ("took 1.5s, limit 1s", "took 800µs, limit 1s"),
        ("connect ECONNREFUSED 127.0.0.1:5432", "connect ECONNREFUSED 10.1.22.3:6432"),
        ("connect ECONNREFUSED ::1:5432", "connect ECONNREFUSED 2001:db8:85a3::8a2e:370:7334"),
        (
            "read tcp [fe80::1]:53412->[fe80::dead]:443: i/o timeout",
            "read tcp [::1]:1->[::2]:80: i/o timeout",
        ),
        (
            "dial tcp 10.0.0.1:6379: connect: connection refused",
            "dial tcp 10.9.8.7:80: connect: connection refused",
        ),
        (
            "ERROR: duplicate key value violates unique constraint \"users_email_key\" (SQLSTATE 23505)",
            "ERROR: duplicate key value violates unique constraint \"orders_pkey\" (SQLSTATE 23505)",
        ),
        ("Key (id)=(42) already exists.", "Key (id)=(8112) already exists."),
        ("Duplicate entry '42' for key 'PRIMARY'", "Duplicate entry '43-a' for key 'email'"),
        ("ORA-00942: table or view does not exist", "ORA-01234: table or view does not exist"),
        ("Unknown column `price` in `field list`", "Unknown column `cost` in `where clause`"),
        (
            "order 550e8400-e29b-41d4-a716-446655440000 not found",
            "order abcdefab-abcd-abcd-abcd-abcdefabcdef not found",
        ),
        ("object 507f1f77bcf86cd799439011 is gone", "object deadbeefcafe is gone"),
        ("order #17 not found", "order 18 not found"),
        ("Order#17 not found", "Order#18 not found"),
        ("no such customer: cus_9s8Fj3Kd", "no such customer: cus_NffrFeUfNV2Hib"),
        (
            "java.lang.NullPointerException: Cannot invoke \"String.length()\" because \"<local1>\" is null",
            "java.lang.NullPointerException: Cannot invoke \"List.size()\" because \"<local4>\" is null",
        ),
        ("at com.acme.Orders.load(Orders.java:117)", "at com.acme.Orders.load(Orders.java:121)"),
        ("no handler for com.acme.Order@6d06d69c", "no handler for com.acme.Order@7852e922"),
        ("[pool-1-thread-7] rejected", "[pool-2-thread-12] rejected"),
        ("KeyError: 'customer_id'", "KeyError: 'total'"),
        ("TypeError: can't parse b'\\x00\\x01'", "TypeError: can't parse b'abc'"),
        ("File \"/app/jobs.py\", line 42, in run", "File \"/app/other.py\", line 7, in run"),
        (
            "panic: runtime error: index out of range [5] with length 3",
            "panic: runtime error: index out of range [12] with length 12",
        ),
        ("goroutine 17 [running]: main.f(0xc000012345)", "goroutine 3 [running]: main.f(0xdeadbeef)"),
        (
            "TypeError: Cannot read properties of undefined (reading 'id')",
            "TypeError: Cannot read properties of undefined (reading 'name')",
        ),
        ("Request failed with status code 502", "Request failed with status code 503"),
        ("at 2024-01-02T03:04:05.678Z: deadlock", "at 2025-11-30T23:59:59Z: deadlock"),
        ("GET /users/12/orders/99 failed", "GET /users/7/orders/1000 failed"),
        ("balance is -12.50", "balance is 1,204.00"),
        ("offset=-1 out of range", "offset=99 out of range"),
        ("line one\n\tline two", "line one line two"),
        ("  padded  ", "padded"),
        ("连接超时5000毫秒", "连接超时30毫秒"),
        ("the user's cart 'a' isn't valid", "the user's cart 'it's' isn't valid"),
        ("bad JSON: {\"id\": \"a \\\"b\\\" c\"}", "bad JSON: {\"id\": \"x\"}"),
    ];

    /// Two problems.
    const DIFFERENT: &[(&str, &str)] = &[
        ("connection refused", "connection reset"),
        ("connect ECONNREFUSED 10.0.0.1:80", "connect ETIMEDOUT 10.0.0.1:80"),
        ("Order#17 not found", "User#17 not found"),
        ("order 5 not found", "order 5 not paid"),
        ("java.lang.NullPointerException", "java.lang.IllegalStateException"),
        ("KeyError: 'id'", "ValueError: 'id'"),
        ("timeout", "Timeout"),
        ("can't open", "can't close"),
        ("'unclosed first", "'unclosed second"),
        ("no facade", "no decade"),
        ("cus_123 missing", "sub_123 missing"),
        ("at Orders.load(Orders.java:117)", "at Orders.save(Orders.java:117)"),
        ("连接超时5000毫秒", "连接被拒5000毫秒"),
        ("std::bad_alloc", "std::bad_cast"),
    ];

    #[test]
    fn occurrences_of_one_problem_share_a_group() {
        for (a, b) in SAME {
            assert_eq!(normalise(a), normalise(b));
            assert_eq!(Fingerprint::of(a), Fingerprint::of(b));
        }
    }

    #[test]
    fn different_problems_have_different_groups() {
        for (a, b) in DIFFERENT {
            assert_ne!(Fingerprint::of(a), Fingerprint::of(b), "{a} and {b}");
        }
    }

    #[test]
    fn a_title_stays_readable() {
        let cases = [
            ("", ""),
            ("dial tcp 10.0.0.1:6379: i/o timeout", "dial tcp #: i/o timeout"),
            ("Key (id)=(42) already exists.", "Key (id)=(#) already exists."),
            ("Unknown column 'price' in \"field list\"", "Unknown column '…' in \"…\""),
            ("can't find user 'bob's' cart", "can't find user '…' cart"),
            ("rock 'n roll isn't dead", "rock 'n roll isn't dead"),
            ("a \"quote that never ends 5", "a \"quote that never ends #"),
            ("empty ''", "empty '…'"),
            ("order_2024_01_05 in us-east-1:42", "order_# in us-east-#"),
            ("retry 3/5 in -2.5e-3 s (50%)", "retry # in # s (#%)"),
            ("Größe5 zu groß", "Größe# zu groß"),
            ("C# and F# at 5", "C# and F# at #"),
            ("fe80:: is no host, fe80::1%eth0 is", "#:: is no host, #%# is"),
            ("\u{1b}[31mred\u{1b}[0m\u{0}", "[# [#"),
        ];
        for (error, title) in cases {
            assert_eq!(normalise(error), title, "{error:?}");
        }
    }

    #[test]
    fn fingerprints_are_pinned_because_they_are_stored() {
        let cases = [
            ("", "e3b0c44298fc1c14"),
            ("connect ECONNREFUSED 127.0.0.1:5432", "e39922879ee690c2"),
            ("KeyError: 'customer_id'", "b0dd21cffb4a3f73"),
            ("order 550e8400-e29b-41d4-a716-446655440000 not found after 30ms", "e81904536b91205d"),
            ("连接超时5000毫秒", "24cd25d846bc537a"),
        ];
        for (error, pinned) in cases {
            assert_eq!(Fingerprint::of(error).to_string(), pinned, "{error}");
        }
    }

    #[test]
    fn only_sixteen_lower_hex_digits_are_a_fingerprint() {
        for text in [
            "",
            "0",
            "+00000000000000f",
            "00000000000000FF",
            "00000000000000fg",
            "00000000000000ff0",
            "éééééééé",
        ] {
            let refused = text.parse::<Fingerprint>().unwrap_err();
            assert_eq!(refused.to_string(), "fingerprint: must be 16 hex digits in lower case");
        }
    }

    /// The search for a closing quote is the only look ahead without a bound: one per kind may fail.
    #[test]
    fn hostile_text_is_read_in_linear_time() {
        for part in [
            " 'a",
            "'a",
            "\"\\",
            "a:",
            "1:",
            ":",
            "1-",
            "-1",
            "x-1",
            "`",
            "'",
            "\\\"",
            "deadbeef-",
            "é1",
            "#",
            "a'",
        ] {
            let text = part.repeat(100_000 / part.len());
            let scanned = scan(&text);
            assert!(scanned.unclosed.len() <= 3, "{part:?} was searched to the end again and again");
            assert!(scanned.out.len() <= 3 * text.len());
        }
    }

    /// Everything the rules look at, and little else, so that they meet each other often.
    fn hostile() -> impl Strategy<Value = String> {
        let parts = vec![
            "'",
            "\"",
            "`",
            "\\",
            " ",
            "\n",
            "#",
            "-",
            "+",
            ":",
            "::",
            ".",
            ",",
            "_",
            "/",
            "[",
            "]",
            "(",
            "=",
            "0",
            "7",
            "12",
            "a",
            "b",
            "u",
            "s",
            "z",
            "é",
            "µ",
            "٣",
            "…",
            "deadbeef",
            "fe80::1",
            "::1",
            "10.0.0.1",
            "\u{0}",
            "abcdefab-abcd-abcd-abcd-abcdefabcdef",
        ];
        prop::collection::vec(prop::sample::select(parts), 0..24).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn a_title_is_its_own_title(text in hostile()) {
            let once = normalise(&text);
            prop_assert_eq!(normalise(&once), once.clone(), "from {:?}", text);
            prop_assert!(!once.contains(char::is_numeric));
            prop_assert!(once.len() <= 3 * text.len());
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_title_of_its_own_length_at_most_tripled(text: String) {
            let once = normalise(&text);
            prop_assert!(once.len() <= 3 * text.len());
            prop_assert_eq!(normalise(&once), once);
        }

        #[test]
        fn other_numbers_are_the_same_problem(
            words in prop::collection::vec("[a-z]{1,7}[:=(]?", 1..8),
            a in prop::collection::vec(any::<i64>(), 8),
            b in prop::collection::vec(any::<f64>().prop_filter("a number", |f| f.is_finite()), 8),
        ) {
            let ours: Vec<String> = words.iter().zip(a).map(|(word, n)| format!("{word} {n}")).collect();
            let theirs: Vec<String> = words.iter().zip(b).map(|(word, n)| format!("{word} {n}")).collect();
            prop_assert_eq!(Fingerprint::of(&ours.join(" ")), Fingerprint::of(&theirs.join(" ")));
        }

        #[test]
        fn other_quoted_strings_are_the_same_problem(a in "[^\"\\\\]{0,20}", b in "[^\"\\\\]{0,20}") {
            let error = |quoted: &str| format!("no column \"{quoted}\" here");
            prop_assert_eq!(normalise(&error(&a)), normalise(&error(&b)));
        }

        #[test]
        fn other_ids_are_the_same_problem(a: u128, b: u128) {
            let error = |id: u128| format!("message {} is gone", Uuid::from_u128(id));
            prop_assert_eq!(normalise(&error(a)), "message # is gone");
            prop_assert_eq!(Fingerprint::of(&error(a)), Fingerprint::of(&error(b)));
        }

        #[test]
        fn other_addresses_are_the_same_problem(a: [u16; 8], b: [u8; 4], port: u16) {
            let digits = a.iter().any(|group| format!("{group:x}").contains(|c: char| c.is_ascii_digit()));
            prop_assume!(digits && a[7] != 0);
            let six = Ipv6Addr::from(a);
            prop_assert_eq!(normalise(&format!("no route to [{six}]:{port}")), "no route to [#]:#");
            let four = std::net::Ipv4Addr::from(b);
            prop_assert_eq!(normalise(&format!("no route to {four}:{port}")), "no route to #");
        }

        #[test]
        fn a_fingerprint_survives_its_text(bits: u64) {
            let fingerprint = Fingerprint::from_bits(bits);
            prop_assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
            prop_assert_eq!(fingerprint.to_bits(), bits);
        }

        #[test]
        fn no_text_panics_the_parser(text: String) {
            let parsed = text.parse::<Fingerprint>();
            prop_assert!(parsed.is_ok() || parsed.unwrap_err().field == "fingerprint");
        }
    }
}
