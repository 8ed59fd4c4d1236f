//! The `git` command line with nothing inherited: cleared environment, pinned configuration, capped output.

use std::{ffi::OsString, path::Path, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
};

use crate::{
    Error,
    configuration::write_configuration,
    fsck::FETCH_SEVERITIES,
    progress::{FetchWatch, Stalled},
};

/// How much of each output stream is kept, in bytes.
const OUTPUT_CAP: usize = 8 * 1024 * 1024;

/// Every way in which a repository's or the system's configuration could run a program or leave the remote is off.
const PINNED: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=",
    // An empty command would run an empty script; this one ends without naming a reference.
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
    // A fetch that is interrupted leaves its pack, from which the next one goes on, only where it is kept as a pack.
    "fetch.unpackLimit=1",
    "http.followRedirects=false",
    "http.cookieFile=",
    "http.saveCookies=false",
    "http.sslVerify=true",
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=120",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// Arguments that stand before every subcommand.
pub(crate) fn leading_args(git_dir: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["--git-dir".into(), git_dir.into()];
    for setting in PINNED {
        args.extend(["-c".into(), OsString::from(setting)]);
    }
    for (id, severity) in FETCH_SEVERITIES {
        args.extend(["-c".into(), format!("fetch.fsck.{id}={severity}").into()]);
    }
    args
}

/// Where everything else of a service takes its certificate authorities from, and what git calls it.
const AUTHORITIES: [(&str, &str); 2] = [
    ("SSL_CERT_FILE", "GIT_SSL_CAINFO"),
    ("SSL_CERT_DIR", "GIT_SSL_CAPATH"),
];

/// The whole environment of every call.
pub(crate) fn environment() -> Vec<(&'static str, OsString)> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
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

/// A `git` command over a bare repository of ours, with our configuration in it and nothing inherited.
///
/// # Errors
/// [`Error::Failed`] when the disk refuses.
pub fn prepare_command(git_dir: &Path) -> Result<std::process::Command, Error> {
    write_configuration(git_dir)?;
    let mut command = std::process::Command::new("git");
    command.args(leading_args(git_dir));
    command.env_clear().envs(environment()).current_dir("/");
    Ok(command)
}

pub(crate) struct Output {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// What a remote asks of its callers, and what it must show.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Remote<'a> {
    /// The address that headers are for: no other host, and no other repository of the host, is sent one.
    pub(crate) url: &'a str,
    /// Headers of every request; they may be secrets.
    pub(crate) headers: &'a [&'a str],
    /// The file of the only authorities that count; absent: those of the service.
    pub(crate) authority: Option<&'a Path>,
    /// Objects of another folder that count as this repository's own.
    pub(crate) borrowed: Option<&'a Path>,
}

/// How long a call may take.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience<'a> {
    /// This long altogether.
    Total(Duration),
    /// As long as it makes progress.
    Progress(&'a FetchWatch),
}

/// Runs `git` and gives its output, whatever its exit code. It ends with all that it started on drop, and when it has had
/// its time.
pub(crate) async fn run(
    git_dir: &Path,
    args: &[OsString],
    input: Vec<u8>,
    remote: Remote<'_>,
    patience: Patience<'_>,
) -> Result<Output, Error> {
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
    // The environment, not the command line: other users of the machine can read the latter.
    command.env("GIT_CONFIG_COUNT", remote.headers.len().to_string());
    for (number, header) in remote.headers.iter().enumerate() {
        let key = format!("http.{}.extraHeader", remote.url);
        command.env(format!("GIT_CONFIG_KEY_{number}"), key);
        command.env(format!("GIT_CONFIG_VALUE_{number}"), header);
    }
    command
        .stdin(if input.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.kill_on_drop(true).process_group(0);
    let child = command
        .spawn()
        .map_err(|error| Error::failed("git cannot be started", error))?;
    let mut group = ProcessGroup(child);
    let (stdin, stdout, stderr) = (group.0.stdin.take(), group.0.stdout.take(), group.0.stderr.take());
    let watch = match patience {
        Patience::Total(_) => None,
        Patience::Progress(watch) => Some(watch),
    };
    let writing = async {
        if let Some(mut stdin) = stdin {
            // It may have read enough; its exit code says whether that was so.
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stdin, &input).await;
        }
    };
    let work = async {
        let reading = (read_capped(stdout, None), read_capped(stderr, watch));
        tokio::join!(reading.0, reading.1, group.0.wait(), writing)
    };
    let (stdout, stderr, status, ()) = match patience {
        Patience::Total(limit) => tokio::time::timeout(limit, work)
            .await
            .map_err(|_| Error::TimedOut(limit))?,
        Patience::Progress(watch) => tokio::select! {
            done = work => done,
            Stalled(quiet) = watch.until_stalled(git_dir) => return Err(Error::Stalled(quiet)),
        },
    };
    Ok(Output {
        success: status?.success(),
        stdout: stdout?,
        stderr: stderr?,
    })
}

/// A process and all that it started. Dropping this ends them: `git` leaves its helpers running when it is killed alone.
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

/// Reads a stream to its end and keeps its first bytes; a watch reads along.
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
            // What only tells of progress is not kept: it would leave no room for what is wrong.
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

/// What git said, short enough for a log line or a comment: the last telling lines.
pub(crate) fn summary(stderr: &str) -> String {
    let telling = |line: &&str| {
        let line = line.trim();
        let is_noise = ["hint:", "Please make sure", "warning: ", "remote: warning"];
        !line.is_empty() && !is_noise.iter().any(|noise| line.starts_with(noise))
    };
    let lines: Vec<&str> = stderr.lines().filter(telling).map(str::trim).collect();
    let text = lines[lines.len().saturating_sub(3)..].join("; ");
    text.chars().take(400).collect()
}
