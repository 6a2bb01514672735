//! `redrive top`: the queues of a server, live, and the leases of one of them counting down to *overdue*.
//!
//! `look` asks the server, once a second. `state` is what is known and what the keys do with it; `draw` is a function from
//! that to a picture, and `screen` the terminal, which is given back as it was however the program ends.

mod draw;
mod look;
mod screen;
mod state;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ratatui::crossterm::event::Event;
use redrive_core::time::Timestamp;
use redrive_store_embedded::{Clock as _, MachineClock};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use crate::remote::{Asking, Failure, Remote, Session};
use look::Looked;
use screen::Screen;
use state::{Act, State};

/// How often the picture is drawn where nothing happens: countdowns show seconds.
const FRAME: Duration = Duration::from_millis(250);

/// Shows a server live.
#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    #[command(flatten)]
    asking: Asking,
}

impl TopArguments {
    pub(crate) fn run(self) -> ExitCode {
        self.asking.run(async |session: &Session| {
            if !(std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
                let instead = "`redrive queue list` prints the queues once";
                return Err(Failure::Usage(format!("top needs a terminal; {instead}")));
            }
            show(&session.remote).await
        })
    }
}

async fn show(remote: &Remote) -> Result<(), Failure> {
    let failed = |error| Failure::Io("the terminal".to_owned(), error);
    let signals = |kind| signal(kind).map_err(|error| Failure::Io("signals".to_owned(), error));
    let (mut terminate, mut hangup) = (signals(SignalKind::terminate())?, signals(SignalKind::hangup())?);
    let mut state = State::new(remote.base().as_str());
    let (chosen, of) = watch::channel(None);
    let (tell, mut looks) = mpsc::channel(1);
    let looking = tokio::spawn(look::go_on(remote.clone(), of, tell));
    let mut screen = Screen::open().map_err(failed)?;
    let mut keys = screen::keys();
    let mut frames = tokio::time::interval(FRAME);
    let ended = loop {
        screen.draw(&state, now()).map_err(failed)?;
        tokio::select! {
            _ = frames.tick() => {}
            Some(event) = keys.recv() => {
                if acted(&mut state, &event) == Act::Quit {
                    break Ok(());
                }
                chosen.send_if_modified(|chosen| {
                    let other = *chosen != state.chosen();
                    *chosen = state.chosen();
                    other
                });
            }
            Some(looked) = looks.recv() => heard(&mut state, looked),
            _ = terminate.recv() => break Err(Failure::Interrupted),
            _ = hangup.recv() => break Err(Failure::Interrupted),
        }
    };
    looking.abort();
    ended
}

fn now() -> Timestamp {
    MachineClock.wall()
}

fn acted(state: &mut State, event: &Event) -> Act {
    match event.as_key_press_event() {
        Some(key) => state.pressed(key),
        None => Act::GoOn,
    }
}

fn heard(state: &mut State, looked: Looked) {
    match looked {
        Ok(snapshot) => state.saw(snapshot),
        Err(why) => state.lost(why, now()),
    }
}
