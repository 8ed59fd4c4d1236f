//! Servers that outlive a start: a watcher ends them with their owner, and a record lets the next start end what is left.

use std::{
    fmt, io,
    os::unix::{fs::MetadataExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};

/// Waits until its input ends, which happens however the owner dies, and kills the group of the server.
const WATCH: &str = "read -r line; kill -9 \"-$1\"";
/// How long a killed server may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

#[expect(
    clippy::disallowed_methods,
    reason = "servers start before there is work for the runtime"
)]
fn wait_briefly() {
    std::thread::sleep(POLL);
}

/// A process that kills a server when its owner is gone, even by a signal that cannot be handled. Dropping it ends the watch.
pub(crate) struct Watcher(Child);

impl Watcher {
    /// Watches over the process group of a server. Without a shell nothing is watched.
    pub(crate) fn start(name: &str, server: u32) -> Option<Self> {
        let watcher = Command::new("/bin/sh")
            .args(["-c", WATCH, "watcher"])
            .arg(server.to_string())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A Ctrl-C is for the owner, who ends the server in order.
            .process_group(0)
            .spawn();
        match watcher {
            Ok(child) => Some(Self(child)),
            Err(error) => {
                tracing::warn!(server = name, %error, "nothing ends this server if its owner is killed");
                None
            }
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Killed before its input ends: the server's number may be another process's by now.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process, and when it started: its number alone may be another's later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    pid: u32,
    /// In clock ticks since the machine started.
    start: u64,
}

impl Identity {
    fn of(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold anything.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        let is_dead = matches!(fields.next()?, "Z" | "X");
        let start = fields.nth(18)?.parse().ok()?;
        (!is_dead).then_some(Self { pid, start })
    }

    fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    fn read(line: &str) -> Option<Self> {
        let (pid, start) = line.split_once(' ')?;
        Some(Self {
            pid: pid.parse().ok()?,
            start: start.parse().ok()?,
        })
    }
}

/// Server of an earlier start that did not end in order, such as one that was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerRemains {
    server: &'static str,
    pid: u32,
    /// It ran until now; else it ended with its owner.
    was_running: bool,
}

impl fmt::Display for ServerRemains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            server,
            pid,
            was_running,
        } = self;
        let what = match was_running {
            true => "was still running and has been ended",
            false => "ended with it",
        };
        write!(
            f,
            "the last start did not end in order: its {server} (process {pid}) {what}"
        )
    }
}

/// Folder for one process, named after what it is for, that goes with its value; one whose process was killed goes with the next
/// [`ScratchFolder::remove_left_behind`].
pub struct ScratchFolder(tempfile::TempDir);

/// The file that names the owner of a scratch folder.
const OWNER_FILE: &str = "owner";

impl ScratchFolder {
    /// Creates one for this process among the temporary files.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(prefix: &str) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
        if let (Some(owner), Some(boot)) = (Identity::of(std::process::id()), boot()) {
            let text = format!("{boot}\n{} {}\n", owner.pid, owner.start);
            std::fs::write(folder.path().join(OWNER_FILE), text)?;
        }
        Ok(Self(folder))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Removes this user's folders with this prefix whose processes are gone, and tells which.
    #[must_use]
    pub fn remove_left_behind(prefix: &str) -> Vec<PathBuf> {
        let found = std::fs::read_dir(std::env::temp_dir())
            .into_iter()
            .flatten()
            .flatten();
        let ours = found.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
        let left = ours.map(|entry| entry.path()).filter(|path| is_left_behind(path));
        left.filter(|path| match std::fs::remove_dir_all(path) {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(folder = %path.display(), %error, "a folder of an earlier start cannot be removed");
                false
            }
        })
        .collect()
    }
}

/// True for a folder of this user whose owner is gone.
fn is_left_behind(folder: &Path) -> bool {
    let is_own = std::fs::symlink_metadata(folder)
        .is_ok_and(|known| known.is_dir() && known.uid() == rustix::process::getuid().as_raw());
    let owner = || {
        let text = std::fs::read_to_string(folder.join(OWNER_FILE)).ok()?;
        let (of_boot, owner) = text.trim().split_once('\n')?;
        Some((of_boot.to_owned(), Identity::read(owner)?))
    };
    is_own && owner().is_some_and(|(of_boot, owner)| boot() != Some(of_boot) || !owner.is_alive())
}

/// The record of a server beside its data.
pub(crate) struct Record(PathBuf);

impl Record {
    pub(crate) fn of(name: &str, log: &Path) -> Self {
        Self(log.with_file_name(format!("{name}.pid")))
    }

    /// Notes a server and its owner. What cannot be noted is not looked for.
    pub(crate) fn write(&self, server: u32) {
        let (Some(server), Some(owner), Some(boot)) =
            (Identity::of(server), Identity::of(std::process::id()), boot())
        else {
            return;
        };
        let text = format!(
            "{boot}\n{} {}\n{} {}\n",
            server.pid, server.start, owner.pid, owner.start
        );
        if let Err(error) = std::fs::write(&self.0, text) {
            tracing::debug!(%error, "the server's number was not noted");
        }
    }

    /// Ends what a start left whose owner is gone, and tells what it was.
    pub(crate) fn clean_up(&self, server: &'static str) -> Option<ServerRemains> {
        let left = self.left_behind()?;
        self.remove();
        let was_running = left.is_alive() && end_group(server, left);
        let remains = ServerRemains {
            server,
            pid: left.pid,
            was_running,
        };
        tracing::warn!(
            server,
            pid = left.pid,
            was_running,
            "an earlier start did not end in order"
        );
        Some(remains)
    }

    /// The server of a start of this boot whose owner is gone.
    fn left_behind(&self) -> Option<Identity> {
        let text = std::fs::read_to_string(&self.0).ok()?;
        let mut lines = text.lines();
        if Some(lines.next()?) != boot().as_deref() {
            return None;
        }
        let (server, owner) = (Identity::read(lines.next()?)?, Identity::read(lines.next()?)?);
        (!owner.is_alive()).then_some(server)
    }

    pub(crate) fn remove(&self) {
        // One that was never written is removed already.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Ends the process group that a server leads.
fn end_group(name: &str, server: Identity) -> bool {
    let Some(pid) = i32::try_from(server.pid).ok().and_then(Pid::from_raw) else {
        return false;
    };
    if let Err(error) = kill_process_group(pid, Signal::KILL) {
        tracing::warn!(server = name, pid = server.pid, %error, "a server of an earlier start could not be ended");
        return false;
    }
    let mut waited = Duration::ZERO;
    while server.is_alive() && waited < GONE_WITHIN {
        wait_briefly();
        waited += POLL;
    }
    true
}

/// The start of the machine that numbers of processes belong to.
fn boot() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").process_group(0).spawn().unwrap()
    }

    fn is_gone(child: &mut Child) -> bool {
        for _ in 0..500 {
            if child.try_wait().unwrap().is_some() {
                return true;
            }
            wait_briefly();
        }
        let _ = child.kill();
        let _ = child.wait();
        false
    }

    #[test]
    fn server_ends_when_its_owner_is_killed() {
        let mut server = sleeper();
        let mut watcher = Watcher::start("sleep", server.id()).unwrap();
        // The system closes the pipe of an owner that dies, whatever killed it.
        drop(watcher.0.stdin.take());
        assert!(is_gone(&mut server));
    }

    #[test]
    fn ended_watch_leaves_the_server_alone() {
        let mut server = sleeper();
        drop(Watcher::start("sleep", server.id()).unwrap());
        assert!(server.try_wait().unwrap().is_none());
        server.kill().unwrap();
        server.wait().unwrap();
    }

    #[test]
    fn next_start_ends_what_a_dead_owner_left() {
        let folder = tempfile::tempdir().unwrap();
        let record = Record::of("sleep", &folder.path().join("sleep.log"));
        let mut server = sleeper();
        record.write(server.id());
        assert_eq!(record.clean_up("sleep"), None);
        assert!(server.try_wait().unwrap().is_none(), "its owner lives");
        // An owner that is gone, and a number that is another process's now.
        let (id, boot) = (Identity::of(server.id()).unwrap(), boot().unwrap());
        let note =
            |start: u64| std::fs::write(&record.0, format!("{boot}\n{} {start}\n1 1\n", id.pid)).unwrap();
        let words = |remains: Option<ServerRemains>| remains.unwrap().to_string();
        note(id.start + 1);
        let ended = words(record.clean_up("sleep"));
        assert!(
            ended.ends_with(&format!("its sleep (process {}) ended with it", id.pid)),
            "{ended}"
        );
        assert_eq!(record.clean_up("sleep"), None, "it is told once");
        assert!(server.try_wait().unwrap().is_none(), "it is another process");
        note(id.start);
        let reaper = std::thread::spawn(move || is_gone(&mut server));
        let ended = words(record.clean_up("sleep"));
        assert!(ended.contains("was still running and has been ended"), "{ended}");
        assert!(reaper.join().unwrap());
    }

    #[test]
    fn folder_of_dead_process_goes_with_next_start() {
        let prefix = format!("journeyman-remains-{}-", std::process::id());
        let [own, foreign, dead] = [(); 3].map(|()| ScratchFolder::create(&prefix).unwrap());
        std::fs::remove_file(foreign.path().join(OWNER_FILE)).unwrap();
        let note = format!("{}\n1 1\n", boot().unwrap());
        std::fs::write(dead.path().join(OWNER_FILE), note).unwrap();
        assert_eq!(ScratchFolder::remove_left_behind(&prefix), [dead.path()]);
        assert!(own.path().is_dir() && foreign.path().is_dir() && !dead.path().exists());
        assert!(ScratchFolder::remove_left_behind(&prefix).is_empty());
    }
}
