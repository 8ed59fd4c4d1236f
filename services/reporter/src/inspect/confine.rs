//! Permanent confinement of the calling process: resource limits, Landlock, seccomp.

use std::{
    collections::BTreeMap,
    env::consts::ARCH,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{Resource, Rlimit, Signal};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen::Dword, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

// Requested Landlock version. Older kernels enforce a part of it, and the probe checks that this part is sufficient.
const LANDLOCK: ABI = ABI::V6;
/// CPU time of this process, and of each process that it starts, in seconds.
pub(super) const CPU_S: u64 = 60;
// Largest file that the process can write, in bytes.
const MAX_FILE: u64 = 1 << 30;
const MAX_OPEN_FILES: u64 = 1024;

// Paths of programs and their libraries.
const PROGRAMS: [&str; 8] = [
    "/usr",
    "/lib",
    "/lib64",
    "/bin",
    "/sbin",
    "/nix/store",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
];
const DEVICES: [&str; 2] = ["/dev/null", "/dev/urandom"];

// System calls that the inspector never needs: sockets, access to other processes, and calls with a large attack
// surface.
const DENIED: &[i64] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_open_by_handle_at,
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
];

// On x86-64 every system call has a second number in the x32 ABI, which a filter by number would miss.
const X32: i64 = 0x4000_0000;

/// Sets resource limits, which need no support for Landlock or seccomp. `memory` limits the data of each process, in
/// bytes.
pub(super) fn set_limits(memory: u64) -> Result<(), String> {
    // The inspector must not outlive the reporter.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| error.to_string())?;
    for (resource, wanted) in [
        (Resource::Core, 0),
        (Resource::Cpu, CPU_S),
        (Resource::Data, memory),
        (Resource::Fsize, MAX_FILE),
        (Resource::Nofile, MAX_OPEN_FILES),
    ] {
        // A process cannot raise its hard limit, so a lower limit of the container stays.
        let ceiling = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let limit = Some(wanted.min(ceiling));
        let limit = Rlimit {
            current: limit,
            maximum: limit,
        };
        rustix::process::setrlimit(resource, limit).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Restricts this process to reading programs and a mirror, and writing its quarantine.
pub(super) fn confine_process(mirror: &Path, quarantine: &Path) -> Result<(), String> {
    // Landlock and seccomp require it for unprivileged processes. It also disables setuid programs.
    rustix::thread::set_no_new_privs(true).map_err(|error| error.to_string())?;
    restrict_files(mirror, quarantine)?;
    refuse_calls().map_err(|error| format!("seccomp: {error}"))
}

fn restrict_files(mirror: &Path, quarantine: &Path) -> Result<(), String> {
    let (all, read) = (AccessFs::from_all(LANDLOCK), AccessFs::from_read(LANDLOCK));
    let restrict = || {
        Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            .handle_access(AccessNet::from_all(LANDLOCK))?
            .scope(Scope::Signal | Scope::AbstractUnixSocket)?
            .create()?
            .add_rules(path_beneath_rules(PROGRAMS, read))?
            .add_rules(path_beneath_rules(folders_of_git(), read))?
            .add_rules(path_beneath_rules(DEVICES, all))?
            .add_rules(path_beneath_rules([mirror], read))?
            .add_rules(path_beneath_rules([quarantine], all))?
            .restrict_self()
    };
    let status = restrict().map_err(|error: landlock::RulesetError| format!("landlock: {error}"))?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err("the kernel has no Landlock".to_owned()),
    }
}

/// Returns the installation folder of `git`, because a `git` outside of the system paths has its libraries there.
fn folders_of_git() -> Vec<PathBuf> {
    let found = git::find_git_program().and_then(|program| program.canonicalize().ok());
    let prefix = found.and_then(|git| Some(git.parent()?.parent()?.to_owned()));
    prefix
        // The root folder would open all files.
        .filter(|prefix| prefix.components().count() > 1)
        .into_iter()
        .collect()
}

fn refuse_calls() -> Result<(), seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = DENIED
        .iter()
        .flat_map(|call| syscall_numbers(*call))
        .map(|call| (call, Vec::new()))
        .collect();
    // Abort needs tgkill on the process itself. Other processes stay out of reach.
    let own = u64::from(std::process::id());
    let others = SeccompCondition::new(0, Dword, SeccompCmpOp::Ne, own)?;
    for call in syscall_numbers(libc::SYS_tgkill) {
        rules.insert(call, vec![SeccompRule::new(vec![others.clone()])?]);
    }
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, ARCH.try_into()?)?;
    let program: BpfProgram = filter.try_into()?;
    apply_filter(&program)
}

fn syscall_numbers(call: i64) -> Vec<i64> {
    if cfg!(target_arch = "x86_64") {
        vec![call, call | X32]
    } else {
        vec![call]
    }
}
