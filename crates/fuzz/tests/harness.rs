//! That the search can find something: bugs that were planted where chance alone would not meet them.

use std::time::Duration;

use redrive_fuzz::Target;
use redrive_fuzz::search::{Failure, replay, search};
use redrive_fuzz::trial::note;

/// Far more than any of these takes, which is some hundredths of a second.
const PATIENCE: Duration = Duration::from_mins(1);
const SEED: u64 = 7;

/// A length, a colon, and so many bytes: `3:abc`. Two of them, and the second must not be the magic word.
fn nested(input: &[u8]) {
    let Some((_, rest)) = chunk(input) else { return note("no first chunk") };
    let Some((second, rest)) = chunk(rest) else { return note("no second chunk") };
    if rest.is_empty() {
        assert_ne!(second, b"RDR!", "the planted bug");
    }
}

fn chunk(input: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = input.iter().position(|byte| *byte == b':')?;
    let length = std::str::from_utf8(&input[..colon]).ok()?.parse().ok()?;
    input[colon + 1..].split_at_checked(length)
}

fn found(target: &Target, corpus: &[&[u8]]) -> Failure {
    let corpus: Vec<Vec<u8>> = corpus.iter().map(|input| input.to_vec()).collect();
    assert!(replay(target, &corpus).is_ok());
    search(target, &corpus, SEED, PATIENCE).expect_err("the planted bug is found")
}

/// It knows the word, as every target knows those of its format; where it belongs the search finds out.
const NESTED: Target = Target::new("nested", nested).knowing(&["RDR!"]);

#[test]
fn a_magic_word_behind_a_valid_beginning_is_found_and_made_small() {
    let failure =
        found(&NESTED, &[b"3:abc4:work", b"1:x40:a chunk that is longer than it needs to be!!!!!!"]);
    assert!(failure.reason.contains("the planted bug"), "{}", failure.reason);
    assert!(failure.input.ends_with(b"4:RDR!") && failure.input.len() <= 12, "{:?}", failure.input);
    assert_eq!(failure.seed, Some(SEED));
}

/// Says at every letter how far it came, as parsers do that name what they miss.
fn talkative(input: &[u8]) {
    let right = input.iter().zip(b"magic!").take_while(|(byte, wanted)| byte == wanted).count();
    note(["m", "ma", "mag", "magi", "magic", "magic!", "all"][right]);
    assert!(right < 6, "the planted bug");
}

#[test]
fn what_a_parser_says_leads_the_search_letter_by_letter() {
    assert_eq!(found(&Target::new("talkative", talkative), &[b""]).input, b"magic!");
}

/// Believes a length of its input before it looks whether there is as much.
fn credulous(input: &[u8]) {
    if let Some((length, rest)) = input.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes(*length));
        let mut bytes = Vec::with_capacity(length * 16);
        bytes.extend_from_slice(&rest[..rest.len().min(length)]);
        assert!(bytes.len() <= rest.len());
    }
}

#[test]
fn memory_that_the_input_does_not_pay_for_is_found() {
    let failure = found(&Target::new("credulous", credulous), &[&[4, 0, 1, 2, 3, 4]]);
    assert!(failure.reason.contains("allocated"), "{}", failure.reason);
    assert_eq!(failure.input.len(), 2, "{:?}", failure.input);
}

#[test]
fn the_same_seed_finds_the_same() {
    let (once, again) = (found(&NESTED, &[b"3:abc4:work"]), found(&NESTED, &[b"3:abc4:work"]));
    assert_eq!((once.input, once.reason), (again.input, again.reason));
}

#[test]
fn an_input_of_the_corpus_that_fails_is_told() {
    let failed = replay(&NESTED, &[b"0:4:RDR!".to_vec()]).unwrap_err();
    assert_eq!(failed.seed, None);
}
