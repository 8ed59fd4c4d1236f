//! Main function of the `inspector` program.
//!
//! It confines itself, reads a task and a pack from standard input, and writes the verdict as JSON to standard
//! output.

use std::{
    ffi::OsString,
    fs,
    io::{self, BufRead, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use super::{
    InspectionTask, confine,
    examine::examine_push,
    process::{MEMORY, MOST_MEMORY, UNCONFINED},
};

// Longest task, in bytes.
const MAX_TASK: u64 = 1024 * 1024;

/// Runs the inspector, which the reporter starts.
///
/// `inspector MIRROR QUARANTINE [--memory=BYTES] [--unconfined]` inspects the change on its standard input. With
/// `--probe` it reports if it can confine itself here, if `MIRROR` is read-only, and if every `--forbidden=FILE` is
/// unreadable.
pub fn run_inspection() -> ExitCode {
    // `std::env::args` would panic for an argument that is not UTF-8.
    let arguments = match read_arguments(std::env::args_os().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => return print_problem(&problem),
    };
    let [mirror, quarantine, options @ ..] = arguments.as_slice() else {
        return print_problem(
            "usage: inspector MIRROR QUARANTINE [--memory=BYTES] [--probe|--unconfined]; the reporter starts it",
        );
    };
    let has = |name: &str| options.iter().any(|option| option == name);
    let (mirror, quarantine) = (PathBuf::from(mirror), PathBuf::from(quarantine));
    let memory = options
        .iter()
        .find_map(|option| option.strip_prefix(MEMORY)?.parse().ok())
        .unwrap_or(MOST_MEMORY);
    // Limits and confinement come first: the task and the pack are the first foreign bytes of this
    // process.
    let confined = confine::set_limits(memory).and_then(|()| {
        if has(UNCONFINED) {
            return Ok(());
        }
        confine::confine_process(&mirror, &quarantine)
    });
    let done = confined.and_then(|()| {
        if has("--probe") {
            probe_confinement(&mirror, &quarantine, options)
        } else {
            inspect_stdin(&mirror, &quarantine, memory)
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => print_problem(&problem),
    }
}

/// Arguments as text. A path with other bytes is refused, because its text would name another folder.
fn read_arguments(arguments: impl Iterator<Item = OsString>) -> Result<Vec<String>, String> {
    let text = arguments.map(OsString::into_string);
    text.collect::<Result<_, _>>()
        .map_err(|argument| format!("the argument {argument:?} is not UTF-8"))
}

fn inspect_stdin(mirror: &Path, quarantine: &Path, memory: u64) -> Result<(), String> {
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    let text = |error: io::Error| format!("standard input: {error}");
    (&mut input)
        .take(MAX_TASK)
        .read_until(b'\n', &mut line)
        .map_err(text)?;
    let task: InspectionTask = serde_json::from_slice(&line).map_err(|error| format!("the task: {error}"))?;
    let mut pack = Vec::new();
    // One byte more than the limit lets the import see that the pack is too large.
    input
        .take(task.limits.max_pack_bytes + 1)
        .read_to_end(&mut pack)
        .map_err(text)?;
    let verdict = examine_push(mirror, quarantine, &task, &pack, memory);
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, &verdict).map_err(|error| error.to_string())?;
    output.flush().map_err(|error| error.to_string())
}

/// Checks that the inspection's needs are possible, and that everything else is not.
fn probe_confinement(mirror: &Path, quarantine: &Path, options: &[String]) -> Result<(), String> {
    let inside = tempfile::Builder::new().prefix("probe-").tempdir_in(quarantine);
    let inside = inside.map_err(|error| format!("{} cannot be written: {error}", quarantine.display()))?;
    let (from, to) = (inside.path().join("from"), inside.path().join("to"));
    let moved = fs::create_dir(&from)
        .and_then(|()| fs::create_dir(&to))
        .and_then(|()| fs::write(from.join("file"), "x"))
        .and_then(|()| fs::rename(from.join("file"), to.join("file")));
    // Landlock before ABI 2 permits no move between folders.
    moved.map_err(|error| {
        format!("the kernel's Landlock is too old (Linux 5.19 or newer is needed): {error}")
    })?;
    refuse_writes(mirror, &from)?;
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

/// Checks that the files that `git` obeys in a mirror cannot change: configuration, other objects, refs, hooks.
fn refuse_writes(mirror: &Path, inside: &Path) -> Result<(), String> {
    fs::read_dir(mirror).map_err(|error| format!("{} cannot be read: {error}", mirror.display()))?;
    let names = [
        "config",
        "HEAD",
        "packed-refs",
        "probe",
        "objects/info/alternates",
        "refs/heads/probe",
        "hooks/probe",
    ];
    for name in names {
        let place = mirror.join(name);
        let opened = fs::OpenOptions::new().append(true).create(true).open(&place);
        let renamed = fs::rename(inside, &place);
        let linked = std::os::unix::fs::symlink("/etc/passwd", mirror.join("probe-link"));
        if opened.is_ok() || renamed.is_ok() || linked.is_ok() {
            return Err(format!("{} stays writable", place.display()));
        }
    }
    if fs::remove_file(mirror.join("config")).is_ok() {
        return Err(format!("{} stays writable", mirror.display()));
    }
    Ok(())
}

fn print_problem(problem: &str) -> ExitCode {
    // A closed standard error changes nothing: the exit code already reports the failure.
    let _ = writeln!(io::stderr(), "{problem}");
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn argument_without_utf8_is_refused() {
        let read = |arguments: &[&[u8]]| {
            let arguments = arguments.iter().map(|bytes| OsString::from_vec(bytes.to_vec()));
            read_arguments(arguments)
        };
        assert_eq!(read(&[b"/mirror", b"/work"]).unwrap(), ["/mirror", "/work"]);
        assert_eq!(
            read(&[b"/mirror", b"/\xff"]).unwrap_err(),
            r#"the argument "/\xFF" is not UTF-8"#
        );
    }
}
