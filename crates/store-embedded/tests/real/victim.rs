//! The process that is killed: this very program, started again with a plan in its environment.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio, exit};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use futures::executor::block_on;
use redrive_core::dice::Dice;
use redrive_core::message::MessageId;
use redrive_core::time::{Millis, Timestamp};
use redrive_store_embedded::{Durability, EmbeddedStore, Options};

use crate::caller::{Caller, QUEUES, create_queues};
use crate::line::{Grant, Line, Verb};

const VARIABLE: &str = "REDRIVE_VICTIM";
/// How many callers work at once.
const TASKS: u64 = 6;
/// How long a process may say nothing before it counts as hanging.
const SILENCE_MAX: Duration = Duration::from_mins(1);

/// What a process is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// How many processes had the directory before this one.
    pub(crate) life: u64,
    pub(crate) segment_bytes: u32,
    pub(crate) durability: Durability,
}

impl Plan {
    /// The options that go with it.
    pub(crate) fn options(&self) -> Options {
        Options { durability: self.durability, segment_bytes: self.segment_bytes, ..Options::default() }
    }

    fn write(&self, dir: &Path) -> String {
        let durability = match self.durability {
            Durability::Sync => "sync".to_owned(),
            Durability::None => "none".to_owned(),
            Durability::Interval(every) => every.get().to_string(),
        };
        format!("{} {} {} {durability} {}", self.seed, self.life, self.segment_bytes, dir.display())
    }

    fn read(text: &str) -> Option<(Self, String)> {
        let mut words = text.splitn(5, ' ');
        let plan = Self {
            seed: words.next()?.parse().ok()?,
            life: words.next()?.parse().ok()?,
            segment_bytes: words.next()?.parse().ok()?,
            durability: match words.next()? {
                "sync" => Durability::Sync,
                "none" => Durability::None,
                every => Durability::Interval(Millis::new(every.parse().ok()?)),
            },
        };
        Some((plan, words.next()?.to_owned()))
    }
}

/// Works until it is killed, where this process was started for that.
pub(crate) fn work_if_told() {
    let Ok(text) = std::env::var(VARIABLE) else { return };
    let (plan, dir) = Plan::read(&text).expect("a plan that Plan::write wrote");
    let out = File::from(std::io::stdout().as_fd().try_clone_to_owned().expect("stdout is open"));
    let out = Arc::new(out);
    say(&out, &Line::Opening);
    let opened = EmbeddedStore::open(dir, plan.options());
    let store = opened.unwrap_or_else(|error| give_up(&out, &format!("not opened: {error}")));
    create_queues(&store).unwrap_or_else(|error| give_up(&out, &format!("no queues: {error}")));
    thread::scope(|scope| {
        for task in 0..TASKS {
            let (store, out, plan) = (&store, &out, &plan);
            scope.spawn(move || Load::new(store, out, plan, task).run());
        }
    });
}

/// One write of less than a page for each line: lines of several tasks never mix, and one that was said is in the
/// pipe whatever becomes of the process. When nobody listens any more, there is nothing left to do.
fn say(mut out: &File, line: &Line) {
    if out.write_all(format!("{line}\n").as_bytes()).is_err() {
        exit(1);
    }
}

fn give_up(out: &File, problem: &str) -> ! {
    say(out, &Line::Wrong(problem.to_owned()));
    exit(1)
}

/// One caller and what it holds.
struct Load<'a> {
    store: &'a EmbeddedStore,
    out: &'a File,
    caller: Caller<'a>,
    dice: Dice,
    held: Vec<Grant>,
    task: u64,
    life: u64,
    ids: u64,
    /// How many segments were cleaned when it was last told.
    cleaned: u64,
}

impl<'a> Load<'a> {
    fn new(store: &'a EmbeddedStore, out: &'a File, plan: &Plan, task: u64) -> Self {
        let life = plan.life;
        let mut dice = Dice::seeded(plan.seed ^ (life << 8) ^ (task << 40));
        let say = move |line| say(out, &line);
        let caller = Caller::new(store, format!("{life}.{task}"), dice.roll(), say);
        Self { store, out, caller, dice, held: Vec::new(), task, life, ids: 0, cleaned: 0 }
    }

    fn run(&mut self) {
        loop {
            match self.dice.between(0, 19) {
                0..=2 => self.enqueue(),
                3..=6 => self.lease(),
                _ => self.settle(),
            }
            if self.task == 0 && self.dice.between(0, 9) == 0 {
                self.tell_cleaning();
            }
        }
    }

    fn tell_cleaning(&mut self) {
        match block_on(self.store.usage()) {
            Ok(usage) => {
                let before = std::mem::replace(&mut self.cleaned, usage.cleaned_segments);
                say(self.out, &Line::Cleaned(usage.cleaned_segments - before));
            }
            Err(error) => say(self.out, &Line::Wrong(error.to_string())),
        }
    }

    fn enqueue(&mut self) {
        let at = Timestamp::from_millis(1_800_000_000_000 + self.life);
        let ids: Vec<_> = (0..self.dice.between(1, 4))
            .map(|_| {
                self.ids += 1;
                MessageId::new(at, u128::from(self.task) << 48 | u128::from(self.ids))
            })
            .collect();
        self.caller.enqueue(&ids);
    }

    fn lease(&mut self) {
        let queue = QUEUES[usize::from(self.dice.between(0, 3) == 0)];
        let limit = usize::try_from(self.dice.between(1, 6)).expect("a small number");
        self.held.extend(self.caller.lease(queue, limit));
    }

    fn settle(&mut self) {
        let Some(last) = self.held.len().checked_sub(1) else { return self.lease() };
        let index = usize::try_from(self.dice.between(0, last as u64)).expect("an index");
        let verb = match self.dice.between(0, 19) {
            0..=13 => Verb::Ack,
            14..=15 => Verb::Nack,
            16..=17 => Verb::Release,
            18 => Verb::Bury,
            _ => Verb::Extend,
        };
        if verb == Verb::Extend {
            self.caller.settle(verb, &self.held[index]);
            return;
        }
        let grant = self.held.swap_remove(index);
        self.caller.settle(verb, &grant);
        if self.dice.between(0, 15) == 0 {
            self.caller.settle_again(Verb::Ack, &grant);
        }
    }
}

/// The process from outside. Killed at the latest when nobody looks any more.
#[derive(Debug)]
pub(crate) struct Victim {
    child: Child,
    lines: Receiver<String>,
}

impl Victim {
    /// Starts this program again, as a victim.
    pub(crate) fn start(dir: &Path, plan: &Plan) -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let mut command = Command::new(program);
        command.env(VARIABLE, plan.write(dir)).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program can be started again");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let (send, lines) = sync_channel(1_024);
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// The next line; `None` when the process has ended and everything it said was read.
    pub(crate) fn line(&self) -> Option<Line> {
        loop {
            let text = match self.lines.recv_timeout(SILENCE_MAX) {
                Ok(text) => text,
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return None,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("the process hangs"),
            };
            // Only the last line can be cut short, and what it was about to say was not said.
            if let Some(line) = Line::parse(&text) {
                return Some(line);
            }
        }
    }

    /// SIGKILL, then whatever it said before.
    pub(crate) fn kill(mut self) -> Vec<Line> {
        self.child.kill().expect("the process can be killed");
        self.child.wait().expect("the process has ended");
        std::iter::from_fn(|| self.line()).collect()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // It may have been killed before; both calls say so, and there is nobody to tell.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
