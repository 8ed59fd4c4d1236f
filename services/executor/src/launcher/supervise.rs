//! The half of the launcher that stays outside and ends what it started.

use std::{
    io::{BufRead, Write, stdin},
    process::{Command, ExitCode, Stdio},
};

use crate::{namespaces, policy::Policy, tree, watch};

/// Reads the policy, leaves the caller's world, starts the other half and waits for the end.
pub(crate) fn run() -> Result<ExitCode, String> {
    let mut line = String::new();
    let told = stdin().lock().read_line(&mut line);
    told.map_err(|error| format!("no policy: {error}"))?;
    let mut policy: Policy = serde_json::from_str(&line).map_err(|error| format!("bad policy: {error}"))?;
    policy.uid = rustix::process::getuid().as_raw();
    let text = serde_json::to_vec(&policy).map_err(|error| error.to_string())?;
    // Refused when already a session leader; then there is one already.
    let _ = rustix::process::setsid();
    let me = Some(rustix::process::getpid());
    rustix::process::set_child_subreaper(me).map_err(|error| error.to_string())?;
    let launcher = std::env::current_exe().map_err(|error| error.to_string())?;
    if policy.confinement.namespaces {
        namespaces::leave(policy.network).map_err(|error| format!("namespaces: {error}"))?;
    }
    let mut child = Command::new(launcher)
        .arg("confined")
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start the command: {error}"))?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(&text).map_err(|error| error.to_string())?;
    }
    tree::wait(child.id(), &watch::Watch::new(policy))
}
