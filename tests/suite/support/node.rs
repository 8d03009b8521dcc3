//! Third-party clients, run by Node.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use serde_json::Value;

/// `make test` sets where it has installed them.
const CLIENTS: &str = "LANDFALL_TEST_NODE";

/// A program of `tests/clients` that prints JSON, a line at a time.
pub struct NodeClient {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl NodeClient {
    /// A plain `cargo test` has no clients; `make test` installs them.
    pub fn start(script: &str, arguments: &[&str], variables: &[(&str, String)]) -> Option<Self> {
        let Ok(clients) = std::env::var(CLIENTS) else {
            eprintln!("not run: {CLIENTS} is not set; `make test` installs the clients");
            return None;
        };
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let mut child = Command::new("node")
            .arg(root.join("tests/clients").join(script))
            .args(arguments)
            .env(CLIENTS, root.join(clients))
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node starts");
        let output = BufReader::new(child.stdout.take().expect("piped")).lines();
        let (line, lines) = mpsc::channel();
        // Read continuously: a program blocks when its output is not read.
        std::thread::spawn(move || output.map_while(Result::ok).try_for_each(|text| line.send(text)));
        Some(Self { child, lines })
    }

    /// The next line, or `None` when the program has ended. Blocks its thread, so do not call it on a runtime thread.
    pub fn line(&mut self) -> Option<Value> {
        let line = self.lines.recv().ok()?;
        Some(serde_json::from_str(&line).expect("a line of JSON"))
    }
}

impl Drop for NodeClient {
    fn drop(&mut self) {
        // A test that failed leaves nothing running; one that ended already cannot be killed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
