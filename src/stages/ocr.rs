//! Reads the words in pictures with the program `tesseract`, where it is installed.
//!
//! A picture comes from a stranger and the program is written in C: it gets the picture on its standard input and no
//! file, a limit on its memory, one thread, and a limited time, and only so much of what it says is listened to.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::clock::Clock;

/// The longest that one picture may take. A page takes some seconds.
const LONGEST: Duration = Duration::from_mins(2);
/// The most text of one picture.
const MOST_TEXT: u64 = 1 << 20;
/// The most of its complaints.
const MOST_COMPLAINTS: u64 = 4_096;
/// Its memory, in kilobytes as the shell counts it.
const MEMORY_KB: &str = "1572864";

#[derive(Debug, Clone)]
pub struct Ocr {
    program: PathBuf,
    languages: String,
}

/// Why a picture could not be read, in the program's own words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tesseract could not read the picture: {0}")]
pub struct OcrError(String);

impl Ocr {
    /// Looks for the program on the path.
    pub fn find(languages: &str) -> Option<Self> {
        let path = std::env::var_os("PATH")?;
        let program =
            std::env::split_paths(&path).map(|folder| folder.join("tesseract")).find(|p| is_program(p))?;
        Some(Self { program, languages: languages.to_owned() })
    }

    /// The words in a picture. Dropping the answer's future ends the program.
    pub async fn recognise(&self, picture: &[u8]) -> Result<String, OcrError> {
        tokio::select! {
            recognised = self.run(picture) => recognised,
            () = Clock::System.sleep(LONGEST) => Err(OcrError(format!("it took longer than {} s", LONGEST.as_secs()))),
        }
    }

    async fn run(&self, picture: &[u8]) -> Result<String, OcrError> {
        let failed = |error: std::io::Error| OcrError(error.to_string());
        // The shell sets the limit and becomes the program.
        let mut program = Command::new("/bin/sh")
            .args(["-c", "ulimit -v \"$1\" && shift && exec \"$@\"", "sh", MEMORY_KB])
            .arg(&self.program)
            .args(["stdin", "stdout", "-l", &self.languages])
            // More threads than one make it slower on a machine that has other things to do.
            .env("OMP_THREAD_LIMIT", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let (Some(mut input), Some(output), Some(complaints)) =
            (program.stdin.take(), program.stdout.take(), program.stderr.take())
        else {
            return Err(OcrError("it has no standard input and output".to_owned()));
        };
        let (mut words, mut complaint) = (Vec::new(), Vec::new());
        let (mut output, mut complaints) = (output.take(MOST_TEXT), complaints.take(MOST_COMPLAINTS));
        let (_, read, heard) = tokio::join!(
            async {
                // It may stop listening when it has seen enough. Closing its input is what makes it begin.
                let written = input.write_all(picture).await;
                drop(input);
                written
            },
            output.read_to_end(&mut words),
            complaints.read_to_end(&mut complaint),
        );
        read.and(heard).map_err(failed)?;
        // Whoever has more to say than is listened to would wait for ever.
        drop((output, complaints));
        let status = program.wait().await.map_err(failed)?;
        if !status.success() && words.is_empty() {
            let complaint = String::from_utf8_lossy(&complaint);
            let last =
                complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it gave no reason");
            return Err(OcrError(last.trim().to_owned()));
        }
        Ok(String::from_utf8_lossy(&words).replace('\u{c}', "\n"))
    }
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
