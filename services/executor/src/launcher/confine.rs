//! Confinement of the calling process, and what the kernel offers for it.

use std::{
    fs,
    io::{Read, Write, stdin, stdout},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
    Scope, path_beneath_rules,
};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::policy::Policy;

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

/// Limits that hold for the launcher and everything under it.
pub(crate) fn set_limits(policy: &Policy) -> Result<(), String> {
    let limits = [
        (Resource::Core, 0),
        (Resource::Nofile, MAX_OPEN_FILES),
        (Resource::Fsize, policy.max_file_bytes),
    ];
    for (resource, wanted) in limits {
        // A hard limit can only be lowered.
        let ceiling = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let limit = Some(wanted.min(ceiling));
        setrlimit(
            resource,
            Rlimit {
                current: limit,
                maximum: limit,
            },
        )
        .map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Reads the policy, confines this process and turns it into the command.
pub(crate) fn become_command() -> Result<ExitCode, String> {
    let mut text = String::new();
    stdin()
        .lock()
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())?;
    let policy: Policy = serde_json::from_str(&text).map_err(|error| format!("bad policy: {error}"))?;
    let null = fs::File::open("/dev/null").map_err(|error| error.to_string())?;
    rustix::stdio::dup2_stdin(&null).map_err(|error| error.to_string())?;
    rustix::thread::set_no_new_privs(true).map_err(|error| error.to_string())?;
    if policy.landlock && !restrict(&policy).map_err(|error| format!("landlock: {error}"))? {
        return Err("landlock is not fully enforced here".to_owned());
    }
    let (program, args) = policy.command.split_first().ok_or("the policy has no command")?;
    let error = Command::new(program)
        .args(args)
        .current_dir(&policy.directory)
        .exec();
    Err(format!("{program}: {error}"))
}

/// True when everything that was asked for is enforced.
fn restrict(policy: &Policy) -> Result<bool, landlock::RulesetError> {
    let (all, read) = (AccessFs::from_all(LANDLOCK), AccessFs::from_read(LANDLOCK));
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::Signal | Scope::AbstractUnixSocket)?
        .create()?
        .add_rules(path_beneath_rules(visible(&policy.hidden), read))?
        .add_rules(path_beneath_rules(&policy.readable, read))?
        .add_rules(path_beneath_rules(&policy.writable, all))?
        .add_rules(path_beneath_rules(DEVICES, all))?
        .restrict_self()?;
    Ok(status.ruleset == RulesetStatus::FullyEnforced)
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

/// Applies an empty policy to this process and prints how that went.
pub(crate) fn probe() -> Result<ExitCode, String> {
    let nothing = Policy {
        command: Vec::new(),
        directory: PathBuf::from("/"),
        writable: Vec::new(),
        readable: Vec::new(),
        hidden: Vec::new(),
        max_file_bytes: u64::MAX,
        landlock: true,
    };
    rustix::thread::set_no_new_privs(true).map_err(|error| error.to_string())?;
    let landlock = restrict(&nothing).unwrap_or(false);
    writeln!(stdout(), "{}", serde_json::json!({ "landlock": landlock }))
        .map_err(|error| error.to_string())?;
    Ok(ExitCode::SUCCESS)
}
