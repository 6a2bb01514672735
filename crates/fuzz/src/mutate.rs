//! Inputs made of other inputs.

use redrive_core::dice::Dice;

/// The longest input that is made; longer ones are only replayed.
const LENGTH_MAX: usize = 8 * 1024;
/// How many changes make a new input, at most.
const CHANGES_MAX: u64 = 6;

/// Bytes at which parsers change their mind.
const BYTES: [u8; 16] =
    [0, 1, 0x7F, 0x80, 0xFF, b' ', b'\n', b'"', b'\\', b'-', b'.', b'/', b'0', b'9', b'{', b'%'];
/// Numbers at which they do, as text.
const NUMBERS: [&str; 12] = [
    "0",
    "-1",
    "1e9",
    "0.5",
    "255",
    "65536",
    "4294967295",
    "4294967296",
    "253402300799999",
    "9223372036854775808",
    "18446744073709551615",
    "1e400",
];
/// And as little-endian bytes, of which the first one, two, four or eight are taken.
const WORDS: [u64; 6] = [0, 1, 0x7FFF_FFFF_FFFF_FFFF, u64::MAX, 0x0000_0001_0000_0000, 0x8000_0000];

/// Makes inputs; the same dice make the same ones.
#[derive(Debug)]
pub struct Mutator {
    dice: Dice,
    words: &'static [&'static str],
}

impl Mutator {
    /// A maker of inputs that knows these words.
    pub const fn new(dice: Dice, words: &'static [&'static str]) -> Self {
        Self { dice, words }
    }

    /// A number below `end`, or 0 where there is none.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.dice.between(0, (end as u64).saturating_sub(1))).unwrap_or_default()
    }

    /// A new input from `parent`, with parts of `other`.
    pub fn change(&mut self, parent: &[u8], other: &[u8]) -> Vec<u8> {
        let mut input = parent.to_vec();
        for _ in 0..self.dice.between(1, CHANGES_MAX) {
            self.change_once(&mut input, other);
        }
        input.truncate(LENGTH_MAX);
        input
    }

    fn change_once(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        match self.below(12) {
            0 => self.flip(input),
            1 => self.set(input),
            2 => self.remove(input),
            3 => self.repeat(input),
            4 | 5 => self.put_word(input),
            6 => self.put_number(input),
            7 => self.put_bytes(input),
            8 => self.splice(input, other),
            9 => self.put_random(input),
            10 => self.swap(input),
            _ => self.cut(input),
        }
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length);
        // Mostly short: a long range leaves little of what was right.
        let longest = if self.below(4) == 0 { length - start } else { (length - start).min(16) };
        start..start + self.below(longest + 1)
    }

    fn flip(&mut self, input: &mut [u8]) {
        let at = self.below(input.len());
        let bit = self.below(8);
        if let Some(byte) = input.get_mut(at) {
            *byte ^= 1 << bit;
        }
    }

    fn set(&mut self, input: &mut [u8]) {
        let at = self.below(input.len());
        let value = BYTES[self.below(BYTES.len())];
        if let Some(byte) = input.get_mut(at) {
            *byte = value;
        }
    }

    fn remove(&mut self, input: &mut Vec<u8>) {
        let range = self.range(input.len());
        input.drain(range);
    }

    fn repeat(&mut self, input: &mut Vec<u8>) {
        let range = self.range(input.len());
        let times = if self.below(16) == 0 { 100 } else { 1 + self.below(3) };
        let part = input[range.clone()].repeat(times);
        input.splice(range.end..range.end, part.into_iter().take(LENGTH_MAX));
    }

    fn put_word(&mut self, input: &mut Vec<u8>) {
        if self.words.is_empty() {
            return self.put_number(input);
        }
        let word = self.words[self.below(self.words.len())];
        self.put(input, word.as_bytes());
    }

    /// Half of the time in the place of a number that is there.
    fn put_number(&mut self, input: &mut Vec<u8>) {
        let number = NUMBERS[self.below(NUMBERS.len())].as_bytes();
        let from = self.below(input.len());
        let digits = input.iter().skip(from).position(u8::is_ascii_digit).filter(|_| self.below(2) == 0);
        match digits {
            None => self.put(input, number),
            Some(ahead) => {
                let start = from + ahead;
                let length = input.iter().skip(start).take_while(|byte| byte.is_ascii_digit()).count();
                input.splice(start..start + length, number.iter().copied());
            }
        }
    }

    fn put_bytes(&mut self, input: &mut Vec<u8>) {
        let word = WORDS[self.below(WORDS.len())].to_le_bytes();
        let width = 1 << self.below(4);
        self.put(input, &word[..width]);
    }

    fn put_random(&mut self, input: &mut Vec<u8>) {
        let bytes = self.dice.roll().to_le_bytes();
        let width = 1 + self.below(8);
        self.put(input, &bytes[..width]);
    }

    /// Puts some bytes between others, or over them.
    fn put(&mut self, input: &mut Vec<u8>, bytes: &[u8]) {
        let start = self.below(input.len() + 1);
        let over = if self.below(2) == 0 { 0 } else { bytes.len().min(input.len() - start) };
        input.splice(start..start + over, bytes.iter().copied());
    }

    fn splice(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        let part = other[self.range(other.len())].to_vec();
        self.put(input, &part);
    }

    fn swap(&mut self, input: &mut [u8]) {
        let (one, other) = (self.below(input.len()), self.below(input.len()));
        if !input.is_empty() {
            input.swap(one, other);
        }
    }

    fn cut(&mut self, input: &mut Vec<u8>) {
        let length = self.below(input.len() + 1);
        if self.below(2) == 0 {
            input.truncate(length);
        } else {
            input.drain(..length);
        }
    }
}
