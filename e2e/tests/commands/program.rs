//! Runner of workspace binaries in a separate environment. It tracks all descendant processes.

use std::{
    collections::BTreeSet,
    fs::File,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use testkit::poll_until;
use tokio::process::{Child, Command};

/// Time limit of a command on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Time after a command's end in which its processes may still exist. Shorter than the commands of the model that these
/// tests leave behind, so that such a command does not end by itself.
pub(crate) const GONE_WITHIN: Duration = Duration::from_secs(30);

/// Output and exit status of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Returns the lines of standard error.
    pub(crate) fn complaints(&self) -> Vec<&str> {
        self.err.lines().collect()
    }
}

/// Runs a command to its end and checks that none of its processes remains.
pub(crate) async fn run_program(
    name: &str,
    arguments: &[&str],
    environment: &[(String, String)],
    folder: &Path,
) -> Ran {
    Program::start(name, arguments, environment, folder).ended().await
}

/// Process id with start time, which distinguishes reused ids.
type Known = (u32, u64);

/// Running command. Dropping it sends SIGTERM, so that it can end its children.
pub(crate) struct Program {
    child: Child,
    family: BTreeSet<Known>,
    out: PathBuf,
    err: PathBuf,
}

impl Program {
    /// Starts the command in `folder`, which also stores its output.
    pub(crate) fn start(
        name: &str,
        arguments: &[&str],
        environment: &[(String, String)],
        folder: &Path,
    ) -> Self {
        let (file, err) = tempfile::NamedTempFile::new_in(folder).unwrap().keep().unwrap();
        let out = err.with_extension("out");
        let child = Command::new(e2e::find_binary(name).unwrap())
            .args(arguments)
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "JOURNEYMAN_NATS_SERVER"))
            .envs(environment.iter().cloned())
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(File::create(&out).unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        Self {
            child,
            family: BTreeSet::new(),
            out,
            err,
        }
    }

    pub(crate) fn out(&self) -> String {
        std::fs::read_to_string(&self.out).unwrap()
    }

    pub(crate) fn err(&self) -> String {
        std::fs::read_to_string(&self.err).unwrap()
    }

    /// Waits until the output contains a text.
    pub(crate) async fn until_output_contains(&mut self, text: &str) {
        let said = poll_until(text, PATIENCE, async || {
            self.note_family();
            (self.out().contains(text) || self.err().contains(text)).then_some(())
        });
        if let Err(error) = said.await {
            panic!("{error}; it printed\n{}\n{}", self.out(), self.err());
        }
    }

    /// Sends a signal to this process alone.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok());
        let _ = pid.and_then(Pid::from_raw).map(|pid| kill_process(pid, signal));
    }

    /// Returns the number of live descendants.
    pub(crate) fn family_size(&mut self) -> usize {
        self.note_family();
        self.family.iter().filter(|known| is_alive(known)).count()
    }

    /// Waits until a descendant runs the program of this name.
    pub(crate) async fn runs(&mut self, name: &str) {
        let started = poll_until(name, PATIENCE, async || {
            self.note_family();
            let mut family = self.family.iter();
            family.any(|known| runs_program(known, name)).then_some(())
        });
        if let Err(error) = started.await {
            panic!("{error}; it printed\n{}\n{}", self.out(), self.err());
        }
    }

    /// Waits for the command's end and for the end of all descendants.
    pub(crate) async fn ended(mut self) -> Ran {
        let status = poll_until("the end of the command", PATIENCE, async || {
            self.note_family();
            self.child.try_wait().unwrap()
        });
        let status = status.await;
        let (out, err) = (self.out(), self.err());
        let status = status.unwrap_or_else(|error| panic!("{error}; it printed\n{out}\n{err}"));
        let left = async || (!self.family.iter().any(is_alive)).then_some(());
        let gone = poll_until("the end of its processes", GONE_WITHIN, left).await;
        gone.unwrap_or_else(|error| panic!("{error}: {:?}\n{out}\n{err}", self.family));
        Ran {
            code: status.code(),
            out,
            err,
        }
    }

    fn note_family(&mut self) {
        let Some(root) = self.child.id() else { return };
        let mut parents = BTreeSet::from([root]);
        let all = list_processes();
        while let Some((pid, _, start)) = all
            .iter()
            .find(|(pid, parent, _)| parents.contains(parent) && !parents.contains(pid))
        {
            parents.insert(*pid);
            self.family.insert((*pid, *start));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.signal(Signal::TERM);
        for _ in 0..200 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
        let _ = self.child.start_kill();
    }
}

/// Lists all live processes: id, parent, start time.
fn list_processes() -> Vec<(u32, u32, u64)> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| {
        let (parent, start) = read_process_stat(pid)?;
        Some((pid, parent, start))
    })
    .collect()
}

fn is_alive((pid, start): &Known) -> bool {
    read_process_stat(*pid).is_some_and(|(_, found)| found == *start)
}

fn runs_program((pid, _): &Known, name: &str) -> bool {
    let running = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    running.is_ok_and(|running| running.trim_end() == name)
}

/// Returns parent and start time; `None` for an exited process, reaped or not.
fn read_process_stat(pid: u32) -> Option<(u32, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    let fields: Vec<_> = fields.split(' ').collect();
    let ended = matches!(*fields.first()?, "Z" | "X");
    (!ended).then_some((fields.get(1)?.parse().ok()?, fields.get(19)?.parse().ok()?))
}
