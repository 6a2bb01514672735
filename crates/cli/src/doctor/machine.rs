//! The machine: its clocks, and how many files a process may have open.

use redrive_core::time::{Millis, Timestamp};
use redrive_store_embedded::{Clock, MachineClock};
use rustix::process::{Resource, getrlimit};

use super::finding::Finding;
use crate::config::Config;
use crate::port::OTHER_FILES;
use crate::span::Span;

/// By how much the wall clock may move against the uptime while we look.
const MOVED_MAX: Millis = Millis::new(50);
/// No wall clock that is right says an earlier time: 2026 begins.
const PLAUSIBLE: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clocks {
    wall: Timestamp,
    uptime: Millis,
}

impl Clocks {
    pub(super) fn read() -> Self {
        Self { wall: MachineClock.wall(), uptime: MachineClock.uptime() }
    }

    /// How far the wall clock was moved since then: what the uptime says has passed, and what the wall clock says.
    pub(super) fn compared(self) -> Finding {
        self.against(Self::read())
    }

    fn against(self, now: Self) -> Finding {
        let up = now.uptime.get().saturating_sub(self.uptime.get());
        let (passed, expected) = (now.wall.as_millis(), self.wall.as_millis().saturating_add(up));
        let moved = passed.abs_diff(expected);
        if now.wall < PLAUSIBLE {
            return Finding::fail(
                "clock",
                format!("the wall clock says {}, which is long past", time(now.wall)),
            );
        }
        let passed = Span::from_millis(up);
        let said = format!(
            "the wall clock says {}, and moved by {moved} ms against the uptime in {passed}",
            time(now.wall)
        );
        Finding::warn_if(moved > MOVED_MAX.get(), "clock", said)
    }
}

fn time(at: Timestamp) -> String {
    redrive_wire::Time(at.as_millis()).to_string()
}

/// Whether there are files for all connections that the configuration allows. The server raises the limit as far as it may.
pub(super) fn files(config: &Config) -> Finding {
    let most = getrlimit(Resource::Nofile).maximum;
    let wanted = u64::from(config.port.connections_max()) + OTHER_FILES;
    match most {
        Some(most) if most < wanted => Finding::warn(
            "open files",
            format!("{most} may be open, and {wanted} are needed for connections_max: fewer are accepted"),
        ),
        Some(most) => Finding::ok("open files", format!("{most} may be open, and {wanted} are needed")),
        None => Finding::ok("open files", format!("any number may be open, and {wanted} are needed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    #[test]
    fn a_wall_clock_that_is_set_while_we_look_is_seen() {
        let clocks =
            |wall: u64, up: u64| Clocks { wall: PLAUSIBLE.plus(Millis::new(wall)), uptime: Millis::new(up) };
        assert_eq!(clocks(0, 500).against(clocks(1_000, 1_500)).level, Level::Ok);
        assert_eq!(clocks(0, 500).against(clocks(9_000, 1_500)).level, Level::Warn);
        let back = clocks(9_000, 500).against(clocks(1_000, 1_500));
        assert!(back.level == Level::Warn && back.sentence.contains("moved by 9000 ms"), "{back:?}");
        let past = Clocks { wall: Timestamp::EPOCH, uptime: Millis::new(9) };
        assert_eq!(past.against(past).level, Level::Fail);
    }
}
