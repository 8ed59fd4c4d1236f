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

use crate::{
    policy::{Confinement, Policy},
    root::private_folders,
    seccomp, usage,
};

/// Open files per process.
const MAX_OPEN_FILES: u64 = 4096;

/// What a process sees of itself and of the kernel.
const PROC: &str = "/proc";
/// Terminals are here in a `/dev` of one's own only: elsewhere they are those of this user.
const TERMINALS: &[&str] = &["/dev/ptmx", "/dev/pts"];
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
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
    // Without namespaces the kernel counts every process of the user, the executor's among them. It exempts root.
    let others = if policy.confinement.namespaces {
        0
    } else {
        usage::threads_of(policy.uid)
    };
    limit(Resource::Nproc, policy.limits.processes.saturating_add(others))
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
    if let Some(abi) = landlock_abi(policy.confinement) {
        let status = restrict(policy, abi).map_err(|error| format!("landlock: {error}"))?;
        if status.ruleset != RulesetStatus::FullyEnforced {
            return Err("landlock is not fully enforced here".to_owned());
        }
    }
    if policy.confinement.seccomp {
        seccomp::apply().map_err(|error| format!("seccomp: {error}"))?;
    }
    Ok(())
}

/// The rules to use, if any. Namespaces keep files by themselves, so there the oldest rules, which forbid every move
/// between folders, do more harm than good.
fn landlock_abi(confinement: Confinement) -> Option<ABI> {
    let abi = confinement.landlock;
    let is_used = abi
        >= if confinement.namespaces {
            confinement.landlock_needed()
        } else {
            1
        };
    is_used.then(|| ABI::from(i32::try_from(abi).unwrap_or(i32::MAX)))
}

fn restrict(policy: &Policy, abi: ABI) -> Result<RestrictionStatus, landlock::RulesetError> {
    let (all, read) = (AccessFs::from_all(abi), AccessFs::from_read(abi));
    let namespaces = policy.confinement.namespaces;
    // In a root of its own nothing else exists, and private folders are nobody else's.
    let (visible, private, terminals) = if namespaces {
        (vec![PathBuf::from("/")], private_folders().collect(), TERMINALS)
    } else {
        let mut visible = without(&policy.visible, &policy.hidden);
        visible.push(PROC.into());
        (visible, Vec::new(), &[][..])
    };
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?;
    let scopes = Scope::from_all(abi);
    let ruleset = if scopes.is_empty() {
        ruleset
    } else {
        ruleset.scope(scopes)?
    };
    ruleset
        .create()?
        .add_rules(path_beneath_rules(visible, read))?
        .add_rules(path_beneath_rules(&policy.readable, read))?
        .add_rules(path_beneath_rules(&policy.writable, all))?
        .add_rules(path_beneath_rules(private, all))?
        .add_rules(path_beneath_rules(DEVICES, all))?
        .add_rules(path_beneath_rules(terminals, all))?
        .restrict_self()
}

/// The largest folders inside visible ones that hold nothing hidden. Rules only allow, so what is hidden is left out.
fn without(visible: &[PathBuf], hidden: &[PathBuf]) -> Vec<PathBuf> {
    let real = |paths: &[PathBuf]| -> Vec<PathBuf> {
        paths.iter().filter_map(|path| path.canonicalize().ok()).collect()
    };
    let (mut queue, hidden) = (real(visible), real(hidden));
    let mut found = Vec::new();
    while let Some(path) = queue.pop() {
        if hidden.iter().any(|hidden| path.starts_with(hidden)) {
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

/// Applies an empty policy to this process: the kernel's version of Landlock, 0 when none of it holds.
pub(crate) fn try_landlock() -> u32 {
    let applied = rustix::thread::set_no_new_privs(true)
        .ok()
        .and_then(|()| restrict(&Policy::default(), ABI::V9).ok());
    match applied {
        Some(RestrictionStatus {
            ruleset: RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced,
            landlock:
                LandlockStatus::Available {
                    effective_abi,
                    kernel_abi,
                },
            ..
        }) => kernel_abi.unwrap_or(effective_abi as i32).unsigned_abs(),
        _ => 0,
    }
}
