//! The process that runs tesseract: a program that is not ours, on a picture that is a stranger's.
//!
//! `landfall ocr-child` takes away from itself what tesseract does not need, and starts it: what it starts has no more
//! than it has. It cannot be as poor as the process that reads documents, for a program has to be loaded, and has files
//! of its own. So it reads what belongs to the system and to tesseract, and nothing else; it writes nowhere, has no
//! network, and is not left alone: all that came of it ends when it does, or when the server does.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::process::{Pid, Resource, Signal};

use super::confine::{be_the_first_to_go, close_all_but_the_first, drop_capabilities, hide_all_but, limit};
use super::protocol::EXIT_NOT_CONFINED;
use super::{MIB, syscalls};

/// The name of the command, which no list of commands shows.
pub const COMMAND: &str = "ocr-child";

/// The memory of the program, in MiB.
const MEMORY_MB: u64 = 1_536;
/// Its computing, in seconds. Its time is limited from outside.
const CPU_SECONDS: u64 = 120;
/// Files that it may have open.
const DESCRIPTORS: u64 = 64;
/// How often it is looked whether the server lives.
const LOOK: Duration = Duration::from_millis(100);

/// Where systems keep programs, libraries and what belongs to them. Of `/etc` only what loading a program needs: the
/// rest is the operator's, and may be secret.
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

/// Where one may write to no effect.
const NOWHERE: &str = "/dev/null";

#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The process that starts it.
    #[arg(long)]
    pub parent: i32,
    /// A folder to read beside those of the system.
    #[arg(long)]
    pub readable: Vec<PathBuf>,
    /// A folder that is not to be read, also where it is in one that is.
    #[arg(long)]
    pub hidden: Vec<PathBuf>,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    pub command: Vec<std::ffi::OsString>,
}

/// Runs the program to its end.
pub fn run(arguments: &Arguments) -> ExitCode {
    if let Err(error) = confine(arguments) {
        eprintln!("could not be confined: {error}");
        return ExitCode::from(u8::try_from(EXIT_NOT_CONFINED).unwrap_or(u8::MAX));
    }
    let Some((program, its_arguments)) = arguments.command.split_first() else { return ExitCode::FAILURE };
    let mut program = match Command::new(program).args(its_arguments).spawn() {
        Ok(program) => program,
        Err(error) => {
            eprintln!("could not be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    let parent = arguments.parent;
    std::thread::spawn(move || end_with(parent));
    match program.wait() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) | Err(_) => ExitCode::FAILURE,
    }
}

/// The kernel would kill one process when its parent ends, but none that this one has started: so it stays to do that.
/// Nobody leaves the group.
#[expect(
    clippy::disallowed_methods,
    reason = "this process has no runtime, and waits for what no clock moves"
)]
fn end_with(parent: i32) {
    while rustix::process::getppid().map(Pid::as_raw_pid) == Some(parent) {
        std::thread::sleep(LOOK);
    }
    // Fails for nobody, for this process is in it.
    _ = rustix::process::kill_current_process_group(Signal::KILL);
}

/// To be called while the process has one thread and nothing open.
fn confine(arguments: &Arguments) -> io::Result<()> {
    close_all_but_the_first(3);
    be_the_first_to_go();
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
    // What is missing here is missing where documents are read, and that is where it is told.
    hide_all_but(&readable, &[NOWHERE.into()]);
    drop(syscalls::restrict_program());
    Ok(())
}

/// A path, or what is left of it without the hidden ones.
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
        // A link is allowed where it leads to.
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
