//! Waiting for a command and killing the whole process tree, daemons included.

use std::{
    collections::{HashMap, HashSet},
    fs,
    process::ExitCode,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open},
};

/// Waits for the child or for the end of standard input, then kills what is left, and tells the child's exit code.
pub(crate) fn wait(child: u32) -> Result<ExitCode, String> {
    let child = i32::try_from(child)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or("the command has no process id")?;
    let pidfd = pidfd_open(child, PidfdFlags::empty()).map_err(|error| error.to_string())?;
    let stdin = rustix::stdio::stdin();
    let mut fds = [
        PollFd::new(&pidfd, PollFlags::IN),
        PollFd::new(&stdin, PollFlags::IN),
    ];
    while let Err(rustix::io::Errno::INTR) = poll(&mut fds, None) {}
    Ok(kill_all(child))
}

/// Kills descendants until two scans in a row find none. A process whose parent has gone is ours, because this process
/// is the subreaper, so nothing can leave the tree.
fn kill_all(child: Pid) -> ExitCode {
    let mut code = None;
    let mut clean_scans = 0;
    while clean_scans < 2 {
        reap(child, &mut code);
        let left = descendants();
        clean_scans = if left.is_empty() { clean_scans + 1 } else { 0 };
        for signal in [Signal::STOP, Signal::KILL] {
            for pid in &left {
                // Gone already is as good.
                let _ = kill_process(*pid, signal);
            }
        }
        pause();
    }
    reap(child, &mut code);
    ExitCode::from(code.unwrap_or(137))
}

fn reap(child: Pid, code: &mut Option<u8>) {
    while let Ok(Some((pid, status))) = wait_any() {
        if pid == child {
            *code = Some(exit_code(status));
        }
    }
}

fn wait_any() -> rustix::io::Result<Option<(Pid, WaitStatus)>> {
    rustix::process::wait(WaitOptions::NOHANG)
}

fn exit_code(status: WaitStatus) -> u8 {
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

/// `pid (name) state parent …`, where the name may hold spaces and parentheses.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
