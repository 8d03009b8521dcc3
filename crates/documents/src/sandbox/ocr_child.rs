//! The process that runs tesseract on an untrusted picture.
//!
//! It gives up what tesseract does not need and then starts tesseract, which inherits the restrictions. They are
//! weaker than those of a process that reads documents, because a program must be loaded and has files of its own: it
//! can read the files of the system and of tesseract. It cannot write and has no network. The whole process group is
//! killed when tesseract exits or when the parent does.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::process::{Pid, Resource, Signal};

use super::arguments::{CommandLine, number, required, unknown};
use super::confine::{allow_only, close_descriptors_from, drop_capabilities, limit, raise_oom_score};
use super::protocol::EXIT_NOT_CONFINED;
use super::{MIB, syscalls};

/// The memory of the program, in MiB.
const MEMORY_MB: u64 = 1_536;
/// Its processor time, in seconds. The parent limits the time that passes.
const CPU_SECONDS: u64 = 120;
/// Files that it may have open.
const DESCRIPTORS: u64 = 64;
/// How often it checks whether the parent still runs.
const PARENT_POLL: Duration = Duration::from_millis(100);

/// Where systems keep programs and libraries. Of `/etc` only what loading a program needs: the rest may be secret.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/ld-musl-x86_64.path",
    "/etc/ld-musl-aarch64.path",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/ssl/openssl.cnf",
    "/sys/devices/system/cpu",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
];

/// The only file that may be written to.
const NULL_DEVICE: &str = "/dev/null";

/// The command line of the process.
#[derive(Debug, Clone)]
pub struct Arguments {
    /// The process that started it.
    pub parent: i32,
    /// Folders that may be read beside those of the system.
    pub readable: Vec<PathBuf>,
    /// Folders that must not be read, even inside a readable one.
    pub hidden: Vec<PathBuf>,
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

impl Arguments {
    pub fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut arguments = CommandLine::new(arguments);
        let (mut parent, mut readable, mut hidden) = (None, Vec::new(), Vec::new());
        while let Some((name, value)) = arguments.next_option()? {
            match name.as_str() {
                "--parent" => parent = Some(number(&name, &value)?),
                "--readable" => readable.push(value.into()),
                "--hidden" => hidden.push(value.into()),
                name => return Err(unknown(name)),
            }
        }
        let command = arguments.rest();
        Ok(Self {
            parent: required("--parent", parent)?,
            readable,
            hidden,
            command: required("-- PROGRAM", (!command.is_empty()).then_some(command))?,
        })
    }
}

/// Runs the program until it exits.
pub fn run(arguments: &Arguments) -> ExitCode {
    if let Err(error) = confine(arguments) {
        eprintln!("could not be confined: {error}");
        return ExitCode::from(u8::try_from(EXIT_NOT_CONFINED).unwrap_or(u8::MAX));
    }
    let Some((program, program_arguments)) = arguments.command.split_first() else {
        return ExitCode::FAILURE;
    };
    let mut program = match Command::new(program).args(program_arguments).spawn() {
        Ok(program) => program,
        Err(error) => {
            eprintln!("could not be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    let parent = arguments.parent;
    std::thread::spawn(move || kill_group_after(parent));
    match program.wait() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) | Err(_) => ExitCode::FAILURE,
    }
}

/// The kernel can kill a process when its parent exits, but not what that process has started. So this process waits
/// for the parent's exit and kills the group, which no process in it can leave.
#[expect(clippy::disallowed_methods, reason = "this process has no runtime, and waits for another process")]
fn kill_group_after(parent: i32) {
    while rustix::process::getppid().map(Pid::as_raw_pid) == Some(parent) {
        std::thread::sleep(PARENT_POLL);
    }
    // Cannot fail: this process is in the group.
    _ = rustix::process::kill_current_process_group(Signal::KILL);
}

/// Must be called while the process has one thread and no open files.
fn confine(arguments: &Arguments) -> io::Result<()> {
    close_descriptors_from(3);
    raise_oom_score();
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, 0)?;
    limit(Resource::As, MEMORY_MB * MIB)?;
    limit(Resource::Cpu, CPU_SECONDS)?;
    limit(Resource::Nofile, DESCRIPTORS)?;
    rustix::thread::set_no_new_privs(true)?;
    drop_capabilities()?;
    let hidden: Vec<PathBuf> = arguments.hidden.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let mut readable = Vec::new();
    for path in SYSTEM.iter().map(Path::new).chain(arguments.readable.iter().map(PathBuf::as_path)) {
        add_readable(path, &hidden, &mut readable);
    }
    // If landlock or seccomp is missing, the pool of readers logs it.
    allow_only(&readable, &[NULL_DEVICE.into()]);
    drop(syscalls::restrict_program());
    Ok(())
}

/// Adds a path; if something hidden is inside it, adds the rest of its content.
fn add_readable(path: &Path, hidden: &[PathBuf], readable: &mut Vec<PathBuf>) {
    let Ok(path) = path.canonicalize() else { return };
    if hidden.iter().any(|hidden| path.starts_with(hidden)) {
        return;
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(&path)) {
        return readable.push(path);
    }
    let Ok(entries) = path.read_dir() else { return };
    for entry in entries.flatten() {
        // Landlock checks the target of a link, so a link needs no rule.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            add_readable(&entry.path(), hidden, readable);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_folder_with_something_hidden_in_it_the_rest_is_readable() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in ["program/lib", "landfall/data/blobs", "landfall/models"] {
            std::fs::create_dir_all(root.join(path)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("landfall/data"), root.join("link")).unwrap();
        let readable = |path: &str, hidden: &[PathBuf]| {
            let mut readable = Vec::new();
            add_readable(&root.join(path), hidden, &mut readable);
            readable.sort();
            readable
        };
        let hidden = [root.join("landfall/data")];
        assert_eq!(readable("", &hidden), [root.join("landfall/models"), root.join("program")]);
        assert_eq!(readable("program", &hidden), [root.join("program")]);
        for path in ["link", "landfall/data", "landfall/data/blobs", "nowhere"] {
            assert_eq!(readable(path, &hidden), [] as [PathBuf; 0], "{path}");
        }
    }
}
