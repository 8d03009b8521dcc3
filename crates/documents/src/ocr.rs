//! Reads the words in pictures with the program `tesseract`, where it is installed.
//!
//! A picture comes from a stranger and the program is written in C: it runs where it can do no harm
//! (`sandbox/ocr_child.rs`), gets the picture on its standard input and nothing of our environment, has a limited time,
//! and only so much of what it says is listened to.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::sandbox::complaints::hear;
use crate::sandbox::ocr_child::COMMAND;
use crate::sandbox::process::{Ended, Process};
use landfall_core::clock::{Clock, Stopwatch};

/// The longest that one picture may take. A page takes some seconds.
const LONGEST: Duration = Duration::from_mins(2);
/// The most text of one picture.
const MOST_TEXT: u64 = 1 << 20;

/// What tesseract is told of our environment, beside what begins with `LC_`: where programs and languages are, and
/// which words it complains in.
const HANDED_ON: &[&str] = &["PATH", "TESSDATA_PREFIX", "LANG", "LANGUAGE"];
/// Beside its `bin`, the folders of an installation of its own.
const INSTALLED_BESIDE: &[&str] = &["lib", "lib64", "libexec", "share"];

#[derive(Debug, Clone)]
pub struct Ocr {
    /// Landfall itself.
    landfall: PathBuf,
    program: PathBuf,
    languages: String,
    hidden: Vec<PathBuf>,
    longest_in_all: Duration,
}

/// Why a picture could not be read, in the program's own words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tesseract could not read the picture: {0}")]
pub struct OcrError(String);

impl Ocr {
    /// Looks for the program on the path. `landfall` is this program, which starts it.
    pub fn find(landfall: &Path, languages: &str) -> Option<Self> {
        let path = std::env::var_os("PATH")?;
        let program =
            std::env::split_paths(&path).map(|folder| folder.join("tesseract")).find(|p| is_program(p))?;
        Some(Self::at(landfall, &program, languages))
    }

    /// The program that is at this place.
    pub fn at(landfall: &Path, program: &Path, languages: &str) -> Self {
        let program = std::path::absolute(program).unwrap_or_else(|_| program.to_owned());
        Self {
            landfall: landfall.to_owned(),
            program,
            languages: languages.to_owned(),
            hidden: Vec::new(),
            longest_in_all: LONGEST,
        }
    }

    /// Keeps a folder or a file from it, wherever that is.
    #[must_use]
    pub fn hiding(mut self, path: &Path) -> Self {
        self.hidden.push(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        self
    }

    /// How long the pictures of one document may take in all.
    #[must_use]
    pub fn within(mut self, longest_in_all: Duration) -> Self {
        self.longest_in_all = longest_in_all;
        self
    }

    /// The words in each picture of a document, up to the one at which its time is up. For each it waits for `turn` and
    /// keeps what that answers. A picture that cannot be read has no words; why, is said of the last such.
    pub async fn recognise_all<T, F: Future<Output = T>>(
        &self,
        pictures: impl ExactSizeIterator<Item = &[u8]>,
        turn: impl Fn() -> F,
    ) -> (Vec<String>, Option<OcrError>) {
        let in_all = pictures.len();
        let mut words = Vec::with_capacity(in_all);
        let mut failed = None;
        let mut left = self.longest_in_all;
        for picture in pictures {
            let _turn = turn().await;
            let began = Stopwatch::start();
            words.push(self.recognise_within(picture, left).await.unwrap_or_else(|error| {
                failed = Some(error);
                String::new()
            }));
            // To wait for one's turn does not count.
            left = left.saturating_sub(began.elapsed());
            if left.is_zero() {
                tracing::warn!(
                    lookedAt = words.len(),
                    inAll = in_all,
                    "OCR of a document was stopped: its time is up"
                );
                break;
            }
        }
        (words, failed)
    }

    /// The words in a picture. Dropping the answer's future ends the program.
    pub async fn recognise(&self, picture: &[u8]) -> Result<String, OcrError> {
        self.recognise_within(picture, self.longest_in_all).await
    }

    async fn recognise_within(&self, picture: &[u8], left: Duration) -> Result<String, OcrError> {
        let longest = LONGEST.min(left);
        tokio::select! {
            recognised = self.run(picture) => recognised,
            () = Clock::System.sleep(longest) => {
                Err(OcrError(format!("it took longer than {} s", longest.as_secs_f64())))
            }
        }
    }

    async fn run(&self, picture: &[u8]) -> Result<String, OcrError> {
        let failed = |error: std::io::Error| OcrError(error.to_string());
        let process = Process::start(self.command()).await.map_err(failed)?;
        let Process { mut requests, answers, mut complaints, mut life } = process;
        let (mut words, mut said) = (Vec::new(), Vec::new());
        // All at once, so that nobody waits for anybody: not the program to be heard, and not we for its end.
        let (_, read, ()) = tokio::join!(
            async {
                // It may stop listening when it has seen enough. Closing its input is what makes it begin.
                let written = requests.write_all(picture).await;
                drop(requests);
                written
            },
            async {
                let read = answers.take(MOST_TEXT).read_to_end(&mut words).await;
                if words.len() as u64 == MOST_TEXT {
                    life.kill();
                }
                read
            },
            hear(&mut complaints, &mut said),
        );
        read.map_err(failed)?;
        if life.ended().await != Ended::Code(0) && words.is_empty() {
            let said = String::from_utf8_lossy(&said);
            let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it gave no reason");
            return Err(OcrError(last.trim().to_owned()));
        }
        Ok(String::from_utf8_lossy(&words).replace('\u{c}', "\n"))
    }

    /// Landfall itself, which confines itself and starts the program.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.landfall);
        command.arg(COMMAND).arg("--parent").arg(std::process::id().to_string());
        for folder in self.readable() {
            command.arg("--readable").arg(folder);
        }
        for hidden in &self.hidden {
            command.arg("--hidden").arg(hidden);
        }
        command.arg("--").arg(&self.program).args(["stdin", "stdout", "-l", &self.languages]);
        command
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| is_handed_on(name)))
            // More threads than one make it slower on a machine that has other things to do.
            .env("OMP_THREAD_LIMIT", "1");
        command
    }

    /// What belongs to the program, where it is not installed with the system.
    fn readable(&self) -> Vec<PathBuf> {
        let mut readable: Vec<PathBuf> =
            std::env::var_os("TESSDATA_PREFIX").into_iter().map(Into::into).collect();
        // Its name may be a link to where it is.
        let programs = [Some(self.program.clone()), self.program.canonicalize().ok()];
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

fn is_handed_on(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| HANDED_ON.contains(&name) || name.starts_with("LC_"))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
