//! The half of the launcher that stays outside and ends what it started.

use std::{
    io::{self, stdin},
    os::{fd::AsFd, unix::net::UnixStream},
    process::ExitCode,
};

use crate::{
    command::{self, Ended, tell},
    group::Group,
    namespaces,
    policy::Policy,
    sys, tree, watch, wire,
};

/// Reads the policy, leaves the caller's world, splits off the other half and waits for the end.
pub(crate) fn run() -> Result<ExitCode, String> {
    let control = control().map_err(|error| error.to_string())?;
    let policy = wire::receive::<Policy>(&control).map_err(|error| format!("no policy: {error}"))?;
    let Some((mut policy, _)) = policy else {
        return Ok(ExitCode::SUCCESS);
    };
    // A runner holds them back, and commands must be able to stop each other.
    sys::StopSignals::release();
    policy.uid = rustix::process::getuid().as_raw();
    // Refused when already a session leader; then there is one already.
    let _ = rustix::process::setsid();
    let me = Some(rustix::process::getpid());
    rustix::process::set_child_subreaper(me).map_err(|error| error.to_string())?;
    sys::close_on_exec().map_err(|error| error.to_string())?;
    let group = policy
        .cgroup
        .as_ref()
        .and_then(|cgroup| Group::make(cgroup, &policy.limits));
    if policy.confinement.namespaces {
        namespaces::leave().map_err(|error| format!("namespaces: {error}"))?;
    }
    let (activity, acting) = io::pipe().map_err(|error| error.to_string())?;
    match sys::fork().map_err(|error| format!("cannot start the command: {error}"))? {
        None => {
            drop(activity);
            if let Some(group) = group {
                group.enter().map_err(|error| format!("control group: {error}"))?;
                // It is the other half's to remove.
                std::mem::forget(group);
            }
            command::run(&policy, &control, acting)
        }
        Some(child) => {
            drop(acting);
            let code = tree::wait(child, activity, &watch::Watch::new(policy, group))?;
            // The peer may have gone.
            let _ = tell(&control, code, Ended::ForGood);
            Ok(ExitCode::from(code))
        }
    }
}

/// Standard input, which is a socket.
fn control() -> io::Result<UnixStream> {
    Ok(UnixStream::from(stdin().as_fd().try_clone_to_owned()?))
}
