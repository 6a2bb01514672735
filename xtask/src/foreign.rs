//! Clients that are not ours, against the real binary: what only our own client and our own tests understand is no API.
//!
//! * grpcio calls every verb of the gRPC API with nothing but what the server says of itself by reflection.
//! * schemathesis sends what the served description allows, and much that it does not; the server must answer
//!   all of it, and every answer must be one that the description promises.
//! * hyperframe and slowhttptest do what no client should: floods of frames, thousands that are slow, and bodies that are
//!   bombs. Meanwhile a healthy client goes on, and the server's memory stays.
//! * sslyze looks at what the TLS port offers.
//! * standardwebhooks verifies what we sign.
//!
//! All but slowhttptest, which is Debian's, come from the Python package index into a virtual environment below the target
//! folder, in the versions of `requirements.txt`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::{self, Failure, cargo};
use crate::debian;
use crate::server::{self, Server};

/// Where the clients are, from the root.
const CLIENTS: &str = "crates/cli/tests/foreign";
/// The oldest Python that the clients run on.
const PYTHON: &str = "import sys; sys.exit(sys.version_info < (3, 11))";

pub(crate) fn run(root: &Path, features: &[&str]) -> Result<(), Failure> {
    let clients = root.join(CLIENTS);
    let binaries = server::binaries()?;
    let home = binaries.join("foreign");
    let python = python(&clients.join("requirements.txt"), &home)?;
    slowhttptest()?;
    let redrive = server::build(root, features)?;
    // An example that is built as a test is no program.
    let build = ["build", "--workspace", "--locked", "--example", "sign_cases"];
    command::run(cargo(root, &[&build[..], features].concat()))?;

    let cases = binaries.join("examples").join("sign_cases");
    run_script(&python, &clients.join("webhook_signatures.py"), &[&cases.display().to_string()])?;
    let serve = |flags: &[&str]| {
        let mut command = Command::new(&redrive);
        command.args(["serve", "--log-level", "error"]).args(flags).current_dir(&home);
        Server::start(command, home.join("data"))
    };
    run_script(&python, &clients.join("grpc_client.py"), &[serve(&[])?.address()])?;
    openapi(&serve(&[])?, &python, &clients, &home)?;
    for attack in ["floods.py", "slow.py", "bombs.py"] {
        let server = serve(&[])?;
        run_script(&python, &clients.join(attack), &[server.address(), &server.pid()])?;
    }
    run_script(&python, &clients.join("certificate.py"), &[&home.display().to_string()])?;
    let server = serve(&["--tls-cert", "cert.pem", "--tls-key", "key.pem"])?;
    run_script(&python, &clients.join("tls.py"), &[server.address()])
}

/// A script of ours, which leaves nothing behind in the tree.
fn run_script(python: &Path, script: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new(python);
    command.env("PYTHONDONTWRITEBYTECODE", "1").arg(script).args(arguments);
    command::run(command)
}

/// What is sent, and what is checked, is in `schemathesis.toml`; what it writes stays in `home`.
fn openapi(server: &Server, python: &Path, clients: &Path, home: &Path) -> Result<(), Failure> {
    let mut command = Command::new(python);
    command.env("SCHEMATHESIS_HOOKS", clients.join("hooks.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    command.args(["-m", "schemathesis.cli", "--config-file"]).arg(clients.join("schemathesis.toml"));
    command.arg("run").arg(format!("http://{}/openapi.json", server.address())).current_dir(home);
    command::run(command)
}

/// The Python of a virtual environment that has what is required. One that was made for the same requirements is used
/// again.
fn python(requirements: &Path, home: &Path) -> Result<PathBuf, Failure> {
    let (environment, stamp) = (home.join("venv"), home.join("requirements.txt"));
    let python = environment.join("bin").join("python");
    let required = read(requirements)?;
    // A Python that was upgraded or taken away leaves an environment behind that does not start.
    if fs::read(&stamp).is_ok_and(|installed| installed == required) && says_yes(&python, PYTHON) {
        return Ok(python);
    }
    system_python()?;
    drop(fs::remove_file(&stamp));
    drop(fs::remove_dir_all(&environment));
    let mut create = Command::new("python3");
    create.args(["-m", "venv"]).arg(&environment);
    command::run(create)?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "--disable-pip-version-check", "install", "--quiet", "-r"]).arg(requirements);
    command::run(install)?;
    write(&stamp, &required)?;
    Ok(python)
}

/// Sees to it that there is a Python which can make virtual environments. Debian has that part in a package of its own.
fn system_python() -> Result<(), Failure> {
    let remedy = "apt-get install python3 python3-venv";
    if !says_yes(Path::new("python3"), PYTHON) {
        return Err(Failure::NotInstalled { tool: "Python 3.11 or later", remedy });
    }
    if says_yes(Path::new("python3"), "import ensurepip, venv") {
        return Ok(());
    }
    debian::install("python3-venv").map_err(|_| Failure::NotInstalled { tool: "python3-venv", remedy })
}

/// Sees to it that slowhttptest is there.
fn slowhttptest() -> Result<(), Failure> {
    let mut ask = Command::new("slowhttptest");
    if ask.arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok() {
        return Ok(());
    }
    let remedy = "apt-get install slowhttptest";
    debian::install("slowhttptest").map_err(|_| Failure::NotInstalled { tool: "slowhttptest", remedy })
}

/// Whether a Python is there and ends this program well.
fn says_yes(python: &Path, program: &str) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", program]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|cause| unreadable(path, cause))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes).map_err(|cause| unreadable(path, cause))
}

fn unreadable(path: &Path, cause: io::Error) -> Failure {
    Failure::Unreadable { path: path.display().to_string(), cause }
}
