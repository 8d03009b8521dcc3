//! A server, a working folder, and the program as a person or a script runs it.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

use super::TestDb;
use super::process::Process;

pub struct Session {
    pub db: TestDb,
    pub server: Process,
}

pub struct CommandOutput {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl CommandOutput {
    /// The single JSON value on stdout, as a script reads it.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error}: {:?} {:?}", self.out, self.err))
    }

    pub fn of(output: std::process::Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A command that runs. It is killed if the test ends before it.
pub struct Running(tokio::process::Child);

impl Running {
    pub async fn output(self) -> CommandOutput {
        CommandOutput::of(self.0.wait_with_output().await.expect("it ends"))
    }

    /// SIGKILL: nothing is finished.
    pub async fn kill(mut self) {
        self.0.kill().await.expect("it was running");
    }
}

impl Session {
    pub fn new() -> Self {
        Self::with(&[])
    }

    pub fn with(variables: &[(&str, &str)]) -> Self {
        let db = TestDb::sqlite();
        let server = Process::start(&db, variables);
        Self { db, server }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.db.folder.path().join(name)
    }

    /// Writes a file, with the folders that it is in.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("it is in a folder")).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.run_against(&self.server.base, arguments)
    }

    pub fn run_against(&self, server: &str, arguments: &[&str]) -> CommandOutput {
        CommandOutput::of(self.command(server, arguments).output().expect("the program runs"))
    }

    /// Starts the program, and does not wait for its end.
    pub fn start_against(&self, server: &str, arguments: &[&str]) -> Running {
        let mut command = tokio::process::Command::from(self.command(server, arguments));
        command.stdout(Stdio::piped()).kill_on_drop(true);
        Running(command.spawn().expect("the program runs"))
    }

    pub fn command(&self, server: &str, arguments: &[&str]) -> std::process::Command {
        let mut command = Process::command(&self.db);
        command
            .args(arguments)
            .env("LANDFALL_URL", server)
            .env("XDG_STATE_HOME", self.state())
            .stderr(Stdio::piped());
        command
    }

    /// The user's state folder.
    pub fn state(&self) -> PathBuf {
        self.path(".state")
    }

    /// The notes about uploads that are not finished.
    pub fn unfinished(&self) -> usize {
        std::fs::read_dir(self.state().join("landfall/uploads")).map_or(0, Iterator::count)
    }

    /// All files of the user, newest first.
    pub fn files(&self) -> Vec<Value> {
        let listed = self.run(&["files", "--json", "--limit", "100000"]).json();
        listed["files"].as_array().expect("a list").clone()
    }
}
