//! Waits for a command, and kills its whole process tree, including daemons.

use std::{
    collections::{HashMap, HashSet},
    fs,
    io::{self, PipeReader, PipeWriter, Read, Write},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open},
};

use crate::{usage::stat_field, watch::UsageWatch};

/// Interval at which the limits of a process tree are checked.
const WATCH_EVERY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Rounds between two scans of all processes of the machine. The rounds between them read the lists of
/// children only, whose cost follows the tree and not the machine.
// The kernel may leave out a child while its siblings end (proc_pid_children(5)), so the whole scan remains.
const WHOLE_SCAN_EVERY: u32 = 10;

/// Limit of passes that search for new processes before the known ones are killed.
const MAX_LOOKS: u32 = 10;

/// Notifies the supervising process whether a command runs. A command that replaces the writing process
/// closes the pipe.
pub(crate) struct ActivityPipe(PipeWriter);

impl ActivityPipe {
    pub(crate) fn new(writer: PipeWriter) -> Self {
        Self(writer)
    }

    pub(crate) fn begin(&self) -> io::Result<()> {
        (&self.0).write_all(&[1])
    }

    pub(crate) fn end(&self) -> io::Result<()> {
        (&self.0).write_all(&[0])
    }
}

/// Activity of commands as the confined process reports it.
struct CommandActivity {
    reports: Option<PipeReader>,
    is_active: bool,
}

impl CommandActivity {
    fn read_reports(&mut self) {
        let mut bytes = [0; 16];
        match self.reports.as_mut().map(|reports| reports.read(&mut bytes)) {
            Some(Ok(count @ 1..)) => self.is_active = bytes.get(count - 1) == Some(&1),
            _ => {
                *self = Self {
                    reports: None,
                    is_active: true,
                }
            }
        }
    }
}

/// Waits for the end of the child, the end of standard input, or a breach of a limit.
///
/// Kills the remaining processes and returns the command's exit code. Limits are checked only while a command
/// runs.
pub(crate) fn supervise_tree(child: Pid, activity: PipeReader, watch: &UsageWatch) -> Result<u8, String> {
    let pidfd = pidfd_open(child, PidfdFlags::empty()).map_err(|error| error.to_string())?;
    let stdin = rustix::stdio::stdin();
    let mut watched = CommandActivity {
        reports: Some(activity),
        is_active: false,
    };
    let mut world = None;
    let mut round = 0_u32;
    let breach = loop {
        let mut fds = vec![
            PollFd::new(&pidfd, PollFlags::IN),
            // Only the hang-up counts here: the confined process reads the data of this socket.
            PollFd::new(&stdin, PollFlags::RDHUP),
        ];
        fds.extend(
            watched
                .reports
                .iter()
                .map(|reports| PollFd::new(reports, PollFlags::IN)),
        );
        // Without a running command there is no usage to check, so the wait has no time limit.
        let polled = poll(&mut fds, watched.is_active.then_some(&WATCH_EVERY));
        let is_over = fds.iter().take(2).any(|fd| !fd.revents().is_empty());
        match polled {
            Err(rustix::io::Errno::INTR) => {}
            Ok(0) => {
                round = round.wrapping_add(1);
                let listed = (!round.is_multiple_of(WHOLE_SCAN_EVERY)).then(list_known_children);
                let tree = listed.flatten().unwrap_or_else(list_descendants);
                if let Some(breach) = watch.find_breach(&tree) {
                    break Some(breach);
                }
            }
            Ok(_) if !is_over => {
                watched.read_reports();
                // The descriptor keeps the mount namespace alive until this process ends. Unmounting is slow,
                // and no caller waits for this process any more.
                world =
                    world.or_else(|| fs::File::open(format!("/proc/{}/ns/mnt", child.as_raw_nonzero())).ok());
            }
            Ok(_) | Err(_) => break None,
        }
    };
    watch.kill(child);
    let code = kill_all(child);
    if let Some(breach) = breach.or_else(|| watch.find_kernel_breach()) {
        // Standard error is part of the command's output.
        let _ = writeln!(std::io::stderr(), "\n[killed: {breach}]");
    }
    Ok(code)
}

/// Kills descendants until no child is left. This process is the subreaper, so orphans become its children
/// and no process can leave the tree.
fn kill_all(child: Pid) -> u8 {
    let mut code = None;
    while !reap_children(child, &mut code) {
        for pid in stop_all() {
            // The error is ignored: the process may already have ended.
            let _ = kill_process(pid, Signal::KILL);
        }
        pause_briefly();
    }
    // Without a status of the child: 128 + SIGKILL, the signal sent above.
    code.unwrap_or(137)
}

/// Stops descendants until a pass finds no new one, and returns all of them. A stopped process cannot fork,
/// and it leaves processor time to this process.
fn stop_all() -> HashSet<Pid> {
    let mut stopped = HashSet::new();
    for _ in 0..MAX_LOOKS {
        let before = stopped.len();
        for pid in list_descendants() {
            if stopped.insert(pid) {
                let _ = kill_process(pid, Signal::STOP);
            }
        }
        if stopped.len() == before {
            break;
        }
    }
    stopped
}

/// Reaps ended children. Returns true when no child is left.
fn reap_children(child: Pid, code: &mut Option<u8>) -> bool {
    loop {
        match wait_any() {
            Ok(Some((pid, status))) if pid == child => *code = Some(exit_code(status)),
            Ok(Some(_)) => {}
            Ok(None) => return false,
            Err(error) => return error == rustix::io::Errno::CHILD,
        }
    }
}

fn wait_any() -> rustix::io::Result<Option<(Pid, WaitStatus)>> {
    rustix::process::wait(WaitOptions::NOHANG)
}

pub(crate) fn exit_code(status: WaitStatus) -> u8 {
    let signal = status.terminating_signal().map(|signal| signal + 128);
    status
        .exit_status()
        .or(signal)
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(255)
}

fn pause_briefly() {
    // The error is ignored: an early end of the pause is harmless.
    let _ = poll(
        &mut [],
        Some(&Timespec {
            tv_sec: 0,
            tv_nsec: 2_000_000,
        }),
    );
}

/// Descendants by the kernel's lists of children; `None` where the kernel has no such lists.
fn list_known_children() -> Option<Vec<Pid>> {
    let own = read_children(getpid())?;
    let (mut found, mut queue) = (HashSet::new(), own);
    while let Some(pid) = queue.pop() {
        if found.insert(pid) {
            // A process that ended meanwhile has no lists.
            queue.extend(read_children(pid).unwrap_or_default());
        }
    }
    Some(found.into_iter().collect())
}

/// Children of all threads of a process.
fn read_children(pid: Pid) -> Option<Vec<Pid>> {
    let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).ok()?;
    let mut children = Vec::new();
    for thread in threads.filter_map(Result::ok) {
        let listed = fs::read_to_string(thread.path().join("children")).ok()?;
        children.extend(
            listed
                .split_ascii_whitespace()
                .filter_map(|number| Pid::from_raw(number.parse().ok()?)),
        );
    }
    Some(children)
}

/// Descendants by a scan of all processes of the machine.
fn list_descendants() -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok) {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(parent) = parent_of(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = HashSet::new();
    let mut queue = vec![getpid().as_raw_nonzero().get()];
    while let Some(pid) = queue.pop() {
        queue.extend(
            children
                .remove(&pid)
                .into_iter()
                .flatten()
                .filter(|child| found.insert(*child)),
        );
    }
    found.into_iter().filter_map(Pid::from_raw).collect()
}

fn parent_of(pid: i32) -> Option<i32> {
    stat_field(Pid::from_raw(pid)?, 1)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn both_lists_contain_grandchildren() {
        // The shell waits for its own child, so both live until the input ends.
        let mut shell = Command::new("sh")
            .args(["-c", "exec 3<&0; cat <&3 & echo started; wait"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut started = [0; 8];
        shell.stdout.as_mut().unwrap().read_exact(&mut started).unwrap();
        let shell_pid = Pid::from_child(&shell);
        let grandchildren = read_children(shell_pid);
        let scanned = list_descendants();
        assert!(scanned.contains(&shell_pid));
        // A kernel without the lists has none at all.
        if let Some(listed) = list_known_children() {
            let grandchildren = grandchildren.unwrap();
            assert_eq!(grandchildren.len(), 1);
            for pid in grandchildren.iter().chain([&shell_pid]) {
                assert!(listed.contains(pid) && scanned.contains(pid), "{pid:?}");
            }
        }
        drop(shell.stdin.take());
        assert!(shell.wait().unwrap().success());
    }
}
