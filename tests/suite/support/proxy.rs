//! A real proxy in front of a server, with the settings in `deploy/`.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::certificate::Certificate;

/// `make test` sets where they are.
const NGINX: &str = "LANDFALL_TEST_NGINX";
const CADDY: &str = "LANDFALL_TEST_CADDY";
const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");

#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Nginx,
    Caddy,
}

pub struct Proxy {
    folder: TempDir,
    program: String,
    kind: Kind,
    pub port: u16,
    /// Where it redirects from.
    pub plain_port: u16,
    pub certificate: Certificate,
    process: Option<Child>,
}

impl Proxy {
    /// A plain `cargo test` has no proxy; `make test` installs them.
    pub fn install(kind: Kind) -> Option<Self> {
        let name = match kind {
            Kind::Nginx => NGINX,
            Kind::Caddy => CADDY,
        };
        let Ok(program) = std::env::var(name) else {
            eprintln!("not run: {name} is not set; `make test` installs the proxy");
            return None;
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let certificate = Certificate::make(folder.path(), "proxy");
        let (port, plain_port) = (free_port(), free_port());
        Some(Self { folder, program, kind, port, plain_port, certificate, process: None })
    }

    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// Starts it in front of the server, and waits until it listens.
    pub async fn start(&mut self, upstream: &str) {
        let upstream = upstream.strip_prefix("http://").expect("a plain server");
        let command = match self.kind {
            Kind::Nginx => self.nginx(upstream),
            Kind::Caddy => self.caddy(upstream),
        };
        self.process = Some(self.run(command));
        while tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
            let ended =
                self.process.as_mut().and_then(|process| process.try_wait().expect("a child of ours"));
            assert_eq!(ended, None, "the proxy ended");
            tokio::task::yield_now().await;
        }
    }

    fn run(&self, mut command: Command) -> Child {
        command
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("XDG_DATA_HOME", self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("the proxy starts")
    }

    fn nginx(&self, upstream: &str) -> Command {
        let folder = self.folder.path();
        let site = replaced(
            &read("nginx/landfall.conf"),
            &[
                ("server 127.0.0.1:3002;", &format!("server {upstream};")),
                ("listen 443 ssl http2;", &format!("listen 127.0.0.1:{} ssl http2;", self.port)),
                ("listen [::]:443 ssl http2;", ""),
                ("listen 80;", &format!("listen 127.0.0.1:{};", self.plain_port)),
                ("listen [::]:80;", ""),
                ("server_name files.example.com;", "server_name localhost;"),
                ("/etc/ssl/files.example.com.pem", self.certificate.cert.to_str().expect("text")),
                ("/etc/ssl/private/files.example.com.key", self.certificate.key.to_str().expect("text")),
            ],
        );
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|name| {
            let path = folder.join(name);
            format!("{name}_temp_path {};\n", path.display())
        });
        let settings = format!(
            "daemon off;\nmaster_process off;\npid {pid};\nerror_log stderr error;\nevents {{}}\nhttp {{\naccess_log off;\n{paths}{site}\n}}\n",
            pid = folder.join("nginx.pid").display(),
            paths = paths.concat(),
        );
        write(&folder.join("nginx.conf"), &settings);
        let mut command = Command::new(&self.program);
        command.arg("-e").arg("stderr").arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf"));
        command
    }

    fn caddy(&self, upstream: &str) -> Command {
        let (cert, key) = (self.certificate.cert.display(), self.certificate.key.display());
        let site = replaced(
            &read("caddy/Caddyfile"),
            &[
                (
                    "files.example.com {",
                    &format!("localhost:{} {{\n\ttls {cert} {key}\n\tbind 127.0.0.1", self.port),
                ),
                ("127.0.0.1:3002", upstream),
            ],
        );
        let global = format!("{{\n\tadmin off\n\thttp_port {}\n}}\n", self.plain_port);
        write(&self.folder.path().join("Caddyfile"), &(global + &site));
        let mut command = Command::new(&self.program);
        command.args(["run", "--config", "Caddyfile", "--adapter", "caddyfile"]).stderr(Stdio::null());
        command
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // One that ended already cannot be killed.
            drop(process.kill());
            drop(process.wait());
        }
    }
}

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(DEPLOY).join(name)).expect("it is in deploy/")
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("it can be written");
}

/// The settings for this test: every part that is replaced must be there.
fn replaced(text: &str, parts: &[(&str, &str)]) -> String {
    parts.iter().fold(text.to_owned(), |text, (part, by)| {
        assert!(text.contains(part), "{part} is not in the settings");
        text.replace(part, by)
    })
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("bound").port()
}
