//! The terminal: a screen of our own over what was there, and the keys.
//!
//! Whatever ends the program, the terminal is as it was: the screen is given back when it is dropped and before a panic says
//! anything. The keyboard is told by `stty`, which every system has, to hand out each key at once and to show none; Ctrl-C,
//! Ctrl-Z and the like stay the signals that they are. Without `stty` only `q` does not work.

use std::io::{self, IsTerminal, Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;

use console::Term;
use tokio::sync::mpsc;

use super::frame::Size;

const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Between these a terminal that knows them shows nothing, so that a frame appears as a whole.
const BEGIN: &str = "\x1b[?2026h\x1b[H";
const END: &str = "\x1b[J\x1b[?2026l";
/// What is assumed where there is no terminal to ask.
const DEFAULT_WIDTH: usize = 100;

/// How the keyboard was when the screen was taken; nothing while it is not.
static TAKEN: Mutex<Option<Taken>> = Mutex::new(None);

struct Taken {
    keyboard: Option<String>,
}

/// The screen while it is ours.
pub struct Screen {
    term: Term,
}

impl Screen {
    pub fn open() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let say = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                say(panic);
            }));
        });
        // First, so that whatever goes wrong from here on gives it back.
        let screen = Self { term: Term::stdout() };
        take()?;
        Ok(screen)
    }

    pub fn size(&self) -> Size {
        let (height, width) = self.term.size();
        Size { width: usize::from(width), height: Some(usize::from(height)) }
    }

    /// Draws over what is there, line by line, in one write.
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

/// Ctrl-Z: the shell gets its terminal, and we get it back when we are to go on.
pub fn leave_for_a_while(screen: Screen) -> io::Result<Screen> {
    drop(screen);
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?;
    Screen::open()
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn take() -> io::Result<()> {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let keyboard = stty(&["-g"]).map(|settings| settings.trim().to_owned());
    if keyboard.is_some() {
        stty(&["-icanon", "-echo", "min", "1", "time", "0"]);
    }
    *taken = Some(Taken { keyboard });
    write(ENTER)
}

/// Does nothing where nothing is taken.
fn give_back() {
    let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(Taken { keyboard }) = taken else { return };
    // There is nobody left to tell if the terminal is gone.
    drop(write(LEAVE));
    if let Some(settings) = keyboard {
        stty(&[settings.as_str()]);
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// What `stty` says; nothing where it fails or there is no keyboard.
fn stty(arguments: &[&str]) -> Option<String> {
    if !io::stdin().is_terminal() {
        return None;
    }
    let said =
        Command::new("stty").args(arguments).stdin(Stdio::inherit()).stderr(Stdio::null()).output().ok()?;
    said.status.success().then(|| String::from_utf8_lossy(&said.stdout).into_owned())
}

/// How wide a line may be that is printed rather than drawn.
pub fn width() -> usize {
    let of_terminal = Term::stdout().size_checked().map(|(_, width)| usize::from(width));
    let said = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|width| (20..=1_000).contains(width));
    of_terminal.or_else(said).unwrap_or(DEFAULT_WIDTH)
}

/// The keys that are pressed.
pub struct Keys(mpsc::Receiver<u8>);

impl Keys {
    pub fn listen() -> Self {
        let (tell, told) = mpsc::channel(16);
        if io::stdin().is_terminal() {
            // It waits for a key until the program ends, which no task of the runtime may.
            thread::spawn(move || {
                for key in io::stdin().lock().bytes() {
                    let Ok(key) = key else { return };
                    if tell.blocking_send(key).is_err() {
                        return;
                    }
                }
            });
        }
        Self(told)
    }

    /// Resolves when a key is pressed that ends the program.
    pub async fn end(&mut self) {
        while let Some(key) = self.0.recv().await {
            // So that a test can see what a panic leaves behind.
            #[cfg(debug_assertions)]
            assert_ne!(key, b'!', "this key is for tests");
            // Ctrl-C comes as a key where somebody else turned signals off.
            if matches!(key, b'q' | b'Q' | 3) {
                return;
            }
        }
        // Nobody is at the keyboard.
        std::future::pending::<()>().await;
    }
}
