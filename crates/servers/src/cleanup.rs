//! Cleanup of servers that outlive their owner: a watcher kills them with the owner, and a record lets the
//! next start kill the rest.

use std::{
    fmt, io,
    os::unix::{fs::MetadataExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};

// Shell script of the watcher: waits for the end of its input, which comes however the owner dies, and kills
// the server's process group.
const WATCH: &str = "read -r line; kill -9 \"-$1\"";
/// Time in which a killed server must end.
const GONE_WITHIN: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

#[expect(
    clippy::disallowed_methods,
    reason = "servers start before there is work for the runtime"
)]
fn wait_briefly() {
    std::thread::sleep(POLL);
}

/// Process that kills a server when its owner ends, even by a signal that cannot be handled. Dropping it
/// stops the watch.
pub(crate) struct OwnerWatcher(Child);

impl OwnerWatcher {
    /// Starts the watcher of a server's process group. Without a shell the server is not watched.
    pub(crate) fn start(name: &str, server: u32) -> Option<Self> {
        let watcher = Command::new("/bin/sh")
            .args(["-c", WATCH, "watcher"])
            .arg(server.to_string())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C is for the owner, which stops the server in order.
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

impl Drop for OwnerWatcher {
    fn drop(&mut self) {
        // Killed before its input ends: the server's process id may belong to another process by now.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Process id with the start time. The id alone may belong to another process later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcessIdentity {
    pid: u32,
    /// Start time in clock ticks since boot.
    start: u64,
}

impl ProcessIdentity {
    fn of(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may contain any character.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        let is_dead = matches!(fields.next()?, "Z" | "X");
        // Field 22 of `/proc/<pid>/stat`; the fields after the name begin with number 3.
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

/// Server of an earlier start that did not end in order, for instance because its owner was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerRemains {
    server: &'static str,
    pid: u32,
    /// True when it was still running; false when it ended with its owner.
    was_running: bool,
}

impl fmt::Display for ServerRemains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            server,
            pid,
            was_running,
        } = self;
        let what = if *was_running {
            "was still running and has been ended"
        } else {
            "ended with it"
        };
        write!(
            f,
            "the last start did not end in order: its {server} (process {pid}) {what}"
        )
    }
}

/// Temporary folder of one process, deleted with its value. The folder of a killed process is deleted by the
/// next [`ScratchFolder::remove_left_behind`].
pub struct ScratchFolder(tempfile::TempDir);

/// File that names the owner of a scratch folder.
const OWNER_FILE: &str = "owner";

impl ScratchFolder {
    /// Creates a folder of this process in the temporary directory.
    ///
    /// # Errors
    /// When the folder or its owner file cannot be written.
    pub fn create(prefix: &str) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
        if let (Some(owner), Some(boot)) = (ProcessIdentity::of(std::process::id()), read_boot_id()) {
            let text = format!("{boot}\n{} {}\n", owner.pid, owner.start);
            std::fs::write(folder.path().join(OWNER_FILE), text)?;
        }
        Ok(Self(folder))
    }

    /// Path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Deletes this user's folders with this prefix whose processes have ended, and returns their paths.
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

/// True for a folder of this user whose owner has ended.
fn is_left_behind(folder: &Path) -> bool {
    // Every user can write to the temporary directory: a link or another user's folder must stay.
    let is_own = std::fs::symlink_metadata(folder)
        .is_ok_and(|known| known.is_dir() && known.uid() == rustix::process::getuid().as_raw());
    let owner = || {
        let text = std::fs::read_to_string(folder.join(OWNER_FILE)).ok()?;
        let (of_boot, owner) = text.trim().split_once('\n')?;
        Some((of_boot.to_owned(), ProcessIdentity::read(owner)?))
    };
    // A folder without a readable owner stays, because its process may be alive.
    is_own && owner().is_some_and(|(of_boot, owner)| read_boot_id() != Some(of_boot) || !owner.is_alive())
}

/// Record of a server, stored with its data.
pub(crate) struct ServerRecord(PathBuf);

impl ServerRecord {
    pub(crate) fn of(name: &str, log: &Path) -> Self {
        Self(log.with_file_name(format!("{name}.pid")))
    }

    /// Stores the identities of a server and its owner. Without a record, the next start finds no server.
    pub(crate) fn write(&self, server: u32) {
        let (Some(server), Some(owner), Some(boot)) = (
            ProcessIdentity::of(server),
            ProcessIdentity::of(std::process::id()),
            read_boot_id(),
        ) else {
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

    /// Kills the server of an earlier start whose owner has ended, and returns its description.
    pub(crate) fn clean_up(&self, server: &'static str) -> Option<ServerRemains> {
        let left = self.left_behind()?;
        // First, so that the next start does not report the same server again.
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

    /// Server of a start since boot whose owner has ended.
    fn left_behind(&self) -> Option<ProcessIdentity> {
        let text = std::fs::read_to_string(&self.0).ok()?;
        let mut lines = text.lines();
        if Some(lines.next()?) != read_boot_id().as_deref() {
            return None;
        }
        let (server, owner) = (
            ProcessIdentity::read(lines.next()?)?,
            ProcessIdentity::read(lines.next()?)?,
        );
        (!owner.is_alive()).then_some(server)
    }

    pub(crate) fn remove(&self) {
        // A missing record is removed already.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Kills the process group that a server leads.
fn end_group(name: &str, server: ProcessIdentity) -> bool {
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

/// Id of the current boot. Process ids are unique within one boot only.
fn read_boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spawn_sleeper() -> Child {
        Command::new("sleep").arg("600").process_group(0).spawn().unwrap()
    }

    /// Waits up to a minute for the exit of a process. Returns false and kills it if it still runs.
    fn await_exit(child: &mut Child) -> bool {
        for _ in 0..3_000 {
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
        let mut server = spawn_sleeper();
        let mut watcher = OwnerWatcher::start("sleep", server.id()).unwrap();
        // The system closes the pipe of an owner that dies, whatever killed it.
        drop(watcher.0.stdin.take());
        assert!(await_exit(&mut server));
    }

    #[test]
    fn ended_watch_leaves_the_server_alone() {
        let mut server = spawn_sleeper();
        drop(OwnerWatcher::start("sleep", server.id()).unwrap());
        assert!(server.try_wait().unwrap().is_none());
        server.kill().unwrap();
        server.wait().unwrap();
    }

    #[test]
    fn next_start_kills_orphaned_server() {
        let folder = tempfile::tempdir().unwrap();
        let record = ServerRecord::of("sleep", &folder.path().join("sleep.log"));
        let mut server = spawn_sleeper();
        record.write(server.id());
        assert_eq!(record.clean_up("sleep"), None);
        assert!(server.try_wait().unwrap().is_none(), "its owner lives");
        // An owner that has ended, and a process id that belongs to another process now.
        let (id, boot) = (ProcessIdentity::of(server.id()).unwrap(), read_boot_id().unwrap());
        let note =
            |start: u64| std::fs::write(&record.0, format!("{boot}\n{} {start}\n1 1\n", id.pid)).unwrap();
        let words = |remains: Option<ServerRemains>| remains.unwrap().to_string();
        note(id.start + 1);
        let ended = words(record.clean_up("sleep"));
        assert!(
            ended.ends_with(&format!("its sleep (process {}) ended with it", id.pid)),
            "{ended}"
        );
        assert_eq!(record.clean_up("sleep"), None, "it is reported once");
        assert!(server.try_wait().unwrap().is_none(), "it is another process");
        note(id.start);
        let reaper = std::thread::spawn(move || await_exit(&mut server));
        let ended = words(record.clean_up("sleep"));
        assert!(ended.contains("was still running and has been ended"), "{ended}");
        assert!(reaper.join().unwrap());
    }

    #[test]
    fn next_start_deletes_orphaned_folder() {
        let prefix = format!("journeyman-remains-{}-", std::process::id());
        let [own, foreign, dead] = [(); 3].map(|()| ScratchFolder::create(&prefix).unwrap());
        std::fs::remove_file(foreign.path().join(OWNER_FILE)).unwrap();
        let note = format!("{}\n1 1\n", read_boot_id().unwrap());
        std::fs::write(dead.path().join(OWNER_FILE), note).unwrap();
        assert_eq!(ScratchFolder::remove_left_behind(&prefix), [dead.path()]);
        assert!(own.path().is_dir() && foreign.path().is_dir() && !dead.path().exists());
        assert!(ScratchFolder::remove_left_behind(&prefix).is_empty());
    }
}
