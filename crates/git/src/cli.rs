//! The `git` command line with nothing inherited: cleared environment, pinned configuration, capped output.

use std::{ffi::OsString, path::Path, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::Command,
};

use crate::Error;

/// How much of each output stream is kept, in bytes.
const OUTPUT_CAP: usize = 1024 * 1024;

/// Every way in which a repository's or the system's configuration could run a program or leave the remote is off.
const PINNED: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=",
    "credential.helper=",
    "protocol.ext.allow=never",
    "protocol.file.allow=never",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "fetch.fsckObjects=true",
    "transfer.fsckObjects=true",
    "transfer.bundleURI=false",
    "http.followRedirects=false",
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=60",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// Arguments that stand before every subcommand.
pub(crate) fn leading_args(git_dir: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["--git-dir".into(), git_dir.into()];
    for setting in PINNED {
        args.extend(["-c".into(), OsString::from(setting)]);
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
        ("GIT_TERMINAL_PROMPT", "0".into()),
        ("GIT_NO_REPLACE_OBJECTS", "1".into()),
        ("GIT_ALLOW_PROTOCOL", "http:https".into()),
    ];
    pinned.into_iter().chain(authorities).collect()
}

pub(crate) struct Output {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// What a remote asks of who talks to it, and what it must show.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Remote<'a> {
    /// Headers of every request; they may be secrets.
    pub(crate) headers: &'a [&'a str],
    /// The file of the only authorities that count; absent: those of the service.
    pub(crate) authority: Option<&'a Path>,
}

/// Runs `git` and gives its output, whatever its exit code; killed on drop and at the deadline.
pub(crate) async fn run(
    git_dir: &Path,
    args: &[OsString],
    remote: Remote<'_>,
    deadline: Duration,
) -> Result<Output, Error> {
    let mut command = Command::new("git");
    command.args(leading_args(git_dir)).args(args);
    command.env_clear().envs(environment());
    if let Some(authority) = remote.authority {
        command
            .env("GIT_SSL_CAINFO", authority)
            .env_remove("GIT_SSL_CAPATH");
    }
    // The environment, not the command line: other users of the machine can read the latter.
    command.env("GIT_CONFIG_COUNT", remote.headers.len().to_string());
    for (number, header) in remote.headers.iter().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{number}"), "http.extraHeader");
        command.env(format!("GIT_CONFIG_VALUE_{number}"), header);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.current_dir("/").kill_on_drop(true).process_group(0);
    let mut child = command
        .spawn()
        .map_err(|error| Error::failed("git cannot be started", error))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let work = async { tokio::join!(read_capped(stdout), read_capped(stderr), child.wait()) };
    let (stdout, stderr, status) = tokio::time::timeout(deadline, work)
        .await
        .map_err(|_| Error::TimedOut(deadline))?;
    Ok(Output {
        success: status?.success(),
        stdout: stdout?,
        stderr: stderr?,
    })
}

async fn read_capped(stream: Option<impl AsyncRead + Unpin>) -> Result<String, Error> {
    let Some(mut stream) = stream else {
        return Ok(String::new());
    };
    let mut kept = Vec::new();
    (&mut stream)
        .take(OUTPUT_CAP as u64)
        .read_to_end(&mut kept)
        .await?;
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

/// What git said, short enough for a log line or a comment: the last telling lines.
pub(crate) fn summary(stderr: &str) -> String {
    let telling = |line: &&str| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with("hint:") && !line.starts_with("Please make sure")
    };
    let lines: Vec<&str> = stderr.lines().filter(telling).map(str::trim).collect();
    let text = lines[lines.len().saturating_sub(3)..].join("; ");
    text.chars().take(400).collect()
}
