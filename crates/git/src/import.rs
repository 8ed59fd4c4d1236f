//! Taking in a pack from somebody who is not trusted.

use std::{
    fs,
    io::{Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use crate::{Error, cli};

/// How long git may check one pack.
const DEADLINE: Duration = Duration::from_secs(120);

/// Bounds of a pack that is imported.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Size of the pack in bytes.
    pub max_bytes: u64,
    /// Number of objects in it.
    pub max_objects: u32,
}

impl Default for Limits {
    /// 256 MiB and 200,000 objects.
    fn default() -> Self {
        Self {
            max_bytes: 256 * 1024 * 1024,
            max_objects: 200_000,
        }
    }
}

/// Checks `pack` in a directory of its own with `git index-pack --strict`, then moves it into `git_dir`. Blocks.
pub(crate) fn import(git_dir: &Path, pack: &[u8], limits: Limits) -> Result<(), Error> {
    let objects = object_count(pack)?;
    if pack.len() as u64 > limits.max_bytes {
        return Err(Error::BadPack(format!(
            "{} bytes are more than {}",
            pack.len(),
            limits.max_bytes
        )));
    }
    if objects > limits.max_objects {
        return Err(Error::BadPack(format!(
            "{objects} objects are more than {}",
            limits.max_objects
        )));
    }
    if objects == 0 {
        return Ok(());
    }
    let quarantine = tempfile::Builder::new()
        .prefix("quarantine-")
        .tempdir_in(git_dir)?;
    fs::create_dir(quarantine.path().join("pack"))?;
    index(git_dir, quarantine.path(), pack, limits)?;
    adopt(&quarantine.path().join("pack"), &git_dir.join("objects/pack"))
}

fn object_count(pack: &[u8]) -> Result<u32, Error> {
    match pack.get(..12) {
        Some([b'P', b'A', b'C', b'K', 0, 0, 0, 2, a, b, c, d]) => Ok(u32::from_be_bytes([*a, *b, *c, *d])),
        Some(_) | None => Err(Error::BadPack("it is not a pack of version 2".to_owned())),
    }
}

fn index(git_dir: &Path, quarantine: &Path, pack: &[u8], limits: Limits) -> Result<(), Error> {
    let mut command = Command::new("git");
    command.args(cli::leading_args(git_dir));
    command
        .args(["index-pack", "--stdin", "--strict"])
        .arg(format!("--max-input-size={}", limits.max_bytes));
    command.env_clear().envs(cli::environment());
    command.env("GIT_OBJECT_DIRECTORY", quarantine);
    command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", git_dir.join("objects"));
    command
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let child = Arc::new(Mutex::new(child));
    let (done, watchdog) = mpsc::channel::<()>();
    let mut text = String::new();
    let timed_out = std::thread::scope(|scope| {
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(pack)));
        let watched = Arc::clone(&child);
        let guard = scope.spawn(move || kill_after(&watched, &watchdog));
        if let Some(stderr) = stderr {
            // Invalid UTF-8 in a message ends the reading early; the exit code still decides.
            let _ = stderr.take(64 * 1024).read_to_string(&mut text);
        }
        drop(done);
        guard.join().unwrap_or(false)
    });
    let status = child.lock().unwrap_or_else(PoisonError::into_inner).wait()?;
    match (timed_out, status.success()) {
        (true, _) => Err(Error::TimedOut(DEADLINE)),
        (false, true) => Ok(()),
        (false, false) => Err(Error::BadPack(cli::summary(&text))),
    }
}

/// True when the deadline passed and the child was killed.
fn kill_after(child: &Mutex<Child>, done: &mpsc::Receiver<()>) -> bool {
    let timed_out = matches!(done.recv_timeout(DEADLINE), Err(mpsc::RecvTimeoutError::Timeout));
    if timed_out {
        // It may have ended at this very moment; then there is nothing to kill.
        let _ = child.lock().unwrap_or_else(PoisonError::into_inner).kill();
    }
    timed_out
}

/// The index goes last: a pack without its index is invisible.
fn adopt(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir_all(to)?;
    let mut names: Vec<_> = fs::read_dir(from)?
        .map(|entry| Ok(entry?.file_name()))
        .collect::<Result<_, Error>>()?;
    names.sort_by_key(|name| {
        Path::new(name)
            .extension()
            .is_some_and(|extension| extension == "idx")
    });
    for name in names {
        fs::rename(from.join(&name), to.join(&name))?;
    }
    Ok(())
}
