//! Plays a page: every command in its turn, and each must print what stands below it.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::compare::{alike, is_any_lines, same_line};
use crate::page::{Kind, Page, Step};
use crate::server::Server;
use crate::shell::{Output, Shell};

/// The port of the pages. The server that is meant has another one, so that pages run side by side.
const PORT: &str = "7400";

/// Ports that the kernel gives to nobody by itself.
const PORTS: std::ops::Range<u16> = 10_000..30_000;

/// How far the ports of one process are apart: processes whose numbers follow each other are likely neighbours.
const STRIDE: u32 = 101;

/// How a page begins that starts its own server.
const SERVES: [&str; 2] = ["redrive serve", "cargo run --bin redrive -- serve"];

/// Where a page is played.
struct Stage {
    shell: Shell,
    port: String,
    dir: String,
    /// Ends behind the shell.
    _server: Option<Server>,
}

/// Runs every command of a page, and says which ones did something else than the page says. With `bless` the page is
/// written anew with what they did.
pub(crate) fn play(root: &Path, mut page: Page, bless: bool) -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut stage = Stage::set(dir.path(), &page)?;
    let mut wrong = Vec::new();
    let mut rewritten = Vec::new();
    for (place, step) in page.steps.iter().enumerate() {
        let shown = page.steps.get(place + 1).is_some_and(|next| next.command == "echo $?");
        let at = |problem: &str| format!("{}:{}: $ {}\n{problem}", page.name, step.line, step.command);
        let output = stage.run(step).map_err(|problem| at(&problem))?;
        let got = lines(&output.text);
        let Kind::Told(told) = &step.kind else {
            if output.code != 0 {
                return Err(at(&format!("it ended with {}:\n{}", output.code, output.text)));
            }
            continue;
        };
        let expected = &page.lines[told.clone()];
        if !alike(expected, &got) {
            if bless && !expected.iter().any(|line| is_any_lines(line)) {
                rewritten.push((told.clone(), blessed(expected, &got)));
            } else {
                wrong.push(at(&difference(expected, &got)));
            }
        } else if output.code != 0 && !shown && !tells_failure(&got) {
            wrong.push(at(&format!("it ended with {}, and the page does not say so", output.code)));
        }
    }
    for (told, lines) in rewritten.into_iter().rev() {
        page.lines.splice(told, lines);
    }
    if bless {
        let text = page.lines.join("\n") + "\n";
        std::fs::write(root.join(&page.name), text).map_err(|error| error.to_string())?;
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n\n")) }
}

impl Stage {
    fn set(dir: &Path, page: &Page) -> Result<Self, String> {
        let own = page.steps.iter().any(|step| starts_server(&step.command));
        let server = if own { None } else { Some(Server::start(dir)?) };
        let port = match &server {
            Some(server) => server.port().to_owned(),
            None => free_port()?.to_string(),
        };
        let home = dir.join("home");
        std::fs::create_dir(&home).map_err(|error| error.to_string())?;
        let mut variables = vec![("REDRIVE_URL", format!("http://127.0.0.1:{port}"))];
        if own {
            variables.push(("REDRIVE_LISTEN", format!("127.0.0.1:{port}")));
        }
        let shell = Shell::start(&home, &variables)?;
        Ok(Self { shell, port, dir: home.display().to_string(), _server: server })
    }

    fn run(&mut self, step: &Step) -> Result<Output, String> {
        let command = step.command.replace(&format!(":{PORT}"), &format!(":{}", self.port));
        let output = match step.kind {
            Kind::Stop => self.shell.stop(),
            _ if starts_server(&command) => self.shell.serve(&command),
            _ => self.shell.run(&command),
        }?;
        let text = output.text.replace(&format!(":{}", self.port), &format!(":{PORT}"));
        Ok(Output { text: text.replace(&self.dir, "~"), ..output })
    }
}

/// A server in the foreground: the reader has another terminal for the rest.
fn starts_server(command: &str) -> bool {
    SERVES.iter().any(|serve| command.starts_with(serve)) && !command.ends_with('&') && !command.contains('|')
}

/// A port that is free now, and that no other page takes: neither one of this process, nor of one that runs at the same time.
fn free_port() -> Result<u16, String> {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let size = u32::from(PORTS.end - PORTS.start);
    let mut numbers = (0..size).map(|_| {
        let taken = TAKEN.fetch_add(STRIDE, Ordering::Relaxed);
        (std::process::id() % size + taken) % size
    });
    let free = numbers.find_map(|number| {
        let port = PORTS.start + u16::try_from(number).ok()?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok().then_some(port)
    });
    free.ok_or_else(|| "there is no free port".to_owned())
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// A command that failed and says so.
fn tells_failure(got: &[String]) -> bool {
    got.iter().any(|line| line.starts_with("redrive: ") || line.starts_with("error: "))
}

/// What it printed, but lines that were right stay as they were written.
fn blessed(expected: &[String], got: &[String]) -> Vec<String> {
    let kept = |(place, line): (usize, &String)| {
        expected.get(place).filter(|expected| same_line(expected, line)).unwrap_or(line).clone()
    };
    got.iter().enumerate().map(kept).collect()
}

fn difference(expected: &[String], got: &[String]) -> String {
    let shown = |lines: &[String]| lines.iter().flat_map(|line| ["    ", line, "\n"]).collect::<String>();
    format!("expected:\n{}got:\n{}", shown(expected), shown(got))
}
