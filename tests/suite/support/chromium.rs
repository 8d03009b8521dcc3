//! A real browser.

use std::process::{Command, Stdio};

/// `make test` sets where it is.
const CHROMIUM: &str = "LANDFALL_TEST_CHROMIUM";

/// A page as the browser showed it.
pub struct Shown {
    pub dom: String,
    /// What the page and the browser wrote to the console.
    pub console: String,
}

impl Shown {
    /// Opens a page and lets its scripts run. A plain `cargo test` has no browser; `make test` installs one.
    pub fn open(url: &str) -> Option<Self> {
        let Ok(program) = std::env::var(CHROMIUM) else {
            eprintln!("not run: {CHROMIUM} is not set; `make test` installs chromium");
            return None;
        };
        let profile = tempfile::tempdir().expect("a temporary folder");
        let output = Command::new(program)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--disable-background-networking", "--no-first-run", "--enable-logging=stderr"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            // The time of the page, which goes on as soon as nothing is loading.
            .args(["--virtual-time-budget=5000", "--dump-dom", url])
            .stdin(Stdio::null())
            .output()
            .expect("chromium starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let errors = text(&output.stderr);
        let console: Vec<&str> = errors.lines().filter(|line| line.contains("CONSOLE")).collect();
        Some(Self { dom: text(&output.stdout), console: console.join("\n") })
    }

    /// Whether the page has an element with this id that is shown.
    pub fn shows(&self, id: &str) -> bool {
        let tags = self.dom.split('<').filter(|tag| tag.contains(&format!("id=\"{id}\"")));
        tags.map(|tag| tag.split('>').next().unwrap_or_default()).any(|tag| !tag.contains("hidden"))
    }
}
