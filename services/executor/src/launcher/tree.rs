//! Waiting for a command and killing the whole process tree, daemons included.

use std::{
    collections::{HashMap, HashSet},
    fs,
    io::{self, PipeReader, PipeWriter, Read, Write},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open},
};

use crate::{usage::stat_field, watch::Watch};

/// How often a tree is looked at.
const WATCH_EVERY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Looks for processes that are new, before those that are known are killed.
const MAX_LOOKS: u32 = 10;

/// Tells the other half whether a command runs. A command that takes the place of its teller closes it.
pub(crate) struct Activity(PipeWriter);

impl Activity {
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

/// Command activity as the supervised half reports it.
struct Watched {
    teller: Option<PipeReader>,
    is_active: bool,
}

impl Watched {
    fn hear(&mut self) {
        let mut said = [0; 16];
        match self.teller.as_mut().map(|teller| teller.read(&mut said)) {
            Some(Ok(count @ 1..)) => self.is_active = said.get(count - 1) == Some(&1),
            _ => {
                *self = Self {
                    teller: None,
                    is_active: true,
                }
            }
        }
    }
}

/// Waits for the child, for the end of standard input or for a breach of a limit, then kills what is left, and tells
/// the command's exit code. Limits are looked at while a command runs.
pub(crate) fn wait(child: Pid, activity: PipeReader, watch: &Watch) -> Result<u8, String> {
    let pidfd = pidfd_open(child, PidfdFlags::empty()).map_err(|error| error.to_string())?;
    let stdin = rustix::stdio::stdin();
    let mut watched = Watched {
        teller: Some(activity),
        is_active: false,
    };
    let mut world = None;
    let breach = loop {
        let mut fds = vec![
            PollFd::new(&pidfd, PollFlags::IN),
            // Only its end counts: what it says is for the other half.
            PollFd::new(&stdin, PollFlags::RDHUP),
        ];
        fds.extend(
            watched
                .teller
                .iter()
                .map(|teller| PollFd::new(teller, PollFlags::IN)),
        );
        let polled = poll(&mut fds, watched.is_active.then_some(&WATCH_EVERY));
        let is_over = fds.iter().take(2).any(|fd| !fd.revents().is_empty());
        match polled {
            Err(rustix::io::Errno::INTR) => {}
            Ok(0) => {
                if let Some(breach) = watch.breach(&descendants()) {
                    break Some(breach);
                }
            }
            Ok(_) if !is_over => {
                watched.hear();
                // Held until this process ends: taking its mounts down is slow, and nobody waits for this process.
                world =
                    world.or_else(|| fs::File::open(format!("/proc/{}/ns/mnt", child.as_raw_nonzero())).ok());
            }
            Ok(_) | Err(_) => break None,
        }
    };
    watch.kill(child);
    let code = kill_all(child);
    if let Some(breach) = breach.or_else(|| watch.kernels_breach()) {
        // Standard error is a part of the command's output.
        let _ = writeln!(std::io::stderr(), "\n[killed: {breach}]");
    }
    Ok(code)
}

/// Kills descendants until no child is left. A process whose parent has gone becomes a child, because this process is
/// the subreaper, so nothing can leave the tree, and without children there are no descendants.
fn kill_all(child: Pid) -> u8 {
    let mut code = None;
    while !reap(child, &mut code) {
        for pid in stop_all() {
            // Gone already is as good.
            let _ = kill_process(pid, Signal::KILL);
        }
        pause();
    }
    code.unwrap_or(137)
}

/// Stops descendants until a look finds none that still runs: one that is stopped starts no other, and takes no time
/// from this process. All of them.
fn stop_all() -> HashSet<Pid> {
    let mut stopped = HashSet::new();
    for _ in 0..MAX_LOOKS {
        let before = stopped.len();
        for pid in descendants() {
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

/// True when no child is left.
fn reap(child: Pid, code: &mut Option<u8>) -> bool {
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

fn pause() {
    // Interrupted early is fine.
    let _ = poll(
        &mut [],
        Some(&Timespec {
            tv_sec: 0,
            tv_nsec: 2_000_000,
        }),
    );
}

fn descendants() -> Vec<Pid> {
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
