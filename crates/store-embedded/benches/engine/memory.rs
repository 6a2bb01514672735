//! What a message takes in memory, and how long the store takes to come back.
//!
//! Each figure comes from a process of its own: memory that another measurement freed would hide what this one takes.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use redrive_core::lifecycle::Draft;
use redrive_core::message::{Dedup, DedupKey, FairnessKey, Uniqueness};
use redrive_store_embedded::EmbeddedStore;

use crate::Context;
use crate::arguments::Arguments;
use crate::caller::{Caller, options};
use crate::measure::{micros, resident_bytes, timed};
use crate::progress::Progress;
use crate::report::{Bars, Limit, Table};
use crate::scale::Scale;

const BODY_BYTES: usize = 200;

/// Life cycles of a thousand that come before the first look at the memory: buffers have their size then.
const WARM_UP_BATCHES: usize = 100;

/// What is read at a time when files are read for comparison.
const READ_BYTES: usize = 1 << 20;

/// What a child measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Child {
    /// Waiting messages, and reopening with them.
    Waiting,
    /// The same with dedup keys.
    Dedup,
    /// A message each of many keys.
    Keys,
}

impl Child {
    const ALL: [Self; 3] = [Self::Waiting, Self::Dedup, Self::Keys];

    fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Dedup => "dedup",
            Self::Keys => "keys",
        }
    }

    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|child| child.name() == name);
        found.ok_or_else(|| format!("there is no child `{name}`"))
    }

    fn messages(self, scale: Scale) -> u64 {
        if self == Self::Keys { scale.memory_keys } else { scale.waiting }
    }

    fn set(self, n: u64, draft: &mut Draft) {
        match self {
            Self::Waiting => {}
            Self::Dedup => {
                let key = DedupKey::new(format!("order-{n:012}")).expect("a good key");
                draft.spec.dedup = Some(Dedup { key, unique: Uniqueness::Window });
            }
            Self::Keys => {
                draft.spec.fairness_key = FairnessKey::new(format!("tenant-{n:07}")).expect("a good key");
            }
        }
    }
}

pub(crate) fn run(context: &Context, bars: &mut Bars) {
    let [waiting, dedup, keys] = Child::ALL.map(|child| spawn(context, child));
    let each = |child: Child, figures: &Figures| figures.bytes / child.messages(context.scale) as f64;
    let per_message = each(Child::Waiting, &waiting);
    let per_dedup = each(Child::Dedup, &dedup);
    let per_key = each(Child::Keys, &keys) - per_message;
    let mut table = Table::new(&["what", "messages", "bytes each"]);
    let mut row = |what: &str, child: Child, bytes: f64| {
        table.row(&[&what, &child.messages(context.scale), &format!("{bytes:.1}")]);
    };
    row("waiting, one key", Child::Waiting, per_message);
    row("waiting, with a dedup key of 18 bytes", Child::Dedup, per_dedup);
    row("active key of 14 bytes, without its message", Child::Keys, per_key);
    println!("{BODY_BYTES} bytes, RSS over that of the empty store after {WARM_UP_BATCHES},000 life cycles");
    table.print();
    bars.judge("memory_waiting", &[per_message], Limit::AtMost(130.0));
    bars.judge("memory_dedup", &[per_dedup], Limit::AtMost(178.0));
    bars.judge("memory_key", &[per_key], Limit::AtMost(150.0));
    reopen(bars, &waiting);
}

fn reopen(bars: &mut Bars, figures: &Figures) {
    let mut table = Table::new(&["round", "open ms", "read and checksum ms", "ratio"]);
    let mut ratios = Vec::new();
    for (number, (open, read)) in (1..).zip(figures.open.iter().zip(&figures.read)) {
        ratios.push(open / read);
        let ratio = format!("{:.2}", open / read);
        table.row(&[&number, &format!("{:.0}", open / 1e3), &format!("{:.0}", read / 1e3), &ratio]);
    }
    println!("reopening with those waiting messages, files warm");
    table.print();
    bars.judge("reopen", &ratios, Limit::AtMost(3.0));
}

/// What a child says, one line each.
#[derive(Debug, Default)]
struct Figures {
    bytes: f64,
    open: Vec<f64>,
    read: Vec<f64>,
}

fn spawn(context: &Context, child: Child) -> Figures {
    let dir = context.place.fresh("memory");
    let mut command = Command::new(std::env::current_exe().expect("a process knows its program"));
    command.args(["--child", child.name(), "--dir"]).arg(&dir);
    if context.scale.quick {
        command.arg("--quick");
    }
    let output = command.stderr(Stdio::inherit()).output().expect("the bench starts itself");
    assert!(output.status.success(), "measuring {} ended with {}", child.name(), output.status);
    context.place.clear("memory");
    parse(&String::from_utf8_lossy(&output.stdout))
}

fn parse(text: &str) -> Figures {
    let mut figures = Figures::default();
    for line in text.lines() {
        let (name, value) = line.split_once(' ').expect("a child writes names and values");
        let value: f64 = value.parse().expect("a number");
        match name {
            "bytes" => figures.bytes = value,
            "open" => figures.open.push(value),
            "read" => figures.read.push(value),
            unknown => panic!("a child said {unknown}"),
        }
    }
    figures
}

/// The child's whole life.
pub(crate) fn child(child: Child, arguments: &Arguments) {
    let scale = Scale::new(arguments.quick);
    let dir = arguments.dir.as_deref().expect("a child is told where");
    let mut caller = Caller::open(dir, scale, BODY_BYTES);
    (0..WARM_UP_BATCHES).for_each(|_| caller.life_cycle(1_000));
    let empty = resident_bytes();
    caller.load("messages to weigh", child.messages(scale), |n, draft| child.set(n, draft));
    println!("bytes {}", resident_bytes().saturating_sub(empty));
    let used = caller.usage().total_bytes;
    caller.close();
    if child == Child::Waiting {
        time_reopening(dir, scale, used);
    }
}

fn time_reopening(dir: &Path, scale: Scale, used: u64) {
    read_and_checksum(dir, scale, used);
    for number in 1..=scale.rounds {
        let _progress = Progress::new(format!("reopening, round {number}"));
        println!("read {}", micros(timed(|| read_and_checksum(dir, scale, used)).1));
        let (store, took) =
            timed(|| EmbeddedStore::open(dir, options(scale)).expect("the store opens again"));
        println!("open {}", micros(took));
        store.close().expect("the store closes");
    }
}

/// Reads what the segments of a directory hold and computes the checksum of each, as recovery must at least. A file has
/// more space than its segment fills, and the last one is not full: neither is read.
fn read_and_checksum(dir: &Path, scale: Scale, used: u64) -> u32 {
    let mut buffer = vec![0; READ_BYTES];
    let (mut sum, mut left) = (0, used);
    for segment in segments(dir) {
        let file = File::open(segment).expect("a segment opens");
        let mut file = file.take(left.min(u64::from(scale.segment_bytes)));
        loop {
            let read = file.read(&mut buffer).expect("a segment is read");
            if read == 0 {
                break;
            }
            sum = crc32c::crc32c_append(sum, &buffer[..read]);
            left -= read as u64;
        }
    }
    std::hint::black_box(sum)
}

/// The segments in the order in which they were written; spare files and the lock are none.
fn segments(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("the store's directory is there");
    let paths = entries.map(|entry| entry.expect("a name").path());
    let mut segments: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "segment")).collect();
    segments.sort();
    segments
}
