//! The `git` command line in isolation: cleared environment, pinned configuration, limited output.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
    sync::LazyLock,
    time::Duration,
};

use rustix::{
    fs::{Access, access},
    process::{Pid, Signal, kill_process_group},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
};

use crate::{
    Error,
    fsck::FETCH_SEVERITIES,
    progress::{FetchWatch, StalledFetch},
};

/// Name of the program.
const NAME: &str = "git";

// Maximum of each output stream that is kept, in bytes. A listing has about 100 bytes for each branch.
const OUTPUT_CAP: usize = 64 * 1024 * 1024;

// Turns off every way in which the configuration of a repository or system could run a program or leave the
// remote.
const PINNED: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=",
    // An empty value would run an empty script; this command ends without listing a reference.
    "core.alternateRefsCommand=exit 1",
    "core.gitProxy=",
    "core.sshCommand=false",
    "credential.helper=",
    "protocol.ext.allow=never",
    "protocol.file.allow=never",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "fetch.fsckObjects=true",
    "transfer.fsckObjects=true",
    "transfer.bundleURI=false",
    // Only a fetch that keeps its objects as a pack leaves a partial pack, with which the next fetch can
    // continue.
    "fetch.unpackLimit=1",
    "http.followRedirects=false",
    "http.cookieFile=",
    "http.saveCookies=false",
    "http.sslVerify=true",
    // Ends a transfer that brings less than 1 byte/s for two minutes.
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=120",
    "gc.auto=0",
    "maintenance.auto=false",
];

// Complete configuration of every bare repository of ours.
const CONFIGURATION: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfilemode = true\n";

// Files that `git` obeys in a bare repository and that ours lack: further configuration, objects of other
// repositories, another common folder, attributes, rewritten history.
const FOREIGN_FILES: [&str; 7] = [
    "config.worktree",
    "commondir",
    "gitdir",
    "info/attributes",
    "info/grafts",
    "objects/info/alternates",
    "objects/info/http-alternates",
];

/// Arguments before every subcommand.
pub(crate) fn build_leading_args(git_dir: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["--git-dir".into(), git_dir.into()];
    for setting in PINNED {
        args.extend(["-c".into(), OsString::from(setting)]);
    }
    for (id, severity) in FETCH_SEVERITIES {
        args.extend(["-c".into(), format!("fetch.fsck.{id}={severity}").into()]);
    }
    args
}

// Environment variables for certificate authorities: the service's name and git's name.
const AUTHORITIES: [(&str, &str); 2] = [
    ("SSL_CERT_FILE", "GIT_SSL_CAINFO"),
    ("SSL_CERT_DIR", "GIT_SSL_CAPATH"),
];

/// Program of every call, searched once. In a cleared environment the standard library starts a program without a
/// path by a fork, which copies the page tables of the whole service.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| find_program(&read_search_path()));

/// Returns the path of the `git` that every call runs; `None` if no folder of `PATH` has it.
pub fn find_git_program() -> Option<&'static Path> {
    Some(PROGRAM.as_path()).filter(|program| program.is_absolute())
}

fn read_search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}

/// Returns the path of `git`, or its name if no folder has it, so that its start fails with the reason.
fn find_program(search_path: &OsStr) -> PathBuf {
    let folders = std::env::split_paths(search_path).filter(|folder| folder.is_absolute());
    let mut files = folders.map(|folder| folder.join(NAME));
    files
        .find(|file| file.is_file() && access(file.as_path(), Access::EXEC_OK).is_ok())
        .unwrap_or_else(|| NAME.into())
}

/// Environment of every call.
pub(crate) fn build_environment() -> Vec<(&'static str, OsString)> {
    let path = read_search_path();
    let authorities = AUTHORITIES.into_iter().filter_map(|(ours, gits)| {
        let value = std::env::var_os(ours).filter(|value| !value.is_empty())?;
        Some((gits, value))
    });
    let pinned = [
        ("PATH", path),
        ("LC_ALL", "C".into()),
        ("HOME", "/nonexistent".into()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
        ("GIT_ATTR_NOSYSTEM", "1".into()),
        ("GIT_TERMINAL_PROMPT", "0".into()),
        ("GIT_NO_REPLACE_OBJECTS", "1".into()),
        ("GIT_NO_LAZY_FETCH", "1".into()),
        ("GIT_ALLOW_PROTOCOL", "http:https".into()),
    ];
    pinned.into_iter().chain(authorities).collect()
}

/// Replaces the configuration of a bare repository and removes files that could make `git` run a program,
/// contact another host or read other objects.
///
/// A process with write access to the folder may have left any of these. Only the objects and refs of the
/// folder are kept.
pub(crate) fn write_configuration(git_dir: &Path) -> Result<(), Error> {
    for name in FOREIGN_FILES {
        remove_file(&git_dir.join(name))?;
    }
    let place = git_dir.join("config");
    // A symbolic link, or a pipe that would block a read, is replaced like other foreign content.
    let is_file = fs::symlink_metadata(&place).is_ok_and(|found| found.is_file());
    if is_file && fs::read(&place).is_ok_and(|found| found == CONFIGURATION.as_bytes()) {
        return Ok(());
    }
    // Renaming a complete file keeps a concurrent `git` from reading half of it.
    let mut written = tempfile::Builder::new()
        .prefix("config-")
        .tempfile_in(git_dir)
        .map_err(|error| Error::failed("the configuration cannot be written", error))?;
    written.write_all(CONFIGURATION.as_bytes())?;
    written
        .persist(&place)
        .map_err(|error| Error::failed("the configuration cannot be written", error.error))?;
    Ok(())
}

fn remove_file(path: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path)?,
        Ok(_) => fs::remove_file(path)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        // A file in the place of a folder has no children.
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    tracing::warn!(path = %path.display(), "removed from a repository of ours: no part of it writes this file");
    Ok(())
}

/// Prepares a `git` command for a bare repository of ours: writes our configuration, inherits nothing.
///
/// # Errors
/// [`Error::Failed`] when the configuration cannot be written.
pub fn prepare_command(git_dir: &Path) -> Result<std::process::Command, Error> {
    write_configuration(git_dir)?;
    let mut command = std::process::Command::new(&*PROGRAM);
    command.args(build_leading_args(git_dir));
    command.env_clear().envs(build_environment()).current_dir("/");
    Ok(command)
}

pub(crate) struct GitOutput {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Connection data of a remote.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RemoteAccess<'a> {
    /// URL to which the headers are restricted: git sends them to no other host or repository.
    pub(crate) url: &'a str,
    /// Headers of every request, with secrets among them.
    pub(crate) headers: &'a [&'a str],
    /// Further settings of git, with secrets among them.
    pub(crate) settings: &'a [(String, String)],
    /// File with the only trusted authorities; absent: those of the service.
    pub(crate) authority: Option<&'a Path>,
    /// Folder of further objects that the repository can read.
    pub(crate) borrowed: Option<&'a Path>,
}

/// Time limit of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallTimeLimit<'a> {
    /// Limit of the total time.
    Total(Duration),
    /// Limit of the time without progress.
    Progress(&'a FetchWatch),
}

/// Runs `git` and returns its output for any exit code. The process and its children end on drop and at the
/// time limit.
pub(crate) async fn run_git(
    git_dir: &Path,
    args: &[OsString],
    input: Vec<u8>,
    remote: RemoteAccess<'_>,
    patience: CallTimeLimit<'_>,
) -> Result<GitOutput, Error> {
    let place = git_dir.to_owned();
    let prepared = tokio::task::spawn_blocking(move || prepare_command(&place));
    let mut command = Command::from(prepared.await.map_err(|error| Error::Failed(error.into()))??);
    command.args(args);
    if let Some(authority) = remote.authority {
        command
            .env("GIT_SSL_CAINFO", authority)
            .env_remove("GIT_SSL_CAPATH");
    }
    if let Some(borrowed) = remote.borrowed {
        command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", borrowed);
    }
    // Other users of the machine can read arguments, but not the environment.
    let header_key = format!("http.{}.extraHeader", remote.url);
    let headers = remote.headers.iter().map(|header| (header_key.as_str(), *header));
    let settings = remote.settings.iter();
    let settings = settings.map(|(key, value)| (key.as_str(), value.as_str()));
    let count = remote.headers.len() + remote.settings.len();
    command.env("GIT_CONFIG_COUNT", count.to_string());
    for (number, (key, value)) in headers.chain(settings).enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{number}"), key);
        command.env(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
    command
        .stdin(if input.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // A separate process group, so that `ProcessGroup` can end git's helpers too.
    command.kill_on_drop(true).process_group(0);
    let child = command
        .spawn()
        .map_err(|error| Error::failed("git cannot be started", error))?;
    let mut group = ProcessGroup(child);
    let (stdin, stdout, stderr) = (group.0.stdin.take(), group.0.stdout.take(), group.0.stderr.take());
    let watch = match patience {
        CallTimeLimit::Total(_) => None,
        CallTimeLimit::Progress(watch) => Some(watch),
    };
    let writing = async {
        if let Some(mut stdin) = stdin {
            // git may end before it reads all input; its exit code reports a failure.
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stdin, &input).await;
        }
    };
    // Both streams are read while git runs: a full pipe would block it.
    let work = async {
        let reading = (read_capped(stdout, None), read_capped(stderr, watch));
        tokio::join!(reading.0, reading.1, group.0.wait(), writing)
    };
    let (stdout, stderr, status, ()) = match patience {
        CallTimeLimit::Total(limit) => tokio::time::timeout(limit, work)
            .await
            .map_err(|_| Error::TimedOut(limit))?,
        CallTimeLimit::Progress(watch) => tokio::select! {
            done = work => done,
            StalledFetch(quiet) = watch.until_stalled(git_dir) => return Err(Error::Stalled(quiet)),
        },
    };
    Ok(GitOutput {
        success: status?.success(),
        stdout: stdout?,
        stderr: stderr?,
    })
}

/// Process group of a child, killed on drop: a killed `git` leaves its helpers running.
struct ProcessGroup(Child);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(id) = self.0.id() {
            kill_group(id);
        }
    }
}

/// Kills a process that leads its group, and its helpers.
pub(crate) fn kill_group(leader: u32) {
    let id = i32::try_from(leader).ok();
    if let Some(group) = id.and_then(Pid::from_raw) {
        // It may have ended at this moment; then nothing is left to end.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Reads a stream to its end and keeps its first bytes. A watch filters the lines of progress.
async fn read_capped(
    stream: Option<impl AsyncRead + Unpin>,
    watch: Option<&FetchWatch>,
) -> Result<String, Error> {
    let Some(mut stream) = stream else {
        return Ok(String::new());
    };
    let (mut kept, mut chunk) = (Vec::new(), vec![0; 8 * 1024]);
    loop {
        let count = stream.read(&mut chunk).await?;
        let Some(read) = chunk.get(..count).filter(|read| !read.is_empty()) else {
            break;
        };
        match watch {
            // Lines of progress are dropped, because they would displace the error message.
            Some(watch) => kept.extend_from_slice(&watch.read(read)),
            None => kept.extend_from_slice(read),
        }
        kept.truncate(OUTPUT_CAP);
    }
    if let Some(watch) = watch {
        kept.extend_from_slice(&watch.read_rest());
    }
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

/// Summary of git's messages for a log line or comment: the last three relevant lines, at most 400
/// characters.
pub(crate) fn summarize_stderr(stderr: &str) -> String {
    let telling = |line: &&str| {
        let line = line.trim();
        let is_noise = ["hint:", "Please make sure", "warning: ", "remote: warning"];
        !line.is_empty() && !is_noise.iter().any(|noise| line.starts_with(noise))
    };
    let lines: Vec<&str> = stderr.lines().filter(telling).map(str::trim).collect();
    let text = lines[lines.len().saturating_sub(3)..].join("; ");
    text.chars().take(400).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn program_has_path_of_first_executable() {
        let folder = tempfile::TempDir::new().unwrap();
        for (name, mode) in [("plain", 0o644), ("first", 0o755), ("second", 0o755)] {
            let file = folder.path().join(name).join(NAME);
            fs::create_dir(file.parent().unwrap()).unwrap();
            fs::write(&file, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir_all(folder.path().join("folder").join(NAME)).unwrap();
        let place = |name: &str| folder.path().join(name);
        for (names, found) in [
            ("absent folder plain first second", place("first").join(NAME)),
            ("second first", place("second").join(NAME)),
            ("folder", PathBuf::from(NAME)),
            ("", PathBuf::from(NAME)),
        ] {
            let relative = [PathBuf::from("relative")].into_iter();
            let folders = relative.chain(names.split_whitespace().map(place));
            let search_path = std::env::join_paths(folders).unwrap();
            assert_eq!(find_program(&search_path), found, "{names:?}");
        }
    }

    #[test]
    fn prepared_command_names_program_by_path() {
        let folder = tempfile::TempDir::new().unwrap();
        let command = prepare_command(folder.path()).unwrap();
        assert!(Path::new(command.get_program()).is_absolute());
    }
}
