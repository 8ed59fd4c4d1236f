//! Confines the calling process by resource limits, Landlock and the seccomp deny list.

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
    policy::{KernelConfinement, LauncherPolicy},
    root::private_folders,
    seccomp, usage,
};

/// Limit of open files per process.
const MAX_OPEN_FILES: u64 = 4096;

/// Every command needs `/proc` of its processes. Without namespaces the mount is the machine's.
const PROC: &str = "/proc";
// Only in a private `/dev` do the terminals belong to the command; elsewhere they are those of the user's
// other sessions.
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

/// Sets the resource limits of this process and its descendants.
pub(crate) fn set_limits(policy: &LauncherPolicy) -> Result<(), String> {
    let limits = [
        (Resource::Core, 0),
        // A POSIX message queue outlives its creator, and the kernel has no list of them for a cleanup.
        (Resource::Msgqueue, 0),
        (Resource::Nofile, MAX_OPEN_FILES),
        (Resource::Fsize, policy.limits.file_mib.saturating_mul(1 << 20)),
    ];
    for (resource, wanted) in limits {
        lower_limit(resource, wanted)?;
    }
    // Without namespaces the kernel counts every process of the user, including the executor's. The kernel
    // exempts root from this limit.
    let others = if policy.confinement.namespaces {
        0
    } else {
        usage::count_user_threads(policy.uid)
    };
    lower_limit(Resource::Nproc, policy.limits.processes.saturating_add(others))
}

fn lower_limit(resource: Resource, wanted: u64) -> Result<(), String> {
    // A process without privileges can only lower a hard limit.
    let ceiling = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = Some(wanted.min(ceiling));
    let limit = Rlimit {
        current: limit,
        maximum: limit,
    };
    setrlimit(resource, limit).map_err(|error| error.to_string())
}

/// Confines this process irrevocably, as the policy demands.
pub(crate) fn confine_process(policy: &LauncherPolicy) -> Result<(), String> {
    // Landlock and unprivileged seccomp both require `no_new_privs`.
    rustix::thread::set_no_new_privs(true).map_err(|error| error.to_string())?;
    if let Some(abi) = landlock_abi(policy.confinement) {
        let status = restrict_files(policy, abi).map_err(|error| format!("landlock: {error}"))?;
        if status.ruleset != RulesetStatus::FullyEnforced {
            return Err("landlock is not fully enforced here".to_owned());
        }
    }
    if policy.confinement.seccomp {
        seccomp::apply_deny_list().map_err(|error| format!("seccomp: {error}"))?;
    }
    Ok(())
}

/// Returns the Landlock version to use; `None` to do without. Namespaces already hide files, so with them the
/// oldest version, which forbids every move between folders, does more harm than good.
fn landlock_abi(confinement: KernelConfinement) -> Option<ABI> {
    let abi = confinement.landlock;
    let is_used = abi
        >= if confinement.namespaces {
            confinement.landlock_needed()
        } else {
            1
        };
    is_used.then(|| ABI::from(i32::try_from(abi).unwrap_or(i32::MAX)))
}

fn restrict_files(policy: &LauncherPolicy, abi: ABI) -> Result<RestrictionStatus, landlock::RulesetError> {
    let (all, read) = (AccessFs::from_all(abi), AccessFs::from_read(abi));
    let namespaces = policy.confinement.namespaces;
    // With namespaces the root contains nothing but what the policy permits, and the private folders are used
    // by this command only.
    let (visible, private, terminals) = if namespaces {
        (vec![PathBuf::from("/")], private_folders().collect(), TERMINALS)
    } else {
        let mut visible = visible_without_hidden(&policy.visible, &policy.hidden);
        visible.push(PROC.into());
        (visible, Vec::new(), &[][..])
    };
    let ruleset = Ruleset::default()
        // The caller checks the resulting status, so an older kernel may drop rules here.
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

/// Returns the largest folders inside the visible ones that contain nothing hidden. Landlock rules can only
/// allow, so hidden paths are left out.
fn visible_without_hidden(visible: &[PathBuf], hidden: &[PathBuf]) -> Vec<PathBuf> {
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
            queue.extend(list_children(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Lists the entries of a folder without symbolic links. A rule would follow a link, and the target has its
/// own entry.
fn list_children(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()))
        .map(|entry| entry.path())
        .collect()
}

/// Applies an empty policy to this process. Returns the kernel's Landlock version; 0 when it has none or
/// disables it.
pub(crate) fn try_landlock() -> u32 {
    let applied = rustix::thread::set_no_new_privs(true)
        .ok()
        .and_then(|()| restrict_files(&LauncherPolicy::default(), ABI::V9).ok());
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
