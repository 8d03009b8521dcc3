//! The system calls of a process that reads documents: those that computing needs. Calls that only an attacker makes
//! kill the process; all others return an error.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Compare, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

/// What computing needs: memory, time, random numbers, threads, own signals, and the three open descriptors.
const COMPUTING: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Connections, other processes, namespaces: neither a reader of documents nor tesseract needs them.
const OUTSIDE: &[libc::c_long] = &[
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_io_uring_setup,
    libc::SYS_bpf,
    libc::SYS_mount,
    libc::SYS_unshare,
    libc::SYS_setns,
];

/// New programs and signals: a reader of documents does not need these either.
const FORBIDDEN: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
    libc::SYS_kill,
];

/// The number is the same on every architecture, but `libc` does not define it for all of them.
const FCHMODAT2: libc::c_long = 452;

/// What tesseract does not need either: to signal other processes, and to change what landlock does not cover.
/// Correct programs try some of these, so they return an error and do not kill.
const INTERFERING: &[libc::c_long] = &[
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    // A process that leaves the group is not killed with it.
    libc::SYS_setsid,
    libc::SYS_setpgid,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_chroot,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    libc::SYS_utimensat,
];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Must be called while the process has one thread. Later threads inherit the filters.
pub fn restrict() -> Result<(), Error> {
    // The strictest result of all filters counts, so each filter decides one thing and allows the rest.
    let filters = [
        filter(forbidden()?, SeccompAction::KillProcess, SeccompAction::Allow)?,
        without_clone3()?,
        // Last, because it forbids to add further filters.
        filter(computing()?, SeccompAction::Allow, SeccompAction::Errno(errno(libc::EPERM)))?,
    ];
    filters.iter().try_for_each(|filter| seccompiler::apply_filter(filter))
}

/// For a process that runs tesseract: it may start programs, but not affect other processes.
pub fn restrict_program() -> Result<(), Error> {
    let refused = SeccompAction::Errno(errno(libc::EPERM));
    let filters = [without_clone3()?, filter(interfering()?, refused, SeccompAction::Allow)?];
    filters.iter().try_for_each(|filter| seccompiler::apply_filter(filter))
}

/// A filter cannot see the flags of `clone3`. Libraries that are told that it does not exist use `clone`.
fn without_clone3() -> Result<BpfProgram, Error> {
    let refused = SeccompAction::Errno(errno(libc::ENOSYS));
    filter([(libc::SYS_clone3, vec![])].into(), refused, SeccompAction::Allow)
}

fn interfering() -> Result<Rules, Error> {
    let mut rules: Rules = OUTSIDE.iter().chain(INTERFERING).map(|call| (*call, vec![])).collect();
    rules.insert(libc::SYS_clone, vec![flags(0, libc::CLONE_NEWUSER, libc::CLONE_NEWUSER)?]);
    // Zero means the own process group for `kill`, and the process itself for `prlimit64`, which can only lower its
    // limits.
    for call in [libc::SYS_kill, libc::SYS_prlimit64] {
        let others = SeccompCondition::new(0, Length::Dword, Compare::Ne, 0)?;
        rules.insert(call, vec![SeccompRule::new(vec![others])?]);
    }
    Ok(rules)
}

fn computing() -> Result<Rules, Error> {
    let mut rules: Rules = COMPUTING.iter().map(|call| (*call, vec![])).collect();
    rules.insert(libc::SYS_clone3, vec![]);
    rules.insert(libc::SYS_clone, vec![flags(0, libc::CLONE_THREAD, libc::CLONE_THREAD)?]);
    // Memory, but never executable.
    rules.insert(libc::SYS_mmap, vec![flags(2, libc::PROT_EXEC, 0)?]);
    rules.insert(libc::SYS_mprotect, vec![flags(2, libc::PROT_EXEC, 0)?]);
    // A process aborts with this call. It may signal only itself.
    let own = u64::from(std::process::id());
    rules.insert(
        libc::SYS_tgkill,
        vec![SeccompRule::new(vec![SeccompCondition::new(0, Length::Dword, Compare::Eq, own)?])?],
    );
    Ok(rules)
}

fn forbidden() -> Result<Rules, Error> {
    let mut rules: Rules = OUTSIDE.iter().chain(FORBIDDEN).map(|call| (*call, vec![])).collect();
    rules.insert(libc::SYS_clone, vec![flags(0, libc::CLONE_THREAD, 0)?]);
    Ok(rules)
}

/// Holds when, of the flags in `mask`, exactly `set` are set.
fn flags(argument: u8, mask: libc::c_int, set: libc::c_int) -> Result<SeccompRule, Error> {
    let (mask, set) = (u64::from(mask.cast_unsigned()), u64::from(set.cast_unsigned()));
    let condition = SeccompCondition::new(argument, Length::Qword, Compare::MaskedEq(mask), set)?;
    Ok(SeccompRule::new(vec![condition])?)
}

fn filter(rules: Rules, listed: SeccompAction, others: SeccompAction) -> Result<BpfProgram, Error> {
    let machine = TargetArch::try_from(std::env::consts::ARCH)?;
    Ok(BpfProgram::try_from(SeccompFilter::new(rules, others, listed, machine)?)?)
}

fn errno(error: libc::c_int) -> u32 {
    error.cast_unsigned()
}
