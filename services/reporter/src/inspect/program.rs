//! The main of the `inspector` program: confines itself, reads a task and a pack from its standard input, and writes
//! the verdict as JSON to its standard output.

use std::{
    fs,
    io::{self, BufRead, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use super::{Task, confine, examine::examine, process::UNCONFINED};

/// The longest task, in bytes.
const MAX_TASK: u64 = 1024 * 1024;

/// The inspector's main; the reporter starts it.
///
/// `inspector FOLDER [--unconfined]` looks at what comes in on its standard input. `inspector FOLDER --probe` says
/// whether it can confine itself here, and that it cannot read any `--forbidden=FILE`.
pub fn run() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((folder, options)) = arguments.split_first() else {
        return complain("usage: inspector FOLDER [--probe|--unconfined]; the reporter starts it");
    };
    let has = |name: &str| options.iter().any(|option| option == name);
    let folder = PathBuf::from(folder);
    let confined = confine::set_limits().and_then(|()| {
        if has(UNCONFINED) {
            return Ok(());
        }
        confine::confine(&folder)
    });
    let done = confined.and_then(|()| {
        if has("--probe") {
            probe(&folder, options)
        } else {
            inspect(&folder)
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => complain(&problem),
    }
}

fn inspect(folder: &Path) -> Result<(), String> {
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    let text = |error: io::Error| format!("standard input: {error}");
    (&mut input)
        .take(MAX_TASK)
        .read_until(b'\n', &mut line)
        .map_err(text)?;
    let task: Task = serde_json::from_slice(&line).map_err(|error| format!("the task: {error}"))?;
    let mut pack = Vec::new();
    input
        .take(task.limits.max_pack_bytes + 1)
        .read_to_end(&mut pack)
        .map_err(text)?;
    let verdict = examine(folder, &task, &pack);
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, &verdict).map_err(|error| error.to_string())?;
    output.flush().map_err(|error| error.to_string())
}

/// What the work needs is possible, and what it must not do is not.
fn probe(folder: &Path, options: &[String]) -> Result<(), String> {
    let inside = tempfile::Builder::new().prefix("probe-").tempdir_in(folder);
    let inside = inside.map_err(|error| format!("{} cannot be written: {error}", folder.display()))?;
    let (from, to) = (inside.path().join("from"), inside.path().join("to"));
    let moved = fs::create_dir(&from)
        .and_then(|()| fs::create_dir(&to))
        .and_then(|()| fs::write(from.join("file"), "x"))
        .and_then(|()| fs::rename(from.join("file"), to.join("file")));
    // Landlock's first version allows no move between folders.
    moved.map_err(|error| {
        format!("the kernel's Landlock is too old (Linux 5.19 or newer is needed): {error}")
    })?;
    let mut forbidden = options
        .iter()
        .filter_map(|option| option.strip_prefix("--forbidden="));
    if let Some(file) = forbidden.find(|file| fs::read(file).is_ok()) {
        return Err(format!("{file} stays readable"));
    }
    if fs::read_dir("/").is_ok() || fs::read("/proc/self/environ").is_ok() {
        return Err("files outside of the mirror stay readable".to_owned());
    }
    if std::net::TcpListener::bind("127.0.0.1:0").is_ok() {
        return Err("the network stays reachable".to_owned());
    }
    Ok(())
}

fn complain(problem: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "{problem}");
    ExitCode::FAILURE
}
