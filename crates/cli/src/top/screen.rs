//! The terminal: taken for the picture, and given back as it was.

use std::io;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use redrive_core::time::Timestamp;
use tokio::sync::mpsc;

use super::draw::draw;
use super::state::State;

/// How long the thread that reads keys waits before it looks whether anybody wants them.
const PATIENCE: Duration = Duration::from_millis(100);
/// Most keys that wait; who types faster waits.
const KEYS: usize = 32;

/// The terminal, in a mode for pictures for as long as this lives. A panic gives it back as well, before it is told.
#[derive(Debug)]
pub(super) struct Screen(DefaultTerminal);

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        ratatui::try_init().map(Self)
    }

    pub(super) fn draw(&mut self, state: &State, now: Timestamp) -> io::Result<()> {
        self.0.draw(|frame| draw(frame, state, now)).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// What is typed, from a thread of its own: there is no way to wait for a key and for something else. It ends when nobody
/// wants keys any more, or when there is no terminal.
pub(super) fn keys() -> mpsc::Receiver<Event> {
    let (tell, keys) = mpsc::channel(KEYS);
    std::thread::spawn(move || {
        while !tell.is_closed() {
            match event::poll(PATIENCE) {
                Ok(false) => {}
                Ok(true) => {
                    let Ok(event) = event::read() else { return };
                    if tell.blocking_send(event).is_err() {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    });
    keys
}
