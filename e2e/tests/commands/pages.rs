//! Pages about the command line. The test runs their examples.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use clap::{Command, CommandFactory};

use crate::find_repository_root;

fn build_page_path(name: &str) -> String {
    let page = find_repository_root().join("docs").join(name);
    page.display().to_string()
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

/// Collects the Markdown pages of a folder.
fn collect_pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_pages(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

/// Returns the calls of the command that a page shows, in fenced code and in code spans. Examples of wrong arguments are
/// left out.
fn list_shown_calls(page: &str) -> Vec<String> {
    let (mut calls, mut prose) = (Vec::new(), String::new());
    let mut is_code = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if is_code && line.trim() == "? 2" {
            // The example shows a mistake and its answer.
            calls.pop();
        } else if is_code {
            let line = line.trim();
            calls.push(line.strip_prefix("$ ").unwrap_or(line).to_owned());
        } else {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    let spans = prose.split('`').skip(1).step_by(2);
    calls.extend(spans.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" ")));
    calls.retain(|call| call.starts_with("journeyman "));
    calls
}

/// Returns the first word of a call that names no subcommand or flag. Placeholders and values pass.
fn find_unknown_word(root: &Command, call: &str) -> Option<String> {
    let mut command = root;
    let mut is_path = true;
    for word in call.split_whitespace().skip(1) {
        let word = word.trim_matches(['[', ']', '(', ')', ',', ';', '.']);
        if word.starts_with('#') || ["", "|", ">", "<", "&&", "\\", "help"].contains(&word) {
            return None;
        }
        if let Some(flag) = word.strip_prefix("--") {
            let name = flag.split(['=', '|', '\\']).next().unwrap_or_default();
            let mut known = command
                .get_arguments()
                .filter_map(clap::Arg::get_long_and_visible_aliases);
            if !name.is_empty() && !known.any(|names| names.contains(&name)) {
                return Some(word.to_owned());
            }
            // The next word may be the value of the flag.
            if is_path && command.has_subcommands() {
                return None;
            }
        } else if is_path && !word.starts_with('-') {
            if let Some(next) = command.find_subcommand(word) {
                command = next;
                continue;
            }
            is_path = false;
            let is_name = word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            if is_name && command.has_subcommands() {
                return Some(word.to_owned());
            }
        }
    }
    None
}

#[test]
fn pages_show_existing_commands_and_flags() {
    let root = find_repository_root();
    let mut pages = vec![root.join("README.md")];
    collect_pages(&root.join("docs"), &mut pages);
    let mut command = journeyman::Arguments::command();
    command.build();
    let (mut count, mut unknown) = (0, Vec::new());
    for page in pages {
        for call in list_shown_calls(&fs::read_to_string(&page).unwrap()) {
            count += 1;
            if let Some(word) = find_unknown_word(&command, &call) {
                unknown.push(format!("{}: {word} in {call}", page.display()));
            }
        }
    }
    assert!(
        count > 300,
        "only {count} calls were found, so pages are not read as expected"
    );
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn refused_example_is_no_shown_call() {
    let page = "```console\n$ journeyman tyr\n? 2\nerror: …\n\n$ journeyman try TEXT\n```\n";
    assert_eq!(list_shown_calls(page), ["journeyman try TEXT"]);
}

#[test]
fn unknown_words_of_calls_are_found() {
    let mut command = journeyman::Arguments::command();
    command.build();
    let find = |call: &str| find_unknown_word(&command, call);
    assert_eq!(find("journeyman tyr \"Fix it\""), Some("tyr".to_owned()));
    assert_eq!(find("journeyman setup gitlab"), Some("gitlab".to_owned()));
    assert_eq!(find("journeyman try TEXT --acept"), Some("--acept".to_owned()));
    assert_eq!(find("journeyman dead list|show # lists"), None);
    assert_eq!(find("journeyman tickets [--interactive]"), None);
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
