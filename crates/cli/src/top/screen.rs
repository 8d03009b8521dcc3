//! The terminal: the alternate screen, and the keys.
//!
//! The terminal is always restored: when the screen is dropped, and before a panic prints its message. `stty` sets the
//! terminal to deliver each key at once without echo; Ctrl-C, Ctrl-Z and the like still send signals. Without `stty`, only
//! `q` does not work.

use std::io::{self, IsTerminal, Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;

use console::Term;
use tokio::sync::mpsc;

use super::frame::Size;

const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Synchronized output: the terminal shows nothing between these, so that a frame appears as a whole.
const BEGIN: &str = "\x1b[?2026h\x1b[H";
const END: &str = "\x1b[J\x1b[?2026l";
/// Used without a terminal.
const DEFAULT_WIDTH: usize = 100;

/// What to restore while the alternate screen is open.
static SAVED: Mutex<Option<Saved>> = Mutex::new(None);

struct Saved {
    /// The settings of the terminal, as `stty -g` prints them.
    settings: Option<String>,
}

/// The alternate screen while it is open.
pub struct Screen {
    term: Term,
}

impl Screen {
    pub fn open() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let print = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                print(panic);
            }));
        });
        // Created first, so that its drop restores the terminal if the next line fails.
        let screen = Self { term: Term::stdout() };
        enter()?;
        Ok(screen)
    }

    pub fn size(&self) -> Size {
        let (height, width) = self.term.size();
        Size { width: usize::from(width), height: Some(usize::from(height)) }
    }

    /// Draws over the last frame, line by line, in one write.
    pub fn draw(&self, lines: &[String]) -> io::Result<()> {
        let mut frame = BEGIN.to_owned();
        for (row, line) in lines.iter().enumerate() {
            if row > 0 {
                frame.push_str("\r\n");
            }
            frame.push_str(line);
            frame.push_str("\x1b[K");
        }
        frame.push_str(END);
        self.term.write_str(&frame)
    }
}

/// Ctrl-Z: restores the terminal for the shell, stops, and opens the screen again when the process continues.
pub fn suspend(screen: Screen) -> io::Result<Screen> {
    drop(screen);
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?;
    Screen::open()
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn enter() -> io::Result<()> {
    let mut saved = SAVED.lock().unwrap_or_else(PoisonError::into_inner);
    let settings = stty(&["-g"]).map(|settings| settings.trim().to_owned());
    if settings.is_some() {
        stty(&["-icanon", "-echo", "min", "1", "time", "0"]);
    }
    *saved = Some(Saved { settings });
    write(ENTER)
}

/// Does nothing if the screen is not open.
fn restore() {
    let saved = SAVED.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(Saved { settings }) = saved else { return };
    // If the terminal is gone, the error cannot be shown anywhere.
    drop(write(LEAVE));
    if let Some(settings) = settings {
        stty(&[settings.as_str()]);
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The output of `stty`; `None` if it fails or standard input is no terminal.
fn stty(arguments: &[&str]) -> Option<String> {
    if !io::stdin().is_terminal() {
        return None;
    }
    let output =
        Command::new("stty").args(arguments).stdin(Stdio::inherit()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The width for lines that are printed, not drawn.
pub fn width() -> usize {
    let of_terminal = Term::stdout().size_checked().map(|(_, width)| usize::from(width));
    let from_environment =
        || std::env::var("COLUMNS").ok()?.parse().ok().filter(|width| (20..=1_000).contains(width));
    of_terminal.or_else(from_environment).unwrap_or(DEFAULT_WIDTH)
}

/// The keys that are pressed.
pub struct Keys(mpsc::Receiver<u8>);

impl Keys {
    pub fn listen() -> Self {
        let (sender, keys) = mpsc::channel(16);
        if io::stdin().is_terminal() {
            // A thread, because it blocks until the program ends.
            thread::spawn(move || {
                for key in io::stdin().lock().bytes() {
                    let Ok(key) = key else { return };
                    if sender.blocking_send(key).is_err() {
                        return;
                    }
                }
            });
        }
        Self(keys)
    }

    /// Resolves when a key is pressed that ends the program.
    pub async fn quit(&mut self) {
        while let Some(key) = self.0.recv().await {
            // Lets a test check that a panic restores the terminal.
            #[cfg(debug_assertions)]
            assert_ne!(key, b'!', "this key is for tests");
            // Ctrl-C arrives as a key if the signals of the terminal are turned off.
            if matches!(key, b'q' | b'Q' | 3) {
                return;
            }
        }
        // There is no keyboard.
        std::future::pending::<()>().await;
    }
}
