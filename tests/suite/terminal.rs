//! The program in a terminal that `script` of util-linux creates. `landfall top` draws on the alternate screen, and restores the
//! terminal however it ends. `landfall upload` shows its progress in one line.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::support::process::Process;
use crate::support::relay::Relay;
use crate::support::{TestDb, until};

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// A terminal with a shell that runs the program, and then records how it ended.
struct Terminal {
    folder: PathBuf,
    child: Child,
    keyboard: ChildStdin,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    fn open(db: &TestDb, server: &str, arguments: &str) -> Self {
        let folder = db.folder.path().to_owned();
        let program = env!("CARGO_BIN_EXE_landfall");
        // Ctrl-C goes to all programs in the terminal; this shell must continue.
        let shell = format!(
            "trap : INT; stty rows 24 cols 80; stty -g >before; sh -c 'echo $$ >pid; exec {program} {arguments}'; \
             echo $? >code; stty -g >after"
        );
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--command", &shell, "/dev/null"])
            .current_dir(&folder)
            .env_clear()
            .envs(db.variables())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TERM", "xterm-256color")
            .env("LANDFALL_URL", server)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("util-linux has `script`");
        let keyboard = child.stdin.take().expect("piped");
        let shown = Arc::new(Mutex::new(Vec::new()));
        let mut out = child.stdout.take().expect("piped");
        let kept = shown.clone();
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = out.read(&mut bytes) {
                kept.lock().unwrap().extend_from_slice(&bytes[..read]);
            }
        });
        Self { folder, child, keyboard, shown, reader: Some(reader) }
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// Everything that was shown until the shell ended.
    ///
    /// The last output comes through the terminal after the command has ended.
    fn all_shown(&mut self) -> String {
        self.child.wait().expect("the shell ends");
        if let Some(reader) = self.reader.take() {
            reader.join().expect("it reads until the end");
        }
        self.shown()
    }

    async fn shows(&self, text: &str) {
        until(text, async || self.shown().contains(text)).await;
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal is there");
        self.keyboard.flush().expect("the terminal is there");
    }

    fn note(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap_or_default().trim().to_owned()
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.note("pid")]).status().unwrap().success());
    }

    /// Waits for the end. The keyboard mode, the cursor and the earlier screen must be restored.
    async fn assert_restored(self) {
        let said = self.assert_restored_after("0").await;
        assert!(said.trim().is_empty(), "nothing is printed after it: {said:?}");
    }

    /// The same for another exit code; returns what was printed since.
    async fn assert_restored_after(mut self, code: &str) -> String {
        until("the shell continues", async || !self.note("after").is_empty()).await;
        let shown = self.all_shown();
        assert_eq!(self.note("code"), code, "{shown}");
        assert_eq!(self.note("after"), self.note("before"));
        assert_eq!((shown.matches(ENTER).count(), shown.matches(LEAVE).count()), (1, 1), "{shown:?}");
        shown.split_once(LEAVE).expect("the alternate screen was left").1.to_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A test that failed leaves nothing running.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn server() -> (TestDb, Process) {
    let db = TestDb::sqlite();
    let server = Process::start(&db, &[]);
    (db, server)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn q_quits_and_restores_the_terminal() {
    let (db, server) = server();
    let mut terminal = Terminal::open(&db, &server.base, "top --all --interval 0.1");
    terminal.shows("WORKER").await;
    terminal.press("xyz");
    terminal.press("q");
    terminal.assert_restored().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_quits_and_restores_the_terminal() {
    let (db, server) = server();
    let mut terminal = Terminal::open(&db, &server.base, "top");
    terminal.shows("QUEUE").await;
    terminal.press("\u{3}");
    terminal.assert_restored().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_quits_and_restores_the_terminal() {
    let (db, server) = server();
    for signal in ["-TERM", "-QUIT"] {
        let terminal = Terminal::open(&db, &server.base, "top");
        terminal.shows("QUEUE").await;
        terminal.signal(signal);
        terminal.assert_restored().await;
        for note in ["after", "pid"] {
            std::fs::remove_file(db.folder.path().join(note)).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(debug_assertions), ignore = "a release has no key to panic at")]
async fn a_panic_restores_the_terminal_and_is_printed_on_the_normal_screen() {
    let (db, server) = server();
    let mut terminal = Terminal::open(&db, &server.base, "top");
    terminal.shows("QUEUE").await;
    terminal.press("!");
    let said = terminal.assert_restored_after("101").await;
    assert!(said.contains("this key is for tests"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn top_continues_while_the_server_is_down_and_sees_it_come_back() {
    let (db, mut server) = server();
    let mut terminal = Terminal::open(&db, &server.base, "top --interval 0.1");
    terminal.shows("QUEUE").await;
    server.kill();
    terminal.shows("cannot reach").await;
    let port = server.base.rsplit(':').next().unwrap().to_owned();
    drop(server);
    let _server = Process::start(&db, &[("PORT", &port)]);
    let seen = terminal.shown().len();
    until("a frame without the banner", async || {
        let shown = terminal.shown();
        let frames = shown[seen.min(shown.len())..].split("\u{1b}[?2026h");
        frames
            .filter(|frame| frame.contains("QUEUE") && frame.ends_with("\u{1b}[?2026l"))
            .any(|frame| !frame.contains("! "))
    })
    .await;
    terminal.press("q");
    terminal.assert_restored().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_permission_is_reported_on_the_normal_screen() {
    let (db, server) = server();
    let mut terminal = Terminal::open(&db, &server.base, "top --token rubbish");
    until("the shell continues", async || !terminal.note("after").is_empty()).await;
    let shown = terminal.all_shown();
    assert_eq!(terminal.note("code"), "2");
    assert!(shown.contains("INVALID_TOKEN") && !shown.contains(ENTER), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_shows_its_speed_and_the_time_that_is_left_in_one_line() {
    let (db, server) = server();
    std::fs::write(db.folder.path().join("a.txt"), "The ferry leaves at noon. ".repeat(40_000)).unwrap();
    let relay = Relay::to(&server.base).await;
    relay.hold_after(100_000);
    let mut terminal = Terminal::open(&db, &relay.url, "upload a.txt");
    until("progress", async || {
        let shown = terminal.shown();
        let mut lines = shown.split(['\r', '\n']).filter(|line| line.contains("sending"));
        lines.any(|line| line.contains("1015.62 KiB") && line.contains("/s") && line.contains(" left"))
    })
    .await;
    relay.release();
    until("the shell continues", async || !terminal.note("after").is_empty()).await;
    let shown = terminal.all_shown();
    assert!(terminal.note("code") == "0" && shown.contains("1 of 1 file sent (1015.6 KB)"), "{shown}");
    let rest = shown.rsplit("sending").next().unwrap();
    assert!(!rest.contains("sending") && shown.matches('\n').count() < 5, "the line is gone: {shown:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_without_a_terminal_prints_plain_text() {
    let (db, server) = server();
    std::fs::write(db.folder.path().join("a.txt"), "The ferry leaves at noon.").unwrap();
    let output = Process::command(&db)
        .args(["upload", "a.txt", "missing.txt"])
        .env("LANDFALL_URL", &server.base)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(
        said.contains("1 of 2 files sent, 1 failed") && said.contains("missing.txt: UNREADABLE"),
        "{said}"
    );
    assert!(!said.contains(['\u{1b}', '\r']), "{said:?}");
}
