//! Reads the words in pictures with the program `tesseract`, if it is installed.
//!
//! The picture is untrusted and the program is written in C++. So it runs in a confined process (see
//! [`sandbox`](crate::sandbox)) that gets the picture on its standard input and almost nothing of the environment.
//! Its time and the length of its output are limited.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::sandbox::process::{Exit, Process};
use crate::sandbox::stderr::drain;
use crate::sandbox::{OCR_COMMAND, Program};
use landfall_core::clock::{Clock, Stopwatch};

/// The most time for one picture. A page takes some seconds.
const PICTURE_TIMEOUT: Duration = Duration::from_mins(2);
/// The most text of one picture.
const MAX_TEXT: u64 = 1 << 20;

/// The environment variables that tesseract gets, beside those that begin with `LC_`: where programs and languages
/// are, and the language of its messages.
const PASSED_VARIABLES: &[&str] = &["PATH", "TESSDATA_PREFIX", "LANG", "LANGUAGE"];
/// The folders beside `bin` in an installation outside the system's folders.
const INSTALLED_BESIDE: &[&str] = &["lib", "lib64", "libexec", "share"];

/// Runs tesseract, once for each picture.
#[derive(Debug, Clone)]
pub struct Ocr {
    /// The program that confines itself and starts tesseract.
    child: PathBuf,
    tesseract: PathBuf,
    languages: String,
    hidden: Vec<PathBuf>,
    document_timeout: Duration,
}

/// Why a picture could not be read: the last line of tesseract's messages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tesseract could not read the picture: {0}")]
pub struct OcrError(String);

impl Ocr {
    /// Looks for tesseract in the folders of `PATH`. `None` if it is not installed.
    ///
    /// `program` is the one that confines itself and starts tesseract: it must call
    /// [`run_if_child`](crate::sandbox::run_if_child). Its arguments are not used. `languages` are tesseract's codes,
    /// such as
    /// `eng+deu`.
    pub fn find(program: &Program, languages: &str) -> Option<Self> {
        let path = std::env::var_os("PATH")?;
        let tesseract =
            std::env::split_paths(&path).map(|folder| folder.join("tesseract")).find(|p| is_executable(p))?;
        Some(Self::at(program, &tesseract, languages))
    }

    /// Uses the tesseract at this path. The rest is as for [`Ocr::find`].
    pub fn at(program: &Program, tesseract: &Path, languages: &str) -> Self {
        let tesseract = std::path::absolute(tesseract).unwrap_or_else(|_| tesseract.to_owned());
        Self {
            child: program.path.clone(),
            tesseract,
            languages: languages.to_owned(),
            hidden: Vec::new(),
            document_timeout: PICTURE_TIMEOUT,
        }
    }

    /// Keeps tesseract from reading a folder or a file, even inside a folder that it may read.
    #[must_use]
    pub fn hiding(mut self, path: &Path) -> Self {
        self.hidden.push(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        self
    }

    /// Limits the time for all pictures of one document together.
    #[must_use]
    pub fn within(mut self, document_timeout: Duration) -> Self {
        self.document_timeout = document_timeout;
        self
    }

    /// Returns the words in each picture of a document, in order, up to the picture at which the time is over. A
    /// picture that cannot be read is `None`; the error is that of the last such picture.
    ///
    /// Before each picture it awaits `turn` and holds the result until the picture is read, so that a caller can
    /// limit how many run at once. Waiting for a turn does not count as time of the document. `|| async {}` does not
    /// wait.
    pub async fn recognise_all<T, F: Future<Output = T>>(
        &self,
        pictures: impl ExactSizeIterator<Item = &[u8]>,
        turn: impl Fn() -> F,
    ) -> (Vec<Option<String>>, Option<OcrError>) {
        let count = pictures.len();
        let mut words = Vec::with_capacity(count);
        let mut failed = None;
        let mut left = self.document_timeout;
        for picture in pictures {
            let _turn = turn().await;
            let began = Stopwatch::start();
            words.push(match self.recognise_within(picture, left).await {
                Ok(words) => Some(words),
                Err(error) => {
                    failed = Some(error);
                    None
                }
            });
            left = left.saturating_sub(began.elapsed());
            if left.is_zero() {
                tracing::warn!(
                    lookedAt = words.len(),
                    inAll = count,
                    "OCR of a document was stopped: its time is over"
                );
                break;
            }
        }
        (words, failed)
    }

    /// Returns the words in a picture. Dropping the future kills tesseract.
    pub async fn recognise(&self, picture: &[u8]) -> Result<String, OcrError> {
        self.recognise_within(picture, self.document_timeout).await
    }

    async fn recognise_within(&self, picture: &[u8], left: Duration) -> Result<String, OcrError> {
        let timeout = PICTURE_TIMEOUT.min(left);
        tokio::select! {
            recognised = self.run(picture) => recognised,
            () = Clock::System.sleep(timeout) => {
                Err(OcrError(format!("it took longer than {} s", timeout.as_secs_f64())))
            }
        }
    }

    async fn run(&self, picture: &[u8]) -> Result<String, OcrError> {
        let failed = |error: std::io::Error| OcrError(error.to_string());
        let process = Process::start(self.command()).await.map_err(failed)?;
        let Process { mut stdin, stdout, mut stderr, mut handle } = process;
        let (mut words, mut messages) = (Vec::new(), Vec::new());
        // All pipes at once: otherwise tesseract could block on one while this waits for another.
        let (_, read, ()) = tokio::join!(
            async {
                // It may stop reading early. It starts its work when its input is closed.
                let written = stdin.write_all(picture).await;
                drop(stdin);
                written
            },
            async {
                let read = stdout.take(MAX_TEXT).read_to_end(&mut words).await;
                if words.len() as u64 == MAX_TEXT {
                    handle.kill();
                }
                read
            },
            drain(&mut stderr, &mut messages),
        );
        read.map_err(failed)?;
        if handle.exited().await != Exit::Code(0) && words.is_empty() {
            let messages = String::from_utf8_lossy(&messages);
            let last =
                messages.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it gave no reason");
            return Err(OcrError(last.trim().to_owned()));
        }
        Ok(String::from_utf8_lossy(&words).replace('\u{c}', "\n"))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.child);
        command.arg(OCR_COMMAND).arg("--parent").arg(std::process::id().to_string());
        for folder in self.readable() {
            command.arg("--readable").arg(folder);
        }
        for hidden in &self.hidden {
            command.arg("--hidden").arg(hidden);
        }
        command.arg("--").arg(&self.tesseract).args(["stdin", "stdout", "-l", &self.languages]);
        // Finds out which side of the page is up, if the data for that is installed.
        command.args(["--psm", "1"]);
        command
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| is_passed(name)))
            // Several threads make it slower on a busy machine.
            .env("OMP_THREAD_LIMIT", "1");
        command
    }

    /// The folders of tesseract, if it is not installed in the system's folders.
    fn readable(&self) -> Vec<PathBuf> {
        let mut readable: Vec<PathBuf> =
            std::env::var_os("TESSDATA_PREFIX").into_iter().map(Into::into).collect();
        // The path may be a link.
        let programs = [Some(self.tesseract.clone()), self.tesseract.canonicalize().ok()];
        for folder in programs.iter().flatten().filter_map(|program| program.parent()) {
            readable.push(folder.to_owned());
            if let Some(above) = folder.parent().filter(|_| folder.ends_with("bin")) {
                readable.extend(INSTALLED_BESIDE.iter().map(|name| above.join(name)));
            }
        }
        readable.sort();
        readable.dedup();
        readable
    }
}

fn is_passed(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| PASSED_VARIABLES.contains(&name) || name.starts_with("LC_"))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
