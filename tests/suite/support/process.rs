//! The real program in its own process, which a test may kill.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::{Client, TestDb};

pub struct Process {
    child: Child,
    pub base: String,
    pub token: String,
}

impl Process {
    /// Starts a server on the test's database and waits until it listens.
    pub fn start(db: &TestDb, variables: &[(&str, &str)]) -> Self {
        Self::start_with_log(db, variables, Stdio::null())
    }

    /// The same with another target for its log.
    pub fn start_with_log(db: &TestDb, variables: &[(&str, &str)], log: Stdio) -> Self {
        let mut child = Self::command(db)
            .arg("serve")
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let address = lines
            .map(|line| line.expect("text"))
            .find(|line| line.contains("://"))
            .expect("the server prints where it listens");
        let base = address[address.find("http").expect("a URL")..].trim().to_owned();
        // Fails where tokens come from an issuer.
        let made = Self::command(db)
            .args(["token", "--user", "admin", "--role", "operator", "--ttl", "1d"])
            .envs(variables.iter().copied())
            .output()
            .expect("the program runs");
        let token = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        Self { child, base, token }
    }

    pub fn command(db: &TestDb) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_landfall"));
        command.current_dir(db.folder.path()).env_clear().stderr(Stdio::null()).stdin(Stdio::null());
        command.envs(db.variables());
        // Where `make coverage` collects what the program ran. Otherwise it would be written into the test's folder.
        command.envs(std::env::var_os("LLVM_PROFILE_FILE").map(|path| ("LLVM_PROFILE_FILE", path)));
        command
    }

    pub fn client(&self) -> Client {
        Client::new(self.base.clone(), self.token.clone())
    }

    #[cfg_attr(not(debug_assertions), expect(dead_code, reason = "only debug builds can misbehave"))]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL: nothing is logged, nothing is finished.
    pub fn kill(&mut self) {
        self.child.kill().expect("it was running");
        self.child.wait().expect("it ended");
    }

    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").arg(format!("-{signal}")).arg(self.child.id().to_string()).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Waits for the end; returns whether it exited with success.
    pub fn wait(mut self) -> bool {
        self.child.wait().expect("it ends").success()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A test that failed leaves nothing running; one that ended already cannot be killed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Runs the program to its end and returns its exit code and what it printed.
pub fn run(db: &TestDb, arguments: &[&str]) -> (i32, String) {
    let output =
        Process::command(db).args(arguments).stderr(Stdio::inherit()).output().expect("the program runs");
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned())
}
