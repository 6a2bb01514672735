//! The context of a trace, as W3C Trace Context writes it.

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};

use redrive_core::message::Headers;

/// Whether the spans of the trace are recorded.
const SAMPLED: u8 = 1;
/// The flags that have a meaning; the others are not passed on.
const FLAGS: u8 = 0b11;
/// The bits of a trace id that must be random, and by which traces are sampled.
const RANDOM_BITS: u32 = 56;

/// Which span of which trace something is done for: the value of a `traceparent` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    trace: NonZeroU128,
    span: NonZeroU64,
    flags: u8,
}

impl TraceParent {
    /// The name of the header, of messages and of requests alike.
    pub const HEADER: &'static str = "traceparent";
    /// The header beside it, in which tracing systems keep what is their own. It travels as any other.
    pub(crate) const STATE_HEADER: &'static str = "tracestate";
    /// The length of the value.
    pub(crate) const LENGTH: usize = 55;

    /// Reads the value of a header. What is not one is no error: whoever sent it is not traced, and that is all.
    pub fn parse(text: &str) -> Option<Self> {
        let (known, more) = (text.get(..Self::LENGTH)?, text.get(Self::LENGTH..)?);
        let mut parts = known.split('-');
        let mut part = |digits| hex(parts.next()?, digits);
        let (version, trace, span, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        let wrong_end = match version {
            0 => !more.is_empty(),
            0xff => true,
            // A later version begins as this one does, and may go on.
            _ => !more.is_empty() && !more.starts_with('-'),
        };
        if wrong_end {
            return None;
        }
        Some(Self {
            trace: NonZeroU128::new(trace)?,
            span: NonZeroU64::new(u64::try_from(span).ok()?)?,
            flags: u8::try_from(flags).ok()? & FLAGS,
        })
    }

    /// What a message carries.
    pub(crate) fn of(headers: &Headers) -> Option<Self> {
        headers.get(Self::HEADER).and_then(Self::parse)
    }

    /// The trace.
    pub const fn trace_id(self) -> NonZeroU128 {
        self.trace
    }

    /// The span.
    pub const fn span_id(self) -> NonZeroU64 {
        self.span
    }

    /// Whether the spans of the trace are recorded.
    pub const fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// Another span of the same trace.
    pub(crate) const fn child(self, span: NonZeroU64) -> Self {
        Self { span, ..self }
    }
}

/// Lower-case digits, exactly so many.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let right = text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    right.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, self.flags)
    }
}

/// How many of the traces that begin here are sampled.
///
/// The lower 56 bits of the trace id decide, as OpenTelemetry's consistent sampling has it: what a smaller ratio takes,
/// a larger one takes as well, here and elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRatio {
    /// Trace ids from here on are sampled.
    from: u64,
}

impl TraceRatio {
    /// Every trace.
    pub const ALL: Self = Self { from: 0 };

    /// This share of the traces; `None` where it does not lie between 0 and 1.
    pub fn new(ratio: f64) -> Option<Self> {
        let all = 1u64 << RANDOM_BITS;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "between 0 and 2^56, and a share of traces is never exact"
        )]
        (0.0..=1.0).contains(&ratio).then_some(Self { from: ((1.0 - ratio) * all as f64) as u64 })
    }

    /// The first span of a new trace.
    pub(crate) fn root(self, trace: NonZeroU128, span: NonZeroU64) -> TraceParent {
        let random = trace.get() & ((1 << RANDOM_BITS) - 1);
        TraceParent { trace, span, flags: if random >= u128::from(self.from) { SAMPLED } else { 0 } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_read_and_written() {
        let parent = TraceParent::parse(RIGHT).unwrap();
        assert_eq!(parent.trace_id().get(), 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!((parent.span_id().get(), parent.is_sampled()), (0x00f0_67aa_0ba9_02b7, true));
        assert_eq!(parent.to_string(), RIGHT);
        let child = parent.child(NonZeroU64::MIN);
        assert_eq!(child.to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000001-01");
    }

    #[test]
    fn flags_without_a_meaning_are_not_passed_on() {
        let unsampled = TraceParent::parse(&RIGHT.replace("-01", "-fe")).unwrap();
        assert!(!unsampled.is_sampled() && unsampled.to_string().ends_with("-02"));
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        for text in
            ["01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", &format!("cc{}-more", &RIGHT[2..])]
        {
            assert_eq!(TraceParent::parse(text).unwrap().to_string(), RIGHT);
        }
    }

    #[test]
    fn what_is_no_context_is_ignored() {
        let wrong = [
            String::new(),
            "nonsense".to_owned(),
            RIGHT.to_uppercase(),
            RIGHT[..54].to_owned(),
            format!("{RIGHT}-more"),
            format!(" {RIGHT}"),
            format!("ff{}", &RIGHT[2..]),
            format!("01{}0", &RIGHT[2..]),
            RIGHT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            RIGHT.replace("00f067aa0ba902b7", &"0".repeat(16)),
            RIGHT.replace("4bf9", "+bf9"),
            RIGHT.replace("4bf9", "4b-9"),
            RIGHT.replace('-', "_"),
            "ä".repeat(55),
            "0".repeat(100_000),
        ];
        for text in wrong {
            assert_eq!(TraceParent::parse(&text), None, "{text:.80}");
        }
    }

    #[test]
    fn a_ratio_takes_its_share_and_a_larger_one_takes_no_less() {
        let takes = |ratio: f64, trace: u128| {
            let trace = NonZeroU128::new(trace).unwrap();
            TraceRatio::new(ratio).unwrap().root(trace, NonZeroU64::MIN).is_sampled()
        };
        let (lowest, middle, highest) = (1 << RANDOM_BITS, 1 << (RANDOM_BITS - 1), u128::MAX);
        assert!(takes(1.0, lowest) && takes(1.0, highest));
        assert!(!takes(0.0, lowest) && !takes(0.0, highest));
        assert!(!takes(0.5, middle - 1) && takes(0.5, middle) && takes(0.6, middle));
        assert_eq!([-0.1, 1.1, f64::NAN].map(TraceRatio::new), [None; 3]);
    }
}
