//! Confinement of the parser process, which it applies before it reads the first byte of a repository. It may
//! read its socket, answer, and use a bounded amount of memory and time.

use std::{collections::BTreeMap, env::consts::ARCH, io, time::Duration};

use landlock::{ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, Scope};
use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

/// Limit of the address space in bytes: for the program, and for parsing a text of the largest size.
const MAX_MEMORY: u64 = 768 << 20;
/// Limit of processor seconds for one request. The executor's own limit is shorter.
const MAX_CPU_S: u64 = 10;

/// System calls that reading, parsing and answering need.
const ALLOWED: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_mmap,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_getrusage,
    libc::SYS_prlimit64,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_sched_yield,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Applies all limits to this process.
pub(super) fn confine_parser() -> io::Result<()> {
    for (resource, most) in [
        (Resource::As, MAX_MEMORY),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nofile, 16),
    ] {
        setrlimit(resource, fixed_limit(most))?;
    }
    rustix::thread::set_no_new_privs(true)?;
    // The error is ignored: on a kernel without Landlock the seccomp filter below already prevents opening a
    // file.
    let _ = deny_files();
    apply_filter(&build_filter()?).map_err(io::Error::other)
}

/// Gives the next request its processor time, in addition to `busy`, the time of earlier requests. The kernel
/// ends the process beyond it.
pub(super) fn limit_time(busy: Duration) {
    let limit = Rlimit {
        current: Some(busy.as_secs() + MAX_CPU_S),
        maximum: None,
    };
    // The error is ignored: the call fails only under a lower hard limit, which then applies.
    let _ = setrlimit(Resource::Cpu, limit);
}

fn fixed_limit(most: u64) -> Rlimit {
    Rlimit {
        current: Some(most),
        maximum: Some(most),
    }
}

fn deny_files() -> Result<(), landlock::RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V6))?
        .handle_access(AccessNet::from_all(ABI::V6))?
        .scope(Scope::Signal | Scope::AbstractUnixSocket)?
        .create()?
        .restrict_self()
        .map(drop)
}

fn build_filter() -> io::Result<BpfProgram> {
    let rules: BTreeMap<i64, Vec<_>> = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    let arch = ARCH.try_into().map_err(io::Error::other)?;
    let filter = SeccompFilter::new(rules, SeccompAction::KillProcess, SeccompAction::Allow, arch);
    filter.and_then(BpfProgram::try_from).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_compiles_for_this_machine() {
        assert!(build_filter().unwrap().len() > ALLOWED.len());
    }
}
