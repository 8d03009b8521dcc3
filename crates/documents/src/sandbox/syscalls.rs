//! The system calls of a process that reads documents: those that computing needs. What only an intruder would try
//! ends it at once; everything else is refused.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Compare, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

/// Computing: memory, time, chance, threads, signals of its own, and the three descriptors that are open.
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

/// Connections, other processes, other views of the machine: nothing that reads a document or a picture needs them.
const REACHING_OUT: &[libc::c_long] = &[
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

/// Programs: beside that, what no honest reader of documents asks for.
const INTRUDING: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
    libc::SYS_kill,
];

/// The same number on every machine, which `libc` does not know for all of them.
const FCHMODAT2: libc::c_long = 452;

/// What a program that we did not write does not need beside that: to signal others, and to change what landlock does not
/// watch over. Programs try some of it in good faith, so it is refused and no more.
const MEDDLING: &[libc::c_long] = &[
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    // Who leaves the group is not killed with it.
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

/// To be called while the process has one thread; those that it starts later are held to the same.
pub fn restrict() -> Result<(), Error> {
    // Of several filters the strictest answer counts, so each says one thing and lets the rest pass.
    let filters = [
        filter(intruding()?, SeccompAction::KillProcess, SeccompAction::Allow)?,
        without_clone3()?,
        // Last, because after it there is no putting up filters any more.
        filter(computing()?, SeccompAction::Allow, SeccompAction::Errno(errno(libc::EPERM)))?,
    ];
    filters.iter().try_for_each(|filter| seccompiler::apply_filter(filter))
}

/// For a process that runs a program we did not write: it may start others, but not meddle.
pub fn restrict_program() -> Result<(), Error> {
    let refused = SeccompAction::Errno(errno(libc::EPERM));
    let filters = [without_clone3()?, filter(meddling()?, refused, SeccompAction::Allow)?];
    filters.iter().try_for_each(|filter| seccompiler::apply_filter(filter))
}

/// Its flags are out of a filter's sight. Whoever is told that there is no such call takes `clone`.
fn without_clone3() -> Result<BpfProgram, Error> {
    let refused = SeccompAction::Errno(errno(libc::ENOSYS));
    filter([(libc::SYS_clone3, vec![])].into(), refused, SeccompAction::Allow)
}

fn meddling() -> Result<Rules, Error> {
    let mut rules: Rules = REACHING_OUT.iter().chain(MEDDLING).map(|call| (*call, vec![])).collect();
    rules.insert(libc::SYS_clone, vec![flags(0, libc::CLONE_NEWUSER, libc::CLONE_NEWUSER)?]);
    // Nought is the whole group, in which is nobody else, and the process itself, which can only limit itself further.
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
    // Memory, but none that new code could be put into.
    rules.insert(libc::SYS_mmap, vec![flags(2, libc::PROT_EXEC, 0)?]);
    rules.insert(libc::SYS_mprotect, vec![flags(2, libc::PROT_EXEC, 0)?]);
    // This is how a process aborts. To signal anybody else is not computing.
    let own = u64::from(std::process::id());
    rules.insert(
        libc::SYS_tgkill,
        vec![SeccompRule::new(vec![SeccompCondition::new(0, Length::Dword, Compare::Eq, own)?])?],
    );
    Ok(rules)
}

fn intruding() -> Result<Rules, Error> {
    let mut rules: Rules = REACHING_OUT.iter().chain(INTRUDING).map(|call| (*call, vec![])).collect();
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
