//! Seccomp deny list: calls that reach other processes, large attack surfaces of the kernel, and new
//! namespaces.

use std::{collections::BTreeMap, env::consts::ARCH};

use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS,
    CLONE_NEWPID, CLONE_NEWUSER, CLONE_NEWUTS, TIOCLINUX, TIOCSTI,
};
use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen::Dword, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

/// Calls that no build or test needs.
const DENIED: &[i64] = &[
    // Access to memory and descriptors of other processes.
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Keyrings are shared by all processes of a user.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    // In a new user namespace a process has all capabilities again.
    libc::SYS_unshare,
    // A handle opens a file without a path, and therefore also outside of the root.
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// Calls that return `ENOSYS`, so that libraries fall back to older calls whose arguments the filter can
/// check.
const UNKNOWN: &[i64] = &[
    // The kernel executes io_uring's operations itself, past the filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The flags of `clone3` are behind a pointer, which a filter cannot read. `clone` takes them in a
    // register.
    libc::SYS_clone3,
];

// On x86-64 every call has a second number for the x32 ABI, with this bit set.
const X32: i64 = 0x4000_0000;
/// Call numbers of x32 alone: `ptrace`, `process_vm_readv`, `process_vm_writev`, `kexec_load`, `ioctl`.
const X32_OWN: &[i64] = &[521, 539, 540, 528, 514];

const NAMESPACES: [i32; 7] = [
    CLONE_NEWNS,
    CLONE_NEWUTS,
    CLONE_NEWIPC,
    CLONE_NEWUSER,
    CLONE_NEWPID,
    CLONE_NEWNET,
    CLONE_NEWCGROUP,
];

// `PRIO_PROCESS` and `IOPRIO_WHO_PROCESS`: with them the second argument identifies one process.
const ONE_PROCESS: i32 = 0;
const ONE_PROCESS_IO: i32 = 1;

type SyscallRules = BTreeMap<i64, Vec<SeccompRule>>;

/// Applies the deny list to this process and its descendants.
pub(crate) fn apply_deny_list() -> Result<(), Error> {
    let eperm = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let enosys = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    apply_filter(&compile_filter(unknown_rules(), enosys)?)?;
    apply_filter(&compile_filter(denied_rules()?, eperm)?)
}

fn compile_filter(rules: SyscallRules, action: SeccompAction) -> Result<BpfProgram, Error> {
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, ARCH.try_into()?)?;
    Ok(filter.try_into()?)
}

fn unknown_rules() -> SyscallRules {
    UNKNOWN
        .iter()
        .flat_map(|call| call_numbers(*call))
        .map(|call| (call, Vec::new()))
        .collect()
}

fn denied_rules() -> Result<SyscallRules, Error> {
    let mut rules: SyscallRules = DENIED
        .iter()
        .flat_map(|call| call_numbers(*call))
        .map(|call| (call, Vec::new()))
        .collect();
    if cfg!(target_arch = "x86_64") {
        rules.extend(X32_OWN.iter().map(|call| (call | X32, Vec::new())));
    }
    let mut add = |call: i64, new: Vec<SeccompRule>| {
        for number in call_numbers(call) {
            rules.insert(number, new.clone());
        }
    };
    add(
        libc::SYS_clone,
        NAMESPACES
            .iter()
            .map(|flag| has_bits(0, *flag))
            .collect::<Result<_, _>>()?,
    );
    add(
        libc::SYS_socket,
        vec![
            other_than(0, &[AF_UNIX, AF_INET, AF_INET6, AF_NETLINK])?,
            // Only `NETLINK_ROUTE` is allowed: other netlink families show or change the state of the
            // machine.
            SeccompRule::new(vec![
                new_condition(0, SeccompCmpOp::Eq, AF_NETLINK)?,
                new_condition(2, SeccompCmpOp::Ne, libc::NETLINK_ROUTE)?,
            ])?,
            // MPTCP and SCTP connections are not covered by rules for TCP, such as Landlock's.
            SeccompRule::new(vec![new_condition(2, SeccompCmpOp::Eq, libc::IPPROTO_MPTCP)?])?,
            SeccompRule::new(vec![new_condition(2, SeccompCmpOp::Eq, libc::IPPROTO_SCTP)?])?,
        ],
    );
    add(libc::SYS_socketpair, vec![other_than(0, &[AF_UNIX])?]);
    // Process 0 is the caller itself. A program that passes its own process id is refused too, but libraries
    // pass 0.
    add(libc::SYS_prlimit64, vec![other_than(0, &[0])?]);
    // With a process group or user, 0 means the caller's, which includes other processes.
    add(
        libc::SYS_setpriority,
        vec![other_than(0, &[ONE_PROCESS])?, other_than(1, &[0])?],
    );
    add(
        libc::SYS_ioprio_set,
        vec![other_than(0, &[ONE_PROCESS_IO])?, other_than(1, &[0])?],
    );
    add(libc::SYS_sched_setaffinity, vec![other_than(0, &[0])?]);
    add(libc::SYS_sched_setscheduler, vec![other_than(0, &[0])?]);
    add(libc::SYS_sched_setparam, vec![other_than(0, &[0])?]);
    add(libc::SYS_sched_setattr, vec![other_than(0, &[0])?]);
    // Attaching to a running process (`PTRACE_ATTACH`, `PTRACE_SEIZE`) is denied; tracing by the parent
    // (`PTRACE_TRACEME`) stays possible.
    add(
        libc::SYS_ptrace,
        vec![equals_rule(0, 16)?, equals_rule(0, 0x4206)?],
    );
    // Both requests insert input into a terminal, which a shell outside would run.
    let typing = [TIOCSTI, TIOCLINUX].map(|request| equals_rule(1, u64::from(request as u32)));
    add(libc::SYS_ioctl, typing.into_iter().collect::<Result<_, _>>()?);
    Ok(rules)
}

fn call_numbers(call: i64) -> Vec<i64> {
    if cfg!(target_arch = "x86_64") {
        vec![call, call | X32]
    } else {
        vec![call]
    }
}

fn has_bits(argument: u8, bits: i32) -> Result<SeccompRule, Error> {
    let bits = u64::from(bits.cast_unsigned());
    let condition = SeccompCondition::new(argument, Dword, SeccompCmpOp::MaskedEq(bits), bits)?;
    Ok(SeccompRule::new(vec![condition])?)
}

fn equals_rule(argument: u8, value: u64) -> Result<SeccompRule, Error> {
    Ok(SeccompRule::new(vec![SeccompCondition::new(
        argument,
        Dword,
        SeccompCmpOp::Eq,
        value,
    )?])?)
}

fn other_than(argument: u8, allowed: &[i32]) -> Result<SeccompRule, Error> {
    let conditions = allowed
        .iter()
        .map(|value| new_condition(argument, SeccompCmpOp::Ne, *value));
    Ok(SeccompRule::new(conditions.collect::<Result<_, _>>()?)?)
}

fn new_condition(argument: u8, operator: SeccompCmpOp, value: i32) -> Result<SeccompCondition, Error> {
    let value = u64::from(value.cast_unsigned());
    Ok(SeccompCondition::new(argument, Dword, operator, value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_filters_compile_for_this_machine() {
        assert!(
            compile_filter(unknown_rules(), SeccompAction::Errno(38))
                .unwrap()
                .len()
                > 8
        );
        assert!(
            compile_filter(denied_rules().unwrap(), SeccompAction::Errno(1))
                .unwrap()
                .len()
                > 100
        );
    }
}
