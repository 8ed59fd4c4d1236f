//! Pages about the command line. The test runs their examples.

use std::{collections::BTreeSet, fs, path::Path};

use clap::{Command, CommandFactory};

fn build_page_path(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    docs.join(name).display().to_string()
}

/// Collects a command and its subcommands, as users call them.
fn collect_command_calls(command: &Command, before: &str, found: &mut BTreeSet<String>) {
    let call = format!("{before}{}", command.get_name());
    for below in command.get_subcommands() {
        collect_command_calls(below, &format!("{call} "), found);
    }
    found.insert(call);
}

#[test]
fn pages_match_help_and_run_examples() {
    let nowhere = tempfile::tempdir().unwrap();
    let home = nowhere.path().display().to_string();
    let cases = trycmd::TestCases::new();
    cases.register_bin("journeyman", e2e::find_binary("journeyman").unwrap());
    // Without a home there is no login, and no settings of the machine apply.
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
        cases.env(name, &home);
    }
    cases
        .case(build_page_path("commands.md"))
        .case(build_page_path("cli.md"));
    cases.run();
}

#[test]
fn every_command_has_help_on_page() {
    let text = fs::read_to_string(build_page_path("commands.md")).unwrap();
    let shown: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("$ ")?.strip_suffix(" --help"))
        .map(str::to_owned)
        .collect();
    let mut there = BTreeSet::new();
    collect_command_calls(&journeyman::Arguments::command(), "", &mut there);
    assert_eq!(shown, there);
}

#[test]
fn client_ignores_foreign_variable_without_utf8() {
    let nowhere = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(e2e::find_binary("journeyman").unwrap());
    let command = command.arg("runs").env_clear().current_dir(nowhere.path());
    let foreign: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff");
    let ran = command.env("FOREIGN", foreign).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(4), "{said}");
    assert!(said.starts_with("journeyman: no API: "), "{said}");
}

#[test]
fn missing_login_names_broken_file() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".config/journeyman");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("logins.json"), "{").unwrap();
    let mut command = std::process::Command::new(e2e::find_binary("journeyman").unwrap());
    let command = command.arg("runs").env_clear().env("HOME", home.path());
    let ran = command.current_dir(home.path()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(4), "{said}");
    assert!(
        said.contains("logins.json is not a list of logins") && said.contains("no API: "),
        "{said}"
    );
}

#[test]
fn invalid_argument_ends_with_its_exit_code() {
    for arguments in [
        &["stop", "nothing"][..],
        &["token", "Ada"],
        &["token", "ada", "--role", "guest"],
    ] {
        let mut command = std::process::Command::new(e2e::find_binary("journeyman").unwrap());
        let ran = command.args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{arguments:?}: {said}");
    }
}

#[test]
fn command_ends_silently_when_reader_closes() {
    for arguments in [
        &["token", "ada", "--role", "viewer"][..],
        &["completions", "bash"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = std::process::Command::new(e2e::find_binary("journeyman").unwrap());
        let command = command.args(arguments);
        let ran = command.stdout(writer).stderr(std::process::Stdio::piped());
        let ran = ran.spawn().unwrap().wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ran.stderr), "", "{arguments:?}");
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&ran.status),
            Some(15),
            "{arguments:?}"
        );
    }
}
