//! The engine: commands and the time go in, answers come out. It is a step function with no thread of its own.
//!
//! One step makes one frame: the commands are computed and applied one after the other, what they did is written and
//! synced, and only then their answers go. An answer that only looked has seen what the commands before it did, so it
//! waits with them. A write or a sync that fails answers everything `OUTCOME_UNKNOWN` and stops the engine: nobody
//! knows what is on the disk, and a second sync that succeeds would not tell.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::channel::oneshot;
use redrive_store::StoreError;

use crate::Durability;
use crate::core::Core;
use crate::disk::File;
use crate::fault::{Fault, during};
use crate::journal::{Admission, Purpose};

/// What reads the rest of an answer.
pub(crate) type Load<T> = Box<dyn FnOnce(&Core) -> Result<T, Fault> + Send>;

/// An answer, and how to get it once what it has seen is on the disk.
pub(crate) enum Later<T> {
    /// It is there.
    Now(T),
    /// So many records have to be read first.
    Load(usize, Load<T>),
}

/// What a command needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needs {
    /// What it does to the space it takes; `None` where it only looks.
    pub(crate) purpose: Option<Purpose>,
    /// About how much it writes.
    pub(crate) bytes: usize,
    /// About how much it writes to the segments of the logs.
    pub(crate) log_bytes: usize,
}

/// What somebody asked for, and where the answer goes.
pub(crate) trait Command: Send {
    fn needs(&self) -> Needs;

    /// Computes and applies it.
    fn run(self: Box<Self>, core: &mut Core) -> Box<dyn Reply>;

    /// Says why it will not be done; nothing happened.
    fn refuse(self: Box<Self>, error: StoreError);
}

/// An answer that waits for its frame.
pub(crate) trait Reply: Send {
    /// How many records have to be read.
    fn to_load(&self) -> usize;

    /// Reads what the answer needs. Where that fails and something was changed, nobody will learn what: the fault is
    /// told, and stops the engine.
    fn load(self: Box<Self>, core: &Core) -> (Box<dyn Reply>, Option<Fault>);

    /// Lets it go.
    fn send(self: Box<Self>);

    /// What it says is not known to be true.
    fn fail(self: Box<Self>, fault: &Fault);
}

/// A command as a function.
pub(crate) struct Call<T, F> {
    pub(crate) needs: Needs,
    pub(crate) run: F,
    pub(crate) answer: oneshot::Sender<Result<T, StoreError>>,
}

struct Answer<T> {
    outcome: Result<Later<T>, StoreError>,
    /// Whether the command may have changed something.
    changes: bool,
    to: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Command for Call<T, F>
where
    T: Send + 'static,
    F: FnOnce(&mut Core) -> Later<T> + Send,
{
    fn needs(&self) -> Needs {
        self.needs
    }

    fn run(self: Box<Self>, core: &mut Core) -> Box<dyn Reply> {
        let changes = self.needs.purpose.is_some();
        Box::new(Answer { outcome: Ok((self.run)(core)), changes, to: self.answer })
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        // Whoever asked may have gone; then nobody needs the answer.
        drop(self.answer.send(Err(error)));
    }
}

impl<T: Send + 'static> Reply for Answer<T> {
    fn to_load(&self) -> usize {
        match self.outcome {
            Ok(Later::Load(records, _)) => records,
            _ => 0,
        }
    }

    fn load(self: Box<Self>, core: &Core) -> (Box<dyn Reply>, Option<Fault>) {
        let Self { outcome, changes, to } = *self;
        let loaded = match outcome {
            Ok(Later::Load(_, load)) => load(core).map(Later::Now),
            outcome => return (Box::new(Self { outcome, changes, to }), None),
        };
        let fault = loaded.as_ref().err().filter(|_| changes).cloned();
        let outcome = loaded.map_err(|fault| {
            let (location, problem) = (core.journal.disk.place(""), fault.to_string());
            if changes { fault.unknown() } else { StoreError::Damaged { location, problem } }
        });
        (Box::new(Self { outcome, changes, to }), fault)
    }

    fn send(self: Box<Self>) {
        if let Ok(Later::Now(answer)) = self.outcome {
            drop(self.to.send(Ok(answer)));
        } else if let Err(error) = self.outcome {
            drop(self.to.send(Err(error)));
        }
    }

    fn fail(self: Box<Self>, fault: &Fault) {
        drop(self.to.send(Err(fault.unknown())));
    }
}

/// A frame that was written, and the answers that wait for it.
pub(crate) struct Written {
    /// What has to be synced first, in order; nothing where nothing was written.
    pub(crate) files: Vec<Arc<dyn File>>,
    pub(crate) replies: Vec<Box<dyn Reply>>,
}

/// Commands and the time go in, answers come out.
pub(crate) struct Engine {
    pub(crate) core: Core,
    stopped: Option<Fault>,
    /// Why an answer about a change could not be read.
    unread: Option<Fault>,
    /// How many frames the first command has waited for cleaning.
    waited: usize,
}

impl Engine {
    pub(crate) fn new(core: Core) -> Self {
        Self { core, stopped: None, unread: None, waited: 0 }
    }

    /// Makes one frame of as many commands as belong into one, syncs it, and lets the answers go.
    pub(crate) fn step(&mut self, commands: &mut VecDeque<Box<dyn Command>>) {
        let Some(written) = self.write(commands) else { return };
        let replies = self.load(written.replies);
        let synced =
            if self.core.options.durability == Durability::Sync { sync(&written.files) } else { Ok(()) };
        self.finish(replies, written.files.len(), synced);
    }

    /// Computes commands and writes what they did. `None` where the engine has stopped.
    pub(crate) fn write(&mut self, commands: &mut VecDeque<Box<dyn Command>>) -> Option<Written> {
        if let Some(fault) = &self.stopped {
            commands.drain(..).for_each(|command| command.refuse(fault.stopped()));
            return None;
        }
        let mut replies = Vec::with_capacity(commands.len());
        match self.compute(commands, &mut replies).and_then(|()| self.write_frames()) {
            Ok(files) => Some(Written { files, replies }),
            Err(fault) => {
                self.stop(fault, replies);
                commands.drain(..).for_each(|command| command.refuse(self.stopped_error()));
                None
            }
        }
    }

    fn stopped_error(&self) -> StoreError {
        self.stopped.as_ref().map_or_else(|| Fault::new("stopping", "closed").stopped(), Fault::stopped)
    }

    fn compute(
        &mut self,
        commands: &mut VecDeque<Box<dyn Command>>,
        replies: &mut Vec<Box<dyn Reply>>,
    ) -> Result<(), Fault> {
        if commands.iter().any(|command| command.needs().purpose.is_some()) {
            self.core.clean_on()?;
        }
        while let Some(command) = commands.pop_front() {
            match self.admit(command.needs())? {
                Admission::Now => {
                    self.waited = 0;
                    self.core.commands += 1;
                    replies.push(command.run(&mut self.core));
                    if let Some(fault) = self.core.fault.take() {
                        return Err(fault);
                    }
                }
                Admission::NextFrame => {
                    commands.push_front(command);
                    break;
                }
                Admission::Full => {
                    let cleans = self.core.clean_when_full()?;
                    if cleans && self.waits_for_cleaning(command.needs()) {
                        commands.push_front(command);
                    } else {
                        command.refuse(StoreError::StorageFull);
                    }
                    if cleans {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a command that brings nothing new waits for the next frame, because this one wins room by cleaning: for
    /// as long as it takes to clean two segments, and then it is refused, too.
    fn waits_for_cleaning(&mut self, needs: Needs) -> bool {
        self.waited += 1;
        needs.purpose != Some(Purpose::Grow) && self.waited <= self.core.frames_to_clean(2)
    }

    fn admit(&mut self, needs: Needs) -> Result<Admission, Fault> {
        let Some(purpose) = needs.purpose else {
            return Ok(Admission::Now);
        };
        let admission = self.core.journal.admit(needs.bytes, purpose)?;
        if needs.log_bytes == 0 || admission != Admission::Now {
            return Ok(admission);
        }
        self.core.log_journal.admit(needs.log_bytes, Purpose::Clean)
    }

    /// Writes the frames that were made, with what they carry of cleaning.
    fn write_frames(&mut self) -> Result<Vec<Arc<dyn File>>, Fault> {
        let mut files = Vec::new();
        let time = self.core.frame_time();
        if self.core.log_journal.has_records() {
            files.push(self.core.log_journal.write(time)?);
        }
        self.core.put_counts();
        if self.core.journal.has_records() || self.core.journal.is_full() {
            self.core.clean()?;
        }
        if let Some(fault) = self.core.fault.take() {
            return Err(fault);
        }
        if self.core.journal.has_records() {
            files.push(self.core.journal.write(time)?);
        }
        Ok(files)
    }

    /// Reads what answers need, which can be done while the disk is at it.
    pub(crate) fn load(&mut self, replies: Vec<Box<dyn Reply>>) -> Vec<Box<dyn Reply>> {
        let mut loaded = Vec::with_capacity(replies.len());
        for reply in replies {
            let (reply, fault) = reply.load(&self.core);
            loaded.push(reply);
            self.unread = self.unread.take().or(fault);
        }
        loaded
    }

    /// Lets the answers go, if what they say is on the disk.
    pub(crate) fn finish(&mut self, replies: Vec<Box<dyn Reply>>, files: usize, synced: Result<(), Fault>) {
        if let Err(fault) = synced {
            self.stop(fault, replies);
            return;
        }
        self.core.syncs += files as u64;
        replies.into_iter().for_each(Reply::send);
        if let Some(fault) = self.unread.take() {
            self.stop(fault, Vec::new());
        } else if files > 0
            && let Err(fault) = self.tidy_up()
        {
            self.stop(fault, Vec::new());
        }
    }

    fn tidy_up(&mut self) -> Result<(), Fault> {
        // What was cleaned must be on the disk before the only other copy of it goes, whatever answers wait for.
        if self.core.cleaner.clean > 0
            && self.core.options.durability != Durability::Sync
            && let Some(last) = self.core.journal.segments.back()
        {
            sync(&[Arc::clone(&last.file)])?;
        }
        self.core.drop_clean()?;
        self.core.drop_log_segments()
    }

    /// Writes the mark behind the last frame, when nothing else is to do.
    pub(crate) fn idle(&mut self) {
        if self.stopped.is_none() {
            let time = self.core.frame_time();
            let marked = self.core.journal.mark(time).and_then(|()| self.core.log_journal.mark(time));
            if let Err(fault) = marked {
                self.stop(fault, Vec::new());
            }
        }
    }

    /// Everything that is written gets onto the disk, mark and all.
    pub(crate) fn close(&mut self) -> Result<(), StoreError> {
        self.idle();
        if let Some(fault) = &self.stopped {
            return Err(fault.stopped());
        }
        let last = [&self.core.log_journal, &self.core.journal]
            .into_iter()
            .filter_map(|journal| journal.segments.back());
        let files: Vec<Arc<dyn File>> = last.map(|segment| Arc::clone(&segment.file)).collect();
        sync(&files).map_err(|fault| fault.unknown())
    }

    fn stop(&mut self, fault: Fault, replies: Vec<Box<dyn Reply>>) {
        for reply in replies {
            reply.fail(&fault);
        }
        self.stopped.get_or_insert(fault);
    }
}

/// Gets what was written onto the disk.
pub(crate) fn sync(files: &[Arc<dyn File>]) -> Result<(), Fault> {
    files.iter().try_for_each(|file| file.sync()).map_err(during("syncing a frame"))
}
