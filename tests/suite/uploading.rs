//! `landfall upload` in real life: folders, patterns, what is there already, interruptions, and storages of others.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::process::Process;
use crate::support::relay::Relay;
use crate::support::scripted_service;
use crate::support::session::{CommandOutput, Session};
use crate::support::until;

/// The outcome and the error code of each path.
#[track_caller]
fn outcomes(sent: &CommandOutput) -> BTreeMap<String, (String, Option<String>)> {
    let report = sent.json();
    let files = report["files"].as_array().unwrap().iter().map(|file| {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        (text(&file["path"]).unwrap(), (text(&file["outcome"]).unwrap(), text(&file["error"]["code"])))
    });
    files.collect()
}

fn fate(outcome: &str) -> (String, Option<String>) {
    (outcome.to_owned(), None)
}

fn failed(code: &str) -> (String, Option<String>) {
    ("failed".to_owned(), Some(code.to_owned()))
}

/// The names of the files on the server.
fn names(session: &Session) -> Vec<String> {
    let mut names: Vec<String> =
        session.files().iter().map(|file| file["fileName"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_is_sent_with_its_structure() {
    let session = intake();
    for name in ["a.txt", "2024/march/a.txt", "2024/b.txt", "ümläut/c d.txt"] {
        session.write(&format!("docs/{name}"), name);
    }
    session.write("docs/2024/large.bin", large(1));
    session.write("single.txt", "single");
    let paths = || {
        let paths = session.files().into_iter().map(|file| {
            (
                file["attributes"]["path"].as_str().unwrap_or("").to_owned(),
                file["fileName"].as_str().unwrap().to_owned(),
            )
        });
        let mut paths: Vec<(String, String)> = paths.collect();
        paths.sort();
        paths
    };
    let sent = session.run(&["upload", "docs", "single.txt"]);
    assert_eq!(sent.code, 0, "{} {}", sent.out, sent.err);
    let expected = [
        ("", "single.txt"),
        ("2024/b.txt", "b.txt"),
        ("2024/large.bin", "large.bin"),
        ("2024/march/a.txt", "a.txt"),
        ("a.txt", "a.txt"),
        ("ümläut/c d.txt", "c d.txt"),
    ];
    assert_eq!(paths(), expected.map(|(path, name)| (path.to_owned(), name.to_owned())));
    // Below the folder before the first special character.
    session.write("docs/2025/d.txt", "d");
    assert_eq!(session.run(&["upload", "docs/202*/d.txt"]).code, 0);
    assert!(paths().contains(&("2025/d.txt".to_owned(), "d.txt".to_owned())), "{:?}", paths());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_excluded_or_hidden_is_not_sent() {
    let session = Session::new();
    for name in ["a.txt", "b.tmp", "keep.tmp", ".hidden.txt", "build/x.txt", "sub/build/y.txt", "sub/top.txt"]
    {
        session.write(&format!("docs/{name}"), name);
    }
    session.write("list", "# what is made by programs\n*.tmp\n!keep.tmp\nbuild/\n");
    let sent =
        session.run(&["upload", "docs", "--exclude-from", "list", "--exclude", "/sub/top.txt", "--json"]);
    assert_eq!(sent.code, 0, "{} {}", sent.out, sent.err);
    assert_eq!(names(&session), ["a.txt", "keep.tmp"]);
    let sent =
        session.run(&["upload", "docs", "--hidden", "--exclude", "*.tmp", "--exclude", "sub", "--json"]);
    assert_eq!(sent.code, 0, "{} {}", sent.out, sent.err);
    assert_eq!(names(&session), [".hidden.txt", "a.txt", "keep.tmp", "x.txt"]);

    let wrong = session.run(&["upload", "docs", "--exclude-from", "missing"]);
    assert!(wrong.code == 2 && wrong.err.contains("missing"), "{}", wrong.err);
    let nothing = session.run(&["upload", "docs", "--exclude", "*"]);
    assert!(
        nothing.code == 0 && nothing.out.contains("0 of 0 files sent"),
        "{} {}",
        nothing.out,
        nothing.err
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patterns_that_the_shell_did_not_expand_are_expanded() {
    let session = Session::new();
    for name in ["a.md", "b.txt", "sub/c.md", "sub/deep/d.md", "sub/.e.md", "[x].md"] {
        session.write(&format!("docs/{name}"), name);
    }
    let sent = session.run(&["upload", "docs/**/*.md", "docs/[ab].*", "docs/[x].md", "--json"]);
    assert_eq!(sent.code, 0, "{} {}", sent.out, sent.err);
    assert_eq!(names(&session), ["[x].md", "a.md", "b.txt", "c.md", "d.md"]);
    let none = session.run(&["upload", "docs/*.pdf", "--json"]);
    assert_eq!((none.code, outcomes(&none)["docs/*.pdf"].clone()), (1, failed("NO_MATCH")));
    let bad = session.run(&["upload", "docs/[a", "--json"]);
    assert_eq!((bad.code, outcomes(&bad)["docs/[a"].clone()), (1, failed("INVALID_PATTERN")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_in_a_folder_lead_neither_out_of_it_nor_in_circles() {
    let session = Session::new();
    session.write("outside/secret.txt", "secret");
    session.write("docs/a.txt", "a");
    session.write("docs/sub/b.txt", "b");
    session.write("docs/empty.txt", "");
    symlink("..", session.path("docs/sub/loop")).unwrap();
    symlink("sub", session.path("docs/again")).unwrap();
    symlink(session.path("outside"), session.path("docs/out")).unwrap();
    symlink("../outside/secret.txt", session.path("docs/out.txt")).unwrap();
    symlink("missing", session.path("docs/dangling")).unwrap();
    let sent = session.run(&["upload", "docs", "docs/*", "--json"]);
    assert_eq!(sent.code, 0, "{} {}", sent.out, sent.err);
    assert_eq!(names(&session), ["a.txt", "b.txt"]);
    let shown = session.run(&["upload", "docs"]).out;
    assert!(shown.contains("left out: 5 symbolic links, 1 empty file"), "{shown}");

    // A link that is named is what the user wants.
    symlink("docs", session.path("link")).unwrap();
    symlink("outside/secret.txt", session.path("named.txt")).unwrap();
    session.write("docs/new.txt", "new");
    assert_eq!(session.run(&["upload", "link", "named.txt"]).code, 0);
    assert_eq!(names(&session), ["a.txt", "b.txt", "named.txt", "new.txt"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn standard_input_is_sent_under_its_name() {
    let session = Session::with(&[("MAX_FILE_BYTES", "20000")]);
    let piped = |text: &[u8], arguments: &[&str]| {
        let mut command = session.command(&session.server.base, arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program runs");
        // A program that refuses to read closes the pipe.
        drop(std::io::Write::write_all(&mut child.stdin.take().expect("piped"), text));
        CommandOutput::of(child.wait_with_output().expect("it ends"))
    };
    let sent = piped(b"The harbour closes at low tide.", &["upload", "-", "--name", "tide.txt", "--wait"]);
    assert_eq!(sent.code, 0, "{} {}", sent.out, sent.err);
    assert_eq!(names(&session), ["tide.txt"]);
    assert!(session.run(&["search", "harbour"]).out.contains("tide.txt"));

    let again = piped(b"The harbour closes at low tide.", &["upload", "-", "--name", "other.txt", "--json"]);
    assert_eq!(outcomes(&again)["-"], fate("skipped"));
    let large = piped(&vec![b'x'; 20_001], &["upload", "-", "--name", "large.txt", "--json"]);
    assert_eq!((large.code, outcomes(&large)["-"].clone()), (1, failed("TOO_LARGE")));
    let empty = piped(b"", &["upload", "-", "--name", "empty.txt", "--json"]);
    assert_eq!((empty.code, outcomes(&empty)["-"].clone()), (1, failed("EMPTY")));
    for wrong in
        [&["upload", "-"][..], &["upload", "-", "-", "--name", "a"], &["upload", "list", "--name", "a"]]
    {
        let refused = piped(b"text", wrong);
        assert!(refused.code == 2 && refused.err.contains("standard input"), "{wrong:?}: {}", refused.err);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_server_has_is_skipped_by_its_bytes() {
    let session = Session::new();
    session.write("docs/a.txt", "The harbour closes at low tide.");
    session.write("docs/b.txt", "The ferry leaves at noon.");
    session.write("docs/fake.pdf", "this is no PDF");
    // Files of one command are all sent, even if they have the same bytes.
    session.write("docs/copy.txt", "The ferry leaves at noon.");
    assert_eq!(session.run(&["upload", "docs", "--wait"]).code, 1);
    assert_eq!(session.files().len(), 4);
    let batches = || session.run(&["files", "--json"]).json()["files"].as_array().unwrap().len();

    session.write("renamed.txt", "The harbour closes at low tide.");
    session.write("docs/new.txt", "Something new.");
    let again = session.run(&["upload", "docs", "renamed.txt", "--json"]);
    assert_eq!(again.code, 0, "{} {}", again.out, again.err);
    let seen = outcomes(&again);
    for path in ["docs/a.txt", "docs/b.txt", "docs/copy.txt", "renamed.txt"] {
        assert_eq!(seen[path], fate("skipped"), "{path}");
    }
    // One that failed is sent again.
    assert_eq!((&seen["docs/fake.pdf"], &seen["docs/new.txt"]), (&fate("uploaded"), &fate("uploaded")));
    assert_eq!(batches(), 6);

    let a = session.files().into_iter().find(|file| file["fileName"] == "a.txt").unwrap();
    let skipped = again.json()["files"].as_array().unwrap().clone();
    let renamed = skipped.iter().find(|file| file["path"] == "renamed.txt").unwrap();
    assert_eq!(renamed["fileId"], a["fileId"], "it says which file has the same bytes");
    let path = format!("/api/v2/uploads/files/{}", a["fileId"].as_str().unwrap());
    assert_eq!(session.server.client().delete(&path).await.status, 204);
    let deleted = session.run(&["upload", "docs/a.txt", "docs/b.txt", "--json"]);
    assert_eq!(outcomes(&deleted)["docs/a.txt"], fate("uploaded"), "one that was deleted is not there");
    assert_eq!(outcomes(&deleted)["docs/b.txt"], fate("skipped"));
    let forced = session.run(&["upload", "docs/a.txt", "--force", "--json"]);
    assert_eq!(outcomes(&forced)["docs/a.txt"], fate("uploaded"));
    let stranger = session.run(&["token", "--user", "bob"]).out;
    let other = session.run(&["upload", "docs/b.txt", "--json", "--token", stranger.trim()]);
    assert_eq!(outcomes(&other)["docs/b.txt"], fate("uploaded"), "files of others do not count");

    let nothing_new = session.run(&["upload", "docs/a.txt", "docs/b.txt"]);
    assert!(
        nothing_new.out.contains("0 of 2 files sent, 2 skipped because the server has the same bytes"),
        "{}",
        nothing_new.out
    );
    assert!(!nothing_new.out.contains("batch"), "no batch is opened for nothing: {}", nothing_new.out);
}

/// More than are looked up at once, so that the first are there when the last are looked up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_the_command_sent_itself_do_not_count_as_there() {
    let session = intake();
    for number in 0..150 {
        session.write(&format!("docs/{number}.txt"), "The ferry leaves at noon.");
    }
    let sent = session.run(&["upload", "docs", "--json"]);
    assert_eq!((sent.code, &sent.json()["summary"]["uploaded"]), (0, &json!(150)), "{}", sent.err);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_arrived_and_were_never_confirmed_are_confirmed() {
    let session = Session::new();
    let client = session.server.client();
    let file = client.send_bytes(None, "lost.txt", b"The ferry leaves at noon.").await;
    assert_eq!(client.status(&file).await, "uploaded");
    session.write("lost.txt", "The ferry leaves at noon.");
    let sent = session.run(&["upload", "lost.txt", "--wait", "--json"]);
    assert_eq!((sent.code, outcomes(&sent)["lost.txt"].clone()), (0, fate("skipped")), "{}", sent.err);
    assert_eq!(sent.json()["files"][0]["status"], "ready", "--wait waits for it as well");
    assert_eq!(client.status(&file).await, "ready");
    // A registration without bytes is nothing to rely on.
    let about = json!({ "fileName": "never.txt", "fileSize": 3, "md5": "900150983cd24fb0d6963f7d28e17f72" });
    client.post("/api/v2/uploads/files/init", about).await.ok();
    session.write("abc", "abc");
    assert_eq!(outcomes(&session.run(&["upload", "abc", "--json"]))["abc"], fate("uploaded"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_files_are_sent_at_once_as_the_user_wants() {
    let session = Session::new();
    for number in 0..24 {
        session.write(&format!("docs/{number}.txt"), format!("Ferry {number} leaves at noon."));
    }
    let relay = Relay::to(&session.server.base).await;
    relay.gather(3);
    let sent = session.start_against(&relay.url, &["upload", "docs", "--concurrency", "3"]).output().await;
    assert_eq!(sent.code, 0, "{} {}", sent.out, sent.err);
    assert_eq!((relay.peak(), session.files().len()), (3, 24));
    assert_eq!(session.run(&["upload", "docs", "--concurrency", "0"]).code, 2);
}

/// Root may read everything, unless it gives that up.
fn without_privileges(session: &Session, arguments: &[&str]) -> CommandOutput {
    if !rustix::process::geteuid().is_root() {
        return session.run(arguments);
    }
    let plain = session.command(&session.server.base, arguments);
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-dac_override,-dac_read_search"]).arg(plain.get_program());
    command.args(plain.get_args()).env_clear().current_dir(session.db.folder.path());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    CommandOutput::of(command.output().expect("util-linux has `setpriv`"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_read_is_reported_and_the_rest_is_sent() {
    let session = Session::new();
    for name in ["good.txt", "locked.txt", "locked/inside.txt", "sub/good.txt"] {
        session.write(&format!("docs/{name}"), name);
    }
    let lock = |name: &str, mode| {
        std::fs::set_permissions(session.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    lock("docs/locked.txt", 0o000);
    lock("docs/locked", 0o000);
    let sent = without_privileges(&session, &["upload", "docs", "--json"]);
    let told = without_privileges(&session, &["upload", "docs"]);
    lock("docs/locked", 0o700);
    assert_eq!(sent.code, 1, "{}", sent.err);
    let seen = outcomes(&sent);
    assert_eq!(seen["docs/good.txt"], fate("uploaded"));
    assert_eq!(seen["docs/sub/good.txt"], fate("uploaded"));
    assert_eq!(seen["docs/locked.txt"], failed("UNREADABLE"));
    assert_eq!(seen["docs/locked"], failed("UNREADABLE"));
    assert_eq!(sent.json()["summary"]["failed"], 2);
    for part in [
        "0 of 4 files sent, 2 failed, 2 skipped",
        "UNREADABLE: docs/locked and 1 other",
        "you may read it",
        "Run the same command again",
    ] {
        assert!(told.out.contains(part), "{part}: {}", told.out);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_changes_between_its_registration_and_its_bytes_is_reported() {
    let session = Session::new();
    session.write("good.txt", "The harbour closes at low tide.");
    session.write("shrinks.txt", "The ferry leaves at noon.");
    session.write("changes.txt", "The ferry leaves at noon!");
    session.write("grows.txt", "The ferry leaves at noon?");
    session.write("vanishes.txt", "The ferry leaves at noon");
    let relay = Relay::to(&session.server.base).await;
    let folder = session.db.folder.path().to_owned();
    relay.rewrite(move |passed, _| {
        if passed.path.ends_with("/upload-urls") {
            std::fs::write(folder.join("shrinks.txt"), "The ferry").unwrap();
            std::fs::write(folder.join("changes.txt"), "The ferry leaves at dawn!").unwrap();
            std::fs::write(folder.join("grows.txt"), "The ferry leaves at noon? It does.").unwrap();
            std::fs::remove_file(folder.join("vanishes.txt")).unwrap();
        }
    });
    let names = ["good.txt", "shrinks.txt", "changes.txt", "grows.txt", "vanishes.txt"];
    let arguments = [&["upload"], &names[..], &["--json"]].concat();
    let sent = session.start_against(&relay.url, &arguments).output().await;
    assert_eq!(sent.code, 1, "{}", sent.err);
    let seen = outcomes(&sent);
    assert_eq!(seen["good.txt"], fate("uploaded"));
    assert_eq!(seen["shrinks.txt"], failed("CHANGED"));
    assert_eq!(seen["changes.txt"], failed("CHANGED"));
    assert_eq!(seen["vanishes.txt"], failed("UNREADABLE"));
    // As it was when it was registered.
    assert_eq!(seen["grows.txt"], fate("uploaded"));
    let batch = sent.json()["batches"][0]["batchId"].as_str().unwrap().to_owned();
    until("the batch does not wait for them", async || {
        session.run(&["status", &batch, "--json"]).json()["status"] == "completed"
    })
    .await;
    assert_eq!(session.files().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_goes_away_and_comes_back_is_waited_for() {
    let mut session = Session::new();
    for number in 0..40 {
        session.write(&format!("docs/{number}.txt"), format!("Ferry {number} leaves at noon. ").repeat(40));
    }
    let relay = Relay::to(&session.server.base).await;
    relay.hold_after(10_000);
    let sending = session.start_against(&relay.url, &["upload", "docs", "--concurrency", "2", "--json"]);
    until("some files are there", async || relay.bytes() > 8_000).await;
    session.server.kill();
    relay.release();
    until("the program has noticed", async || relay.failed() > 3).await;
    session.server = Process::start(&session.db, &[]);
    relay.redirect(&session.server.base);
    let sent = sending.output().await;
    assert_eq!(sent.code, 0, "{} {}", sent.out, sent.err);
    assert_eq!(sent.json()["summary"]["uploaded"], 40);
    assert_eq!(session.files().len(), 40, "each once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_that_is_overloaded_is_asked_again() {
    let session = Session::new();
    session.write("a.txt", "The ferry leaves at noon.");
    let relay = Relay::to(&session.server.base).await;
    let refused = Arc::new(AtomicUsize::new(0));
    let count = refused.clone();
    relay.answer(move |passed| {
        let is_first = passed.method == Method::PUT && count.fetch_add(1, Ordering::SeqCst) < 2;
        is_first.then(|| (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")]).into_response())
    });
    let sent = session.start_against(&relay.url, &["upload", "a.txt"]).output().await;
    assert_eq!(sent.code, 0, "{} {}", sent.out, sent.err);
    assert_eq!(refused.load(Ordering::SeqCst), 3);

    // One that asks for more time than the program waits at all is not asked again.
    session.write("b.txt", "The ferry leaves at dawn.");
    let count = refused.clone();
    relay.answer(move |passed| {
        let response = (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "86400")]).into_response();
        (passed.method == Method::PUT).then(|| count.fetch_add(1, Ordering::SeqCst)).map(|_| response)
    });
    let sent = session.start_against(&relay.url, &["upload", "b.txt", "--json"]).output().await;
    assert_eq!((sent.code, outcomes(&sent)["b.txt"].clone()), (1, failed("CONNECTION_BROKEN")));
    assert_eq!(refused.load(Ordering::SeqCst), 4);
}

/// An object store that a ticket points to. It passes the bytes on to the server.
struct Store {
    url: String,
    state: Arc<StoreState>,
}

#[derive(Default)]
struct StoreState {
    /// The server's own URL for each key.
    targets: Mutex<BTreeMap<String, String>>,
    requests: Mutex<Vec<(String, HeaderMap)>>,
}

impl Store {
    async fn start() -> Self {
        let state = Arc::new(StoreState::default());
        let url = scripted_service::serve(Router::new().fallback(receive).with_state(state.clone())).await;
        Self { url, state }
    }

    fn requests(&self) -> Vec<(String, HeaderMap)> {
        self.state.requests.lock().unwrap().clone()
    }
}

/// The first request to a key is throttled, the second has an old signature, the third arrives and its response is lost, and
/// the fourth finds the object.
async fn receive(State(state): State<Arc<StoreState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.to_string();
    let key = parts.uri.path().to_owned();
    let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_else(|_| Bytes::new());
    let target = state.targets.lock().unwrap().get(&key).cloned();
    let attempt = {
        let mut requests = state.requests.lock().unwrap();
        requests.push((path.clone(), parts.headers));
        requests.iter().filter(|(seen, _)| seen.split('?').next() == Some(&key)).count()
    };
    match attempt {
        1 => {
            let error = "<Error><Code>SlowDown</Code><Message>Please reduce your rate</Message></Error>";
            (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "0")], error).into_response()
        }
        2 => {
            let error = "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>";
            (StatusCode::FORBIDDEN, error).into_response()
        }
        3 => {
            let http = landfall_server::outbound::client();
            let put = http.put(target.expect("a key of ours")).body(bytes).send().await.expect("an answer");
            assert!(put.status().is_success(), "{}", put.status());
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
        _ => (StatusCode::PRECONDITION_FAILED, "<Error><Code>PreconditionFailed</Code></Error>")
            .into_response(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storage_of_its_own_gets_the_headers_of_the_ticket_and_no_token() {
    let session = Session::new();
    session.write("a.txt", "The ferry leaves at noon.");
    let (store, relay) = (Store::start().await, Relay::to(&session.server.base).await);
    let (state, url) = (store.state.clone(), store.url.clone());
    let renewals = Arc::new(AtomicUsize::new(0));
    let renewed = renewals.clone();
    // What a server answers whose bytes go straight to a store.
    relay.rewrite(move |passed, response| {
        let tickets = match response {
            Value::Array(tickets) => tickets.iter_mut().collect(),
            ticket => vec![ticket],
        };
        for ticket in tickets.into_iter().filter(|ticket| ticket["uploadUrl"].is_string()) {
            let key = format!("/bucket/{}", ticket["fileId"].as_str().unwrap());
            let target = ticket["uploadUrl"].as_str().unwrap().to_owned();
            state.targets.lock().unwrap().insert(key.clone(), target);
            let number = if passed.path.ends_with("/upload-url") {
                1 + renewed.fetch_add(1, Ordering::SeqCst)
            } else {
                0
            };
            ticket["uploadUrl"] = json!(format!("{url}{key}?X-Amz-Signature=s{number}"));
            ticket["headers"] = json!({ "Content-Length": "25", "If-None-Match": "*", "Content-MD5": "x" });
        }
    });
    let sent = session.start_against(&relay.url, &["upload", "a.txt", "--wait", "--json"]).output().await;
    assert_eq!(sent.code, 0, "{} {}", sent.out, sent.err);
    assert_eq!(session.files()[0]["status"], "ready");
    assert_eq!(renewals.load(Ordering::SeqCst), 1);
    let requests = store.requests();
    let signatures: Vec<&str> = requests
        .iter()
        .map(|(path, _)| path.split_once('=').map_or("", |(_, signature)| signature))
        .collect();
    assert_eq!(signatures, ["s0", "s0", "s1", "s1"], "a URL that is refused is renewed");
    for (path, headers) in &requests {
        let mut names: Vec<&str> = headers.keys().map(header::HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            ["accept", "content-length", "content-md5", "host", "if-none-match", "user-agent"],
            "{path}"
        );
    }
}

/// Larger than what is sent in one request.
const LARGE: usize = 24 << 20;

/// Bytes that are different everywhere, so that a part in the wrong place is noticed.
fn large(seed: u64) -> Vec<u8> {
    (0..LARGE as u64 / 8)
        .flat_map(|at| (at ^ (seed << 40)).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes())
        .collect()
}

/// A server that takes files in and leaves them in the queue.
fn intake() -> Session {
    Session::with(&[("ROLE", "api")])
}

/// How many bytes are in the storage.
fn stored(session: &Session) -> u64 {
    let mut folders = vec![session.path("blobs")];
    let mut bytes = 0;
    while let Some(folder) = folders.pop() {
        // A file may be renamed meanwhile.
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => folders.push(entry.path()),
                Ok(found) => bytes += found.len(),
                Err(_) => {}
            }
        }
    }
    bytes
}

/// Whether the server has exactly this file, once.
async fn assert_arrived(session: &Session, name: &str, bytes: &[u8]) {
    let files = session.files();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!((&files[0]["fileName"], &files[0]["status"]), (&json!(name), &json!("queued")));
    let client = session.server.client();
    let path = format!("/api/v2/uploads/files/{}/download", files[0]["fileId"].as_str().unwrap());
    let stored = client.request(Method::GET, &path).send().await.unwrap().bytes().await.unwrap();
    assert!(stored == bytes, "{} of {} bytes", stored.len(), bytes.len());
    assert_eq!(session.unfinished(), 0, "nothing is left in the state folder");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_file_goes_on_where_it_was_after_kill_9() {
    let session = intake();
    let bytes = large(1);
    session.write("big.bin", &bytes);
    let relay = Relay::to(&session.server.base).await;
    for mb in [6, 12] {
        relay.hold_after(relay.bytes() + (8 << 20));
        let sending = session.start_against(&relay.url, &["upload", "big.bin"]);
        until("the server has it", async || stored(&session) > mb << 20).await;
        sending.kill().await;
        relay.cut_all();
        assert_eq!(session.unfinished(), 1);
    }
    relay.release();
    let sent = session.start_against(&relay.url, &["upload", "big.bin", "--json"]).output().await;
    assert_eq!(sent.code, 0, "{} {}", sent.out, sent.err);
    assert_arrived(&session, "big.bin", &bytes).await;
    let (all, twice) = (relay.bytes(), relay.bytes() - LARGE as u64);
    // What was on its way at the moments of the kills.
    assert!(twice < 8 << 20, "{all} bytes were sent for {LARGE}");
    let resumed = sent.json()["summary"]["resumedBytes"].as_u64().unwrap();
    assert!(resumed > 12 << 20 && resumed < LARGE as u64, "{resumed}");
    let begun = relay
        .requests()
        .iter()
        .filter(|request| request.method == Method::POST && request.path.ends_with("/tus"))
        .count();
    assert_eq!(begun, 1);
    let again = session.run(&["upload", "big.bin", "--json"]);
    assert_eq!(outcomes(&again)["big.bin"], fate("skipped"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_file_that_changed_since_it_was_interrupted_begins_again() {
    let session = intake();
    session.write("big.bin", large(1));
    let relay = Relay::to(&session.server.base).await;
    relay.hold_after(8 << 20);
    let sending = session.start_against(&relay.url, &["upload", "big.bin"]);
    until("a part is there", async || relay.bytes() > 7 << 20).await;
    sending.kill().await;
    relay.release();
    // The beginning, the size and the inode are the same.
    let mut bytes = large(1);
    bytes[LARGE - 1] ^= 1;
    session.write("big.bin", &bytes);
    let sent = session.start_against(&relay.url, &["upload", "big.bin", "--json"]).output().await;
    assert_eq!((sent.code, sent.json()["summary"]["resumedBytes"].as_u64()), (0, Some(0)), "{}", sent.err);
    // The first upload was given up, so that it holds no quota.
    assert_arrived(&session, "big.bin", &bytes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_file_goes_on_after_a_lost_connection_and_a_restart_of_the_server() {
    let mut session = intake();
    let bytes = large(1);
    session.write("big.bin", &bytes);
    let relay = Relay::to(&session.server.base).await;
    relay.cut_after(6 << 20);
    relay.hold_after(12 << 20);
    let sending = session.start_against(&relay.url, &["upload", "big.bin", "--json"]);
    until("it went on after the cut", async || relay.bytes() > 11 << 20).await;
    session.server.kill();
    relay.release();
    until("the program has noticed", async || relay.failed() > 2).await;
    session.server = Process::start(&session.db, &[("ROLE", "api")]);
    relay.redirect(&session.server.base);
    let sent = sending.output().await;
    assert_eq!(sent.code, 0, "{} {}", sent.out, sent.err);
    assert_arrived(&session, "big.bin", &bytes).await;
    // What the killed server had not noted is sent again; what was there before the cut is not.
    assert!(relay.bytes() < LARGE as u64 + (12 << 20), "{}", relay.bytes());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_upload_that_the_server_gave_up_begins_again() {
    let session = intake();
    let bytes = large(1);
    session.write("big.bin", &bytes);
    let relay = Relay::to(&session.server.base).await;
    relay.hold_after(8 << 20);
    let sending = session.start_against(&relay.url, &["upload", "big.bin", "--json"]);
    until("a part is there", async || relay.bytes() > 7 << 20).await;
    let file = session.files()[0]["fileId"].as_str().unwrap().to_owned();
    let gone = session.server.client().delete(&format!("/api/v2/uploads/files/{file}")).await;
    assert_eq!(gone.status, 204);
    relay.release();
    let sent = sending.output().await;
    assert_eq!(sent.code, 0, "{} {}", sent.out, sent.err);
    assert_arrived(&session, "big.bin", &bytes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_commands_do_not_send_the_same_large_file_at_once() {
    let session = intake();
    let bytes = large(1);
    session.write("big.bin", &bytes);
    let relay = Relay::to(&session.server.base).await;
    relay.hold_after(8 << 20);
    let first = session.start_against(&relay.url, &["upload", "big.bin"]);
    until("a part is there", async || relay.bytes() > 7 << 20).await;
    let second = session.start_against(&relay.url, &["upload", "big.bin", "--json"]).output().await;
    assert_eq!((second.code, outcomes(&second)["big.bin"].clone()), (1, failed("UPLOAD_IN_PROGRESS")));
    relay.release();
    let first = first.output().await;
    assert_eq!(first.code, 0, "{} {}", first.out, first.err);
    assert_arrived(&session, "big.bin", &bytes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_file_that_changes_while_it_is_sent_is_reported() {
    let session = intake();
    for name in ["shrinks.bin", "changes.bin"] {
        session.write(name, large(if name == "shrinks.bin" { 1 } else { 2 }));
        let relay = Relay::to(&session.server.base).await;
        let path = session.path(name);
        relay.answer(move |passed| {
            if passed.method == Method::POST && passed.path.ends_with("/tus") {
                let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
                if path.ends_with("shrinks.bin") {
                    file.set_len(LARGE as u64 / 2).unwrap();
                } else {
                    std::os::unix::fs::FileExt::write_all_at(&file, b"changed", LARGE as u64 / 2).unwrap();
                }
            }
            None
        });
        let sent = session.start_against(&relay.url, &["upload", name, "--json"]).output().await;
        assert_eq!((sent.code, outcomes(&sent)[name].clone()), (1, failed("CHANGED")), "{}", sent.err);
        assert!(session.files().is_empty(), "{name}: {:?}", session.files());
        assert_eq!(session.unfinished(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_file_is_sent_without_a_state_folder_too() {
    let session = intake();
    let bytes = large(1);
    session.write("big.bin", &bytes);
    session.write(".state", "this is no folder");
    let sent = session.run(&["upload", "big.bin"]);
    assert_eq!(sent.code, 0, "{} {}", sent.out, sent.err);
    assert_arrived(&session, "big.bin", &bytes).await;
}

/// A proxy that reads a part of the bytes, refuses the rest and closes the connection. Returns its address.
async fn impatient_proxy(upstream: &str, times: usize) -> String {
    let upstream = upstream.strip_prefix("http://").expect("a plain server").to_owned();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let left = Arc::new(AtomicUsize::new(times));
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (upstream, left) = (upstream.clone(), left.clone());
            tokio::spawn(async move {
                let mut server = tokio::net::TcpStream::connect(upstream).await?;
                let (mut passed, mut buffer) = (0, vec![0; 64 * 1024]);
                let mut back = vec![0; 64 * 1024];
                loop {
                    tokio::select! {
                        read = client.read(&mut buffer) => {
                            let read = read?;
                            if read == 0 { break }
                            passed += read;
                            server.write_all(&buffer[..read]).await?;
                            let is_time = passed > 1 << 20
                                && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
                            if is_time {
                                client.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await?;
                                break;
                            }
                        }
                        read = server.read(&mut back) => {
                            let read = read?;
                            if read == 0 { break }
                            client.write_all(&back[..read]).await?;
                        }
                    }
                }
                Ok::<(), std::io::Error>(())
            });
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_closed_again_and_again_do_not_end_the_program() {
    let session = intake();
    let bytes = large(1);
    session.write("big.bin", &bytes);
    let proxy = impatient_proxy(&session.server.base, 12).await;
    let sent = session.start_against(&proxy, &["upload", "big.bin"]).output().await;
    assert_eq!(sent.code, 0, "{} {}", sent.out, sent.err);
    assert_arrived(&session, "big.bin", &bytes).await;
}
