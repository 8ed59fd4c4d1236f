//! The supervising process of the launcher. It stays outside of the confinement and ends everything that the
//! launcher started.

use std::{
    io::{self, stdin},
    os::{fd::AsFd, unix::net::UnixStream},
    process::ExitCode,
};

use crate::{
    command::{self, LauncherState, report_exit},
    group::CommandCgroup,
    namespaces,
    policy::LauncherPolicy,
    sys, tree, watch, wire,
};

/// Reads the policy, enters new namespaces, forks the confined process and waits for the end.
pub(crate) fn supervise_command() -> Result<ExitCode, String> {
    let control = control_socket().map_err(|error| error.to_string())?;
    let policy =
        wire::receive_frame::<LauncherPolicy>(&control).map_err(|error| format!("no policy: {error}"))?;
    let Some((mut policy, _)) = policy else {
        return Ok(ExitCode::SUCCESS);
    };
    // The runner blocks stop signals, and children inherit that. Commands must be able to stop each other.
    sys::StopSignals::release();
    policy.uid = rustix::process::getuid().as_raw();
    // The error is ignored: the call fails only when this process already leads a session.
    let _ = rustix::process::setsid();
    let me = Some(rustix::process::getpid());
    // Orphans of the command become children of this process, so that it can kill and reap them.
    rustix::process::set_child_subreaper(me).map_err(|error| error.to_string())?;
    sys::close_on_exec().map_err(|error| error.to_string())?;
    let group = policy
        .cgroup
        .as_ref()
        .and_then(|cgroup| CommandCgroup::make(cgroup, &policy.limits));
    if policy.confinement.namespaces {
        namespaces::enter_namespaces().map_err(|error| format!("namespaces: {error}"))?;
    }
    let (activity, acting) = io::pipe().map_err(|error| error.to_string())?;
    // The fork follows `enter_namespaces`, because only a child enters the new PID namespace.
    match sys::fork_process().map_err(|error| format!("cannot start the command: {error}"))? {
        None => {
            drop(activity);
            if let Some(group) = group {
                group.enter().map_err(|error| format!("control group: {error}"))?;
                // The supervising process removes the group, so the destructor must not run here.
                std::mem::forget(group);
            }
            command::run_commands(&policy, &control, acting)
        }
        Some(child) => {
            drop(acting);
            let code = tree::supervise_tree(child, activity, &watch::UsageWatch::new(policy, group))?;
            // The error is ignored: the peer may have closed the connection.
            let _ = report_exit(&control, code, LauncherState::ForGood);
            Ok(ExitCode::from(code))
        }
    }
}

/// Returns standard input as a socket.
fn control_socket() -> io::Result<UnixStream> {
    Ok(UnixStream::from(stdin().as_fd().try_clone_to_owned()?))
}
