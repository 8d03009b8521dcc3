//! A PostgreSQL server for one test, which may kill it.

use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use landfall_core::clock::Clock;
use tempfile::TempDir;

use super::certificate::Certificate;
use super::{TestDb, folder};

/// `make test` sets where the programs are, and the account to run them: PostgreSQL refuses root.
const PROGRAMS: &str = "LANDFALL_TEST_POSTGRES_PROGRAMS";
const ACCOUNT: &str = "LANDFALL_TEST_POSTGRES_ACCOUNT";
/// The programs of another version, which was built with TLS.
const PROGRAMS_WITH_TLS: &str = "LANDFALL_TEST_POSTGRES_TLS";
const PASSWORD: &str = "only-this-test-knows";

pub struct Cluster {
    programs: PathBuf,
    account: Option<(u32, u32)>,
    folder: TempDir,
    pub port: u16,
    settings: &'static str,
}

impl Cluster {
    /// Creates a cluster and starts it. A plain `cargo test` has no programs for it.
    pub fn start_new() -> Option<Self> {
        let cluster = Self::create(PROGRAMS, &["--set=scram_iterations=1"], "")?;
        assert!(cluster.try_to_start(), "PostgreSQL starts");
        Some(cluster)
    }

    /// The same with TLS.
    pub fn start_with_tls(certificate: &Certificate) -> Option<Self> {
        let settings = "-c ssl=on -c ssl_cert_file=server.pem -c ssl_key_file=server.key";
        let cluster = Self::create(PROGRAMS_WITH_TLS, &[], settings)?;
        for (from, name) in [(&certificate.cert, "server.pem"), (&certificate.key, "server.key")] {
            let to = cluster.folder.path().join("data").join(name);
            std::fs::copy(from, &to).expect("it can be copied");
            // PostgreSQL refuses a key that others may read.
            std::fs::set_permissions(&to, PermissionsExt::from_mode(0o600)).expect("it is ours");
            if let Some((user, group)) = cluster.account {
                chown(&to, Some(user), Some(group)).expect("only root needs another account");
            }
        }
        assert!(cluster.try_to_start(), "PostgreSQL starts");
        Some(cluster)
    }

    fn create(variable: &str, options: &[&str], settings: &'static str) -> Option<Self> {
        let Ok(programs) = std::env::var(variable) else {
            eprintln!("not run: {variable} is not set; `make test` sets it");
            return None;
        };
        let account = std::env::var(ACCOUNT).unwrap_or_default();
        let account = account.split_once(':').map(|(user, group)| {
            (user.parse().expect("a user's number"), group.parse().expect("a group's number"))
        });
        let folder = folder::temporary();
        let password = folder.path().join("password");
        std::fs::write(&password, PASSWORD).expect("it can be written");
        std::fs::set_permissions(&password, PermissionsExt::from_mode(0o600)).expect("it is ours");
        if let Some((user, group)) = account {
            chown(folder.path(), Some(user), Some(group)).expect("only root needs another account");
            chown(&password, Some(user), Some(group)).expect("the same");
        }
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|probe| probe.local_addr())
            .expect("a free port")
            .port();
        let cluster = Self { programs: programs.into(), account, folder, port, settings };
        let made = cluster
            .program("initdb")
            .arg("--pgdata=data")
            .args(["--username=postgres", "--auth=scram-sha-256", "--pwfile=password", "--encoding=UTF8"])
            .args(["--no-locale", "--no-sync"])
            .args(options)
            .status();
        assert!(made.expect("initdb runs").success());
        Some(cluster)
    }

    /// A database on it, with its own folder.
    pub fn database(&self) -> TestDb {
        self.database_at("127.0.0.1", "")
    }

    /// The same at another name of this machine, with parameters for the connection.
    pub fn database_at(&self, host: &str, parameters: &str) -> TestDb {
        let url = format!("postgres://postgres:{PASSWORD}@{host}:{}/postgres{parameters}", self.port);
        TestDb { url, folder: folder::temporary() }
    }

    /// SIGKILL to the server; its children notice and end.
    pub fn kill(&self) {
        self.signal("KILL");
    }

    pub fn signal(&self, signal: &str) {
        let noted = std::fs::read_to_string(self.folder.path().join("data/postmaster.pid")).expect("it runs");
        let id = noted.lines().next().expect("the first line is its id").to_owned();
        let sent = Command::new("kill").arg(format!("-{signal}")).arg(id).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Starts it again, as soon as the processes of the last start are gone.
    pub async fn start_again(&self) {
        for _ in 0..600 {
            if self.try_to_start() {
                return;
            }
            Clock::System.sleep(Duration::from_millis(100)).await;
        }
        panic!("PostgreSQL does not start again");
    }

    fn try_to_start(&self) -> bool {
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=100 {}",
            self.port, self.settings
        );
        let started = self
            .program("pg_ctl")
            .args(["start", "--wait", "-D", "data", "-l", "log", "-o", &options])
            .status();
        started.expect("pg_ctl runs").success()
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(self.folder.path()).env_clear().env("LC_ALL", "C").env("TZ", "UTC");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some((user, group)) = self.account {
            command.uid(user).gid(group);
        }
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // One that was killed and not started again has ended already.
        drop(self.program("pg_ctl").args(["stop", "-D", "data", "-m", "immediate"]).status());
    }
}
