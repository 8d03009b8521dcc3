//! A real clamd with a single signature, on a socket in its own folder.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// `make test` sets where clamd is.
const CLAMD: &str = "LANDFALL_TEST_CLAMD";

/// The test file that every scanner knows, in two parts: as one string, a scanner would flag this program.
pub fn eicar() -> Vec<u8> {
    let parts = ["X5O!P%@AP[4\\PZX54(P^)7CC)7}$", "EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"];
    parts.concat().into_bytes()
}

pub struct Clamd {
    folder: TempDir,
    program: PathBuf,
    process: Option<Child>,
}

impl Clamd {
    /// A plain `cargo test` has no clamd; `make test` installs one.
    pub fn install() -> Option<Self> {
        let Ok(program) = std::env::var(CLAMD) else {
            eprintln!("not run: {CLAMD} is not set; `make test` installs clamd");
            return None;
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let signatures = folder.path().join("signatures");
        std::fs::create_dir(&signatures).expect("a folder");
        // Name, kind of file (any), offset (any), bytes.
        let signature = format!("Eicar-Test-Signature:0:*:{}\n", hex(&eicar()));
        std::fs::write(signatures.join("eicar.ndb"), signature).expect("a file");
        let settings = format!(
            "Foreground yes\nLocalSocket {socket}\nDatabaseDirectory {signatures}\nTemporaryDirectory {folder}\n\
             StreamMaxLength 1M\nAlertEncrypted yes\nAlertExceedsMax yes\n",
            socket = folder.path().join("clamd.sock").display(),
            signatures = signatures.display(),
            folder = folder.path().display(),
        );
        std::fs::write(folder.path().join("clamd.conf"), settings).expect("a file");
        Some(Self { folder, program: program.into(), process: None })
    }

    pub fn address(&self) -> String {
        self.socket().display().to_string()
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("clamd.sock")
    }

    /// Starts it and waits until it replies.
    pub async fn start(&mut self) {
        let process = Command::new(&self.program)
            .arg(format!("--config-file={}", self.folder.path().join("clamd.conf").display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("clamd starts");
        self.process = Some(process);
        while !replies(&self.socket()).await {
            let ended =
                self.process.as_mut().and_then(|process| process.try_wait().expect("a child of ours"));
            assert_eq!(ended, None, "clamd ended");
            tokio::task::yield_now().await;
        }
    }

    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it can be stopped");
            process.wait().expect("it ends");
        }
    }
}

impl Drop for Clamd {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn replies(socket: &Path) -> bool {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let Ok(mut clamd) = tokio::net::UnixStream::connect(socket).await else { return false };
    let mut answer = Vec::new();
    clamd.write_all(b"zPING\0").await.is_ok()
        && clamd.read_to_end(&mut answer).await.is_ok()
        && answer.starts_with(b"PONG")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
