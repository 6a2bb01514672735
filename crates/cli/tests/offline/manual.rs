//! Completions, manual pages, and the help of everything.

use std::path::Path;

use crate::run::redrive;

#[test]
fn every_shell_gets_its_script() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = redrive(Path::new("/"), &["completion", shell]).ok();
        assert!(script.contains("simulate") && script.contains("base-delay"), "{shell}");
    }
    redrive(Path::new("/"), &["completion", "tcsh"]).failed(2, "tcsh");
}

#[test]
fn every_command_has_a_manual_page() {
    let dir = tempfile::tempdir().unwrap();
    redrive(dir.path(), &["man", "--dir", "pages/man1"]).ok();
    for page in [
        "redrive.1",
        "redrive-serve.1",
        "redrive-simulate.1",
        "redrive-store-repair.1",
        "redrive-config-show.1",
    ] {
        let text = std::fs::read_to_string(dir.path().join("pages/man1").join(page)).unwrap();
        assert!(text.contains(".SH NAME"), "{page}");
    }
    assert!(!dir.path().join("pages/man1/redrive-openapi.1").exists(), "nobody is meant to call it");
    assert!(redrive(dir.path(), &["man"]).ok().contains(".SH SUBCOMMANDS"));
    std::fs::write(dir.path().join("file"), "").unwrap();
    redrive(dir.path(), &["man", "--dir", "file/below"]).failed(1, "file/below");
}

#[test]
fn all_help_stands_on_one_page() {
    let page = redrive(Path::new("/"), &["help", "--all"]).ok();
    for said in [
        "\nredrive serve\n",
        "\nredrive store repair\n",
        "\nredrive config default\n",
        "--base-delay",
        "--dry-run",
    ] {
        assert!(page.contains(said), "{said:?}");
    }
    assert!(!page.contains("bench-parse-only"));
    let one = redrive(Path::new("/"), &["help", "store", "repair"]).ok();
    assert!(one.contains("Usage: redrive store repair") && one.contains("--yes"), "{one}");
    assert!(redrive(Path::new("/"), &["help"]).ok().contains("Usage: redrive"));
    redrive(Path::new("/"), &["help", "nothing"]).failed(2, "there is no command `nothing`");
    redrive(Path::new("/"), &["help", "--all", "store"]).failed(2, "--all");
}
