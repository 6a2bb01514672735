//! One bash for a whole page, so that variables, jobs and servers of one command are there for the next.

use std::io::{BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

/// What no page prints: it ends what a command printed, and its exit code follows.
const END: u8 = 0x1e;

/// A command that takes longer hangs; nothing in the docs takes a tenth of it.
const HANGS: Duration = Duration::from_mins(3);

/// How the README calls the binary.
const CARGO_RUN: &str = "cargo run --bin redrive -- ";

/// What cargo would do on the reader's machine. `cargo xtask test` runs the README's command with the real one.
const CARGO: &str = r#"cargo() {
  case "$*" in
    "run --bin redrive -- "*) shift 4; redrive "$@" ;;
    *) echo "cargo $*: pages only run redrive with it"; return 1 ;;
  esac
}"#;

/// A running bash.
pub(crate) struct Shell {
    child: Child,
    input: ChildStdin,
    output: Receiver<Output>,
}

/// What came of a command.
pub(crate) struct Output {
    pub(crate) text: String,
    pub(crate) code: i32,
}

impl Shell {
    /// With an own home in `dir`, and the built `redrive` in the path.
    pub(crate) fn start(dir: &Path, variables: &[(&str, String)]) -> Result<Self, String> {
        let built = Path::new(env!("CARGO_BIN_EXE_redrive")).parent().ok_or("the binary has no folder")?;
        let path = format!("{}:{}", built.display(), std::env::var("PATH").unwrap_or_default());
        let mut child = Command::new("bash")
            .args(["--noprofile", "--norc"])
            .env_clear()
            .env("PATH", path)
            .env("HOME", dir)
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .envs(variables.iter().map(|(name, value)| (*name, value.as_str())))
            .current_dir(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("bash: {error}"))?;
        let input = child.stdin.take().ok_or("bash has no input")?;
        let output = listen(BufReader::new(child.stdout.take().ok_or("bash has no output")?));
        let mut shell = Self { child, input, output };
        shell.send(&format!("exec 2>&1\n{CARGO}\n"))?;
        Ok(shell)
    }

    /// Runs a command and waits for its end; of one that goes on in the background, for its start.
    pub(crate) fn run(&mut self, command: &str) -> Result<Output, String> {
        // What goes on prints when it likes: not into the page.
        let jobs = if goes_on(command) { ">>jobs.log 2>&1" } else { "" };
        self.finish(&format!("{{ {command}\n}} </dev/null {jobs}"))
    }

    /// Starts a server, and waits until it says that it is ready. It ends with the page.
    pub(crate) fn serve(&mut self, command: &str) -> Result<Output, String> {
        let command = command.replacen(CARGO_RUN, "redrive ", 1);
        self.finish(&format!(
            "exec {{served}}< <(exec {command} </dev/null 2>&1); serving=$!
             while IFS= read -r -u $served line; do
               printf '%s\\n' \"$line\"
               case $line in 'redrive is ready on '*) break ;; esac
             done
             cat <&$served >>serve.log & drained=$!
             [[ $line == 'redrive is ready on '* ]]"
        ))
    }

    /// Tells the server of the page to end, and waits until it has.
    pub(crate) fn stop(&mut self) -> Result<Output, String> {
        self.finish("kill -TERM $serving; wait $drained")
    }

    fn finish(&mut self, command: &str) -> Result<Output, String> {
        self.send(&format!("{command}\nended=$?; printf '\\036%d\\n' $ended; (exit $ended)\n"))?;
        self.output.recv_timeout(HANGS).map_err(|_| "it hangs, or ended the shell".to_owned())
    }

    fn send(&mut self, text: &str) -> Result<(), String> {
        self.input.write_all(text.as_bytes()).map_err(|error| format!("bash: {error}"))
    }
}

/// Whether the shell does not wait for it.
fn goes_on(command: &str) -> bool {
    command.ends_with('&') && !command.ends_with("&&")
}

fn listen(mut from: impl Read + Send + 'static) -> Receiver<Output> {
    let (tell, told) = sync_channel(1);
    thread::spawn(move || {
        while let Some(output) = next(&mut from) {
            if tell.send(output).is_err() {
                return;
            }
        }
    });
    told
}

/// What a command printed, as soon as it has ended.
fn next(from: &mut impl Read) -> Option<Output> {
    let text = until(from, END)?;
    let code = until(from, b'\n')?;
    Some(Output { text, code: code.parse().ok()? })
}

fn until(from: &mut impl Read, end: u8) -> Option<String> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    loop {
        from.read_exact(&mut byte).ok()?;
        if byte[0] == end {
            return Some(String::from_utf8_lossy(&bytes).into_owned());
        }
        bytes.push(byte[0]);
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Everything that the page started is in the shell's group.
        let group = format!("-{}", self.child.id());
        drop(Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status());
        drop(self.child.wait());
    }
}
