//! Confinement of the calling process by limits, Landlock and the list of denied calls.

use std::{
    fs,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, LandlockStatus, RestrictionStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::{namespaces, policy::Policy, seccomp};

/// The floor: below it a command of the same user could signal the executor.
const LANDLOCK: ABI = ABI::V6;
/// Open files per process.
const MAX_OPEN_FILES: u64 = 4096;

const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

/// Limits that hold for this process and everything under it.
pub(crate) fn set_limits(policy: &Policy) -> Result<(), String> {
    let limits = [
        (Resource::Core, 0),
        // A message queue outlives its maker, and no list tells of it.
        (Resource::Msgqueue, 0),
        (Resource::Nofile, MAX_OPEN_FILES),
        (Resource::Fsize, policy.limits.file_mib.saturating_mul(1 << 20)),
    ];
    for (resource, wanted) in limits {
        limit(resource, wanted)?;
    }
    // Elsewhere the kernel counts every process of the user, the executor's among them.
    if policy.confinement.namespaces {
        limit(Resource::Nproc, policy.limits.processes)?;
    }
    Ok(())
}

fn limit(resource: Resource, wanted: u64) -> Result<(), String> {
    // A hard limit can only be lowered.
    let ceiling = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = Some(wanted.min(ceiling));
    let limit = Rlimit {
        current: limit,
        maximum: limit,
    };
    setrlimit(resource, limit).map_err(|error| error.to_string())
}

/// Applies what the policy says to this process, for good.
pub(crate) fn confine(policy: &Policy) -> Result<(), String> {
    rustix::thread::set_no_new_privs(true).map_err(|error| error.to_string())?;
    if policy.confinement.landlock {
        let status = restrict(policy).map_err(|error| format!("landlock: {error}"))?;
        if status.ruleset != RulesetStatus::FullyEnforced {
            return Err("landlock is not fully enforced here".to_owned());
        }
    }
    if policy.confinement.seccomp {
        seccomp::apply().map_err(|error| format!("seccomp: {error}"))?;
    }
    Ok(())
}

fn restrict(policy: &Policy) -> Result<RestrictionStatus, landlock::RulesetError> {
    let (all, read) = (AccessFs::from_all(LANDLOCK), AccessFs::from_read(LANDLOCK));
    let namespaces = policy.confinement.namespaces;
    // In a world of its own what is hidden is covered, and private folders are nobody else's.
    let (visible, private) = if namespaces {
        (vec![PathBuf::from("/")], namespaces::private_folders().collect())
    } else {
        (visible(&policy.hidden), Vec::new())
    };
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::Signal | Scope::AbstractUnixSocket)?
        .create()?
        .add_rules(path_beneath_rules(visible, read))?
        .add_rules(path_beneath_rules(&policy.readable, read))?
        .add_rules(path_beneath_rules(&policy.writable, all))?
        .add_rules(path_beneath_rules(private, all))?
        .add_rules(path_beneath_rules(DEVICES, all))?
        .restrict_self()
}

/// The largest folders that hold nothing hidden. Rules only allow, so what is hidden is left out.
fn visible(hidden: &[PathBuf]) -> Vec<PathBuf> {
    let hidden: Vec<PathBuf> = hidden
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    let mut found = Vec::new();
    let mut queue = vec![PathBuf::from("/")];
    while let Some(path) = queue.pop() {
        if hidden.contains(&path) {
            continue;
        }
        if hidden.iter().any(|hidden| hidden.starts_with(&path)) {
            queue.extend(children(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Without symbolic links: a rule would follow them, and what they lead to has its own real path.
fn children(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()))
        .map(|entry| entry.path())
        .collect()
}

/// Applies an empty policy to this process: whether Landlock holds in full, and the kernel's version of it.
pub(crate) fn try_landlock() -> (bool, u32) {
    let status = rustix::thread::set_no_new_privs(true)
        .ok()
        .and_then(|()| restrict(&Policy::default()).ok());
    let Some(status) = status else { return (false, 0) };
    let abi = match status.landlock {
        LandlockStatus::Available {
            effective_abi,
            kernel_abi,
        } => kernel_abi.unwrap_or(effective_abi as i32).unsigned_abs(),
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
    };
    (status.ruleset == RulesetStatus::FullyEnforced, abi)
}
