//! Documents that take over the process that reads them. Each makes the real program misbehave, and each test checks
//! the error code, that the next document is read, and that no process is left.
//!
//! The program can misbehave only in debug builds, so a release build has none of these tests.
#![cfg(debug_assertions)]

use std::ops::ControlFlow;
use std::time::Duration;

use landfall_documents::sandbox::{Document, Pool, Program, SandboxConfig};
use landfall_documents::{Error, ErrorKind, Extracted, Limits, Reading, Recognised};
use landfall_server::config::{Config, Variables};
use landfall_test_documents as made;
use rustix::process::{Pid, Signal};
use serde_json::json;
use uuid::Uuid;

use crate::support::process::Process;
use crate::support::{Setup, TestDb, landfall_itself, on_each_database, until};

/// A pool whose processes carry a mark.
struct Readers {
    pool: Pool,
    mark: String,
}

impl Readers {
    fn new(variables: &[(&str, &str)]) -> Self {
        Self::without(&[], variables)
    }

    fn without(protections: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::with_stall(None, protections, variables)
    }

    /// `stall` is how long a document may make no progress.
    fn with_stall(stall: Option<u64>, protections: &[&str], variables: &[(&str, &str)]) -> Self {
        let (mut program, mark) = misbehaving();
        for protection in protections {
            program.arguments.extend(["--without".to_owned(), (*protection).to_owned()]);
        }
        let mut all = Variables::default();
        for (name, value) in variables {
            all.set(name, *value);
        }
        let mut config = Config::from_variables(all).expect("the settings are good").sandbox;
        if let Some(stall) = stall {
            config.stall = Duration::from_millis(stall);
        }
        Self { pool: Pool::new(program, config), mark }
    }

    fn within(limits: Limits) -> Self {
        let (program, mark) = misbehaving();
        Self { pool: Pool::new(program, SandboxConfig { limits, ..SandboxConfig::default() }), mark }
    }

    async fn read(&self, text: &str) -> Result<Extracted, Error> {
        self.read_for("acme", text).await
    }

    async fn read_for(&self, owner: &str, text: &str) -> Result<Extracted, Error> {
        self.read_file(owner, "a.txt", text.as_bytes()).await
    }

    async fn read_file(&self, owner: &str, name: &str, bytes: &[u8]) -> Result<Extracted, Error> {
        let document =
            Document { label: "a test", owner, name, content_type: None, size: bytes.len() as u64 };
        self.pool.read(&document, bytes).await?.finish(Recognised::NotInstalled)
    }

    /// The result for a document that misbehaves like this. The next document must be read.
    async fn misbehave(&self, misbehaviour: &str) -> Result<Extracted, Error> {
        let outcome = self.read(&format!("misbehave: {misbehaviour}")).await;
        let next = self.read("The next document.").await.expect("the next document is read");
        assert_eq!(next.text, "The next document.");
        outcome
    }

    async fn fails_with(&self, misbehaviour: &str) -> (ErrorKind, String) {
        let failure = self.misbehave(misbehaviour).await.expect_err(misbehaviour);
        assert!(failure.message().len() > 20 && failure.message().is_ascii(), "{}", failure.message());
        (failure.kind(), failure.into_message())
    }

    /// The error that the process got when it tried something forbidden.
    async fn refused(&self, misbehaviour: &str) -> String {
        self.misbehave(misbehaviour).await.expect(misbehaviour).text
    }

    /// The one process that is working.
    async fn at_work(&self, pool: &tokio::task::JoinHandle<Result<Reading, Error>>) -> Pid {
        let mut found = None;
        until("a process hangs", async || {
            assert!(!pool.is_finished());
            let hanging = processes(&self.mark).into_iter().find(|pid| has_read_its_document(*pid));
            found = hanging;
            found.is_some()
        })
        .await;
        found.expect("found")
    }

    /// Drops the pool and waits until all its processes are gone.
    async fn leave_nothing(self) {
        drop(self.pool);
        until("no process is left", async || processes(&self.mark).is_empty()).await;
    }
}

fn misbehaving() -> (Program, String) {
    let mark = format!("mark-{}", Uuid::new_v4());
    let mut program = landfall_itself();
    program.arguments = vec!["--misbehaving".to_owned(), mark.clone()];
    (program, mark)
}

/// Every process on this machine that carries the mark, whatever its parent is.
fn processes(mark: &str) -> Vec<Pid> {
    let all = std::fs::read_dir("/proc").expect("Linux lists processes");
    all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let command_line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&command_line).contains(mark)
        })
        .filter_map(Pid::from_raw)
        .collect()
}

/// Whether the kernel still lists the process. A process that is dying has no command line any more before its parent
/// can see that it has exited.
fn exists(pid: Pid) -> bool {
    std::fs::exists(format!("/proc/{}", pid.as_raw_nonzero())).expect("Linux lists processes")
}

/// A parked process waits for a futex; one without a document waits for a pipe.
fn has_read_its_document(pid: Pid) -> bool {
    let futex = libc::SYS_futex.to_string();
    std::fs::read_to_string(format!("/proc/{pid}/syscall"))
        .is_ok_and(|call| call.split(' ').next() == Some(&futex))
}

fn text_of(outcome: Result<Extracted, Error>) -> String {
    outcome.expect("it is read").text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_is_read_in_another_process_with_the_same_result() {
    let readers = Readers::new(&[]);
    let markdown = "# Äpfel\n\nRote.\n\n## Birnen\n\nGelbe.\n".repeat(30_000);
    let document = Document {
        label: "a test",
        owner: "acme",
        name: "obst.md",
        content_type: None,
        size: markdown.len() as u64,
    };
    let there = readers.pool.read(&document, markdown.as_bytes()).await.unwrap();
    let here = landfall_documents::read(
        landfall_documents::Document { bytes: markdown.as_bytes(), name: "obst.md", content_type: None },
        &Limits::default(),
        &|| ControlFlow::Continue(()),
    );
    assert_eq!(there, here.unwrap());
    assert_eq!(there.extracted.places.len(), 60_000);

    let cut = readers.read_file("acme", "cut.rtf", br"{\rtf1 Half a {\b sentence").await.unwrap();
    assert_eq!(cut.warnings.len(), 1, "what is missing is told here too: {cut:?}");

    let refused = readers.read("   ").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NoText);
    readers.leave_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_is_blamed_on_the_document_and_affects_no_other() {
    let readers = Readers::new(&[]);
    for misbehaviour in ["panic", "abort", "overflow", "exit"] {
        let (code, message) = readers.fails_with(misbehaviour).await;
        assert_eq!(code, ErrorKind::Damaged, "{misbehaviour}: {message}");
        assert!(message.contains("cannot be read"), "{misbehaviour}: {message}");
    }
    readers.leave_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_much_memory_is_distinguished_from_a_crash() {
    let readers = Readers::new(&[("EXTRACT_MEMORY_BYTES", "256MB")]);
    let (code, message) = readers.fails_with("fill-memory").await;
    assert_eq!(code, ErrorKind::OutOfMemory);
    assert!(message.contains("256 MB"), "{message}");
    readers.leave_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_computes_forever_is_killed_by_the_kernel() {
    let readers = Readers::new(&[("EXTRACT_CPU_SECONDS", "1")]);
    let failure = readers.misbehave("compute").await.expect_err("it computes for ever");
    assert_eq!(failure.kind(), ErrorKind::ComputingLimit);
    assert!(failure.message().contains("1 s of computing"), "{}", failure.message());
    readers.leave_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cpu_time_of_earlier_documents_does_not_count_for_later_ones() {
    let readers = Readers::new(&[("EXTRACT_CPU_SECONDS", "3")]);
    // Together these take longer than one document may, in one process.
    let mut seen = std::collections::HashSet::new();
    for _ in 0..4 {
        assert_eq!(text_of(readers.read("misbehave: compute-a-while").await), "it worked");
        seen.extend(processes(&readers.mark).into_iter().filter(|pid| has_computed(*pid)));
    }
    assert_eq!(seen.len(), 1, "all four were read by the same process");
    readers.leave_nothing().await;
}

/// Whether a process has used a second or more, by itself and in the kernel.
fn has_computed(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() >= 100
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_hangs_is_killed_for_lack_of_progress() {
    let readers = Readers::with_stall(Some(500), &[], &[]);
    let (code, message) = readers.fails_with("hang").await;
    assert_eq!(code, ErrorKind::TimedOut);
    assert!(message.contains("no progress for 0.5 s"), "{message}");
    readers.leave_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_computes_without_progress_is_told_from_one_that_hangs() {
    let readers = Readers::with_stall(Some(2_000), &[], &[]);
    let (code, message) = readers.fails_with("compute").await;
    assert_eq!(code, ErrorKind::ComputingLimit);
    assert!(message.contains("computed for 2 s without any progress"), "{message}");
    readers.leave_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_does_not_extend_the_total_time() {
    let readers = Readers::with_stall(Some(600), &[], &[("EXTRACT_TIMEOUT_MS", "1500")]);
    let (code, message) = readers.fails_with("hang-with-progress").await;
    assert_eq!(code, ErrorKind::TimedOut);
    assert!(message.contains("limit of 1.5 s"), "{message}");
    readers.leave_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_violates_the_protocol_is_not_trusted() {
    let readers = Readers::new(&[]);
    for lie in [
        "flood",
        "flood-progress",
        "flood-text",
        "truncate-text",
        "close-stdout",
        "not-utf8",
        "nul",
        "place-beyond",
        "place-far-beyond",
        "place-in-character",
        "places-backwards",
        "foreign-refusal",
        "unknown-kind",
        "strange-warning",
        "empty-warning",
        "warning-of-two-lines",
        "long-warning",
        "many-warnings",
        "missing-pages",
    ] {
        let (code, message) = readers.fails_with(lie).await;
        assert_eq!(code, ErrorKind::Damaged, "{lie}: {message}");
    }
    readers.leave_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_text_than_the_limit_is_too_large() {
    let readers = Readers::new(&[("EXTRACT_MAX_TEXT_BYTES", "1MB")]);
    let fits = "word ".repeat(200_000);
    assert_eq!(text_of(readers.read(&fits).await).len(), fits.len());
    let failure = readers.read(&"word ".repeat(210_000)).await.unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::TooLarge);
    assert!(failure.message().contains("1 MB"), "{}", failure.message());
    readers.leave_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limits_of_the_caller_hold_in_the_process_that_reads() {
    // With the default limits both documents are read, so each error comes from the limit that was changed.
    let nested = b"<?xml version='1.0'?><a><b><c><d>Deep water</d></c></b></a>";
    let docx = made::docx(&made::paragraph("The harbour closes at low tide."));
    let limits = Limits::default();
    for (limits, name, bytes, kind, words) in [
        (Limits { depth: 3, ..limits }, "a.xml", &nested[..], ErrorKind::Invalid, "more than 3 levels"),
        (
            Limits { unpacked_bytes: 200, ..limits },
            "a.docx",
            &docx,
            ErrorKind::Invalid,
            "unpacks to far more",
        ),
        (Limits { archive_entries: 2, ..limits }, "a.docx", &docx, ErrorKind::Invalid, "more than 2 parts"),
    ] {
        let readers = Readers::within(limits);
        let failure = readers.read_file("acme", name, bytes).await.unwrap_err();
        assert_eq!(failure.kind(), kind, "{failure}");
        assert!(failure.message().contains(words), "{failure}");
        readers.leave_nothing().await;
    }
    let readers = Readers::within(limits);
    assert_eq!(text_of(readers.read_file("acme", "a.xml", nested).await), "Deep water");
    assert_eq!(text_of(readers.read_file("acme", "a.docx", &docx).await), "The harbour closes at low tide.");
    readers.leave_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_stderr_does_not_block_the_process() {
    let readers = Readers::new(&[]);
    assert!(text_of(readers.misbehave("flood-stderr").await).starts_with("misbehave"));
    readers.leave_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forbidden_system_calls_kill_the_process_at_once() {
    let readers = Readers::new(&[]);
    let signal = format!("signal {}", std::process::id());
    for intrusion in ["fork", "execute", "connect 127.0.0.1:9", &signal] {
        let (code, message) = readers.fails_with(intrusion).await;
        assert_eq!(code, ErrorKind::Damaged, "{intrusion}: {message}");
        assert!(message.contains("tried what no document needs"), "{intrusion}: {message}");
    }
    readers.leave_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_protection_alone_keeps_the_outside_unreachable() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "hush").unwrap();
    let open = format!("open {}", secret.display());
    let create = format!("create {}", folder.path().join("new").display());

    let connect = "connect 127.0.0.1:9".to_owned();
    let signal = format!("signal {}", std::process::id());
    let (seccomp, landlock, descriptors) = (libc::EPERM, libc::EACCES, libc::EMFILE);
    for (without, attempts, error) in [
        (&[][..], &[&open, &create][..], seccomp),
        (&["landlock", "descriptors"], &[&open, &create], seccomp),
        (&["seccomp", "descriptors"], &[&open, &create, &connect], landlock),
        (&["seccomp", "descriptors"], &[&signal], libc::EPERM),
        (&["seccomp", "landlock"], &[&open, &create, &connect], descriptors),
    ] {
        let readers = Readers::without(without, &[]);
        for attempt in attempts {
            let refused = readers.refused(attempt).await;
            assert_eq!(refused, format!("refused: {error}"), "{attempt} without {without:?}");
        }
        readers.leave_nothing().await;
    }
    assert!(!folder.path().join("new").exists());
    // Without any protection it works, so it is the protections that prevent it.
    let readers = Readers::without(&["seccomp", "landlock", "descriptors"], &[]);
    assert_eq!(readers.refused(&open).await, "it worked");
    assert_eq!(readers.refused(&signal).await, "it worked");
    readers.leave_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_of_a_reading_process_die_with_it_even_if_they_could_start() {
    let readers = Readers::with_stall(Some(1_000), &["seccomp"], &[]);
    match readers.misbehave("fork").await {
        // An ordinary user is not allowed another process.
        Ok(refused) => assert!(refused.text.starts_with("refused"), "{}", refused.text),
        Err(failure) => assert_eq!(failure.kind(), ErrorKind::TimedOut, "{}", failure.message()),
    }
    until("only idle processes are left", async || {
        processes(&readers.mark).into_iter().all(|pid| !has_read_its_document(pid))
    })
    .await;
    readers.leave_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_is_distinguished_from_a_kill_from_outside() {
    for (signal, code) in [
        (Signal::KILL, ErrorKind::Killed),
        (Signal::TERM, ErrorKind::Killed),
        (Signal::ILL, ErrorKind::Damaged),
        (Signal::FPE, ErrorKind::Damaged),
    ] {
        let readers = Readers::new(&[]);
        let pool = readers.pool.clone();
        let reading = tokio::spawn(async move {
            let text = "misbehave: hang";
            let document = Document {
                label: "a test",
                owner: "a",
                name: "a.txt",
                content_type: None,
                size: text.len() as u64,
            };
            pool.read(&document, text.as_bytes()).await
        });
        let victim = readers.at_work(&reading).await;
        rustix::process::kill_process(victim, signal).unwrap();
        let failure = reading.await.unwrap().unwrap_err();
        assert_eq!(failure.kind(), code, "{signal:?}: {}", failure.message());
        assert_eq!(text_of(readers.read("And now?").await), "And now?");
        readers.leave_nothing().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_while_idle_gets_no_document() {
    let readers = Readers::new(&[]);
    readers.read("One.").await.unwrap();
    until("one idle process beside the used one", async || processes(&readers.mark).len() == 2).await;
    let all = processes(&readers.mark);
    for pid in &all {
        rustix::process::kill_process(*pid, Signal::KILL).unwrap();
    }
    until("they are reaped", async || !all.iter().any(|pid| exists(*pid))).await;
    assert_eq!(text_of(readers.read("Two.").await), "Two.");
    readers.leave_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_stops_waiting_has_the_process_killed() {
    let readers = Readers::new(&[]);
    let pool = readers.pool.clone();
    let reading = tokio::spawn(async move {
        let text = "misbehave: hang";
        let document = Document {
            label: "a test",
            owner: "a",
            name: "a.txt",
            content_type: None,
            size: text.len() as u64,
        };
        pool.read(&document, text.as_bytes()).await
    });
    let process = readers.at_work(&reading).await;
    reading.abort();
    until("it is killed", async || !processes(&readers.mark).contains(&process)).await;
    assert_eq!(text_of(readers.read("Next.").await), "Next.");
    readers.leave_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_is_reused_and_replaced_after_its_share_of_documents() {
    let readers = Readers::new(&[("EXTRACT_CHILD_DOCUMENTS", "3")]);
    let mut seen = Vec::new();
    for _ in 0..6 {
        readers.read("misbehave: print-pid").await.map(|read| seen.push(read.text)).unwrap();
    }
    assert!(seen[0] == seen[1] && seen[1] == seen[2], "{seen:?}");
    assert!(seen[2] != seen[3], "{seen:?}");
    assert!(seen[3] == seen[4] && seen[4] == seen[5], "{seen:?}");
    readers.leave_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_keeps_much_memory_is_replaced() {
    let readers = Readers::new(&[("EXTRACT_MEMORY_BYTES", "512MB")]);
    let first = text_of(readers.read("misbehave: print-pid").await);
    assert_eq!(text_of(readers.read("misbehave: print-pid").await), first);
    assert_eq!(text_of(readers.read("misbehave: keep-memory").await), "it worked");
    assert_ne!(text_of(readers.read("misbehave: print-pid").await), first);
    readers.leave_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_of_two_tenants_never_share_a_process() {
    let readers = Readers::new(&[]);
    let mut seen = std::collections::HashMap::new();
    for round in 0..30 {
        let tenant = format!("tenant {}", (round * 7) % 5);
        let process = text_of(readers.read_for(&tenant, "misbehave: print-pid").await);
        let owner = seen.entry(process).or_insert_with(|| tenant.clone());
        assert_eq!(*owner, tenant);
    }
    readers.leave_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_cannot_be_started_is_not_blamed_on_the_document() {
    let config = Config::from_variables(Variables::default()).unwrap().sandbox;
    for path in ["/does/not/exist", "/bin/true"] {
        let pool = Pool::new(Program { path: path.into(), arguments: vec![] }, config.clone());
        let document = Document { label: "a test", owner: "a", name: "a.txt", content_type: None, size: 1 };
        let failure = pool.read(&document, &b"x"[..]).await.unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::NotStarted, "{path}: {}", failure.message());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_end_too_early_are_blamed_on_the_storage() {
    let readers = Readers::new(&[]);
    let document = Document { label: "a test", owner: "acme", name: "a.txt", content_type: None, size: 100 };
    let failure = readers.pool.read(&document, &b"not a hundred"[..]).await.unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::Source);
    assert_eq!(text_of(readers.read("And now?").await), "And now?");
    readers.leave_nothing().await;
}

#[on_each_database]
async fn a_batch_with_hostile_documents_ends_with_the_others_ready(db: TestDb) {
    let (program, mark) = misbehaving();
    let server = Setup::default()
        .extractor(program)
        .with("EXTRACT_MEMORY_BYTES", "256MB")
        .with("EXTRACT_CPU_SECONDS", 1)
        .change(|config| config.sandbox.stall = Duration::from_millis(1_500))
        .with("RETRY_BASE_DELAY_MS", 50)
        .start(&db)
        .await;
    let alice = server.client("alice");
    let hostile = [
        ("panic", "PARSE_ERROR"),
        ("overflow", "PARSE_ERROR"),
        ("fill-memory", "MEMORY_ERROR"),
        ("compute", "STAGE_TIMEOUT"),
        ("hang", "STAGE_TIMEOUT"),
        ("flood", "PARSE_ERROR"),
        ("fork", "PARSE_ERROR"),
        ("not-utf8", "PARSE_ERROR"),
        ("foreign-refusal", "PARSE_ERROR"),
        ("connect 127.0.0.1:9", "PARSE_ERROR"),
    ];
    let batch = alice.open_batch(2 * hostile.len()).await;
    let mut files = Vec::new();
    for (number, (misbehaviour, _)) in hostile.iter().enumerate() {
        let good = format!("Log {number}: the lighthouse was lit at dusk.");
        let bad = format!("misbehave: {misbehaviour}");
        let good = alice.upload_in(&batch, "good.txt", good.as_bytes()).await;
        files.push((good, alice.upload_in(&batch, "bad.txt", bad.as_bytes()).await));
    }
    until("the batch is complete", async || alice.batch(&batch).await["status"] == "completed").await;
    for ((misbehaviour, code), (good, bad)) in hostile.iter().zip(&files) {
        assert_eq!(alice.status(good).await, "ready");
        let seen = alice.file(bad).await;
        assert_eq!(
            (&seen["status"], &seen["error"]["code"]),
            (&json!("failed"), &json!(code)),
            "{misbehaviour}"
        );
        assert!(alice.search("lighthouse").await.iter().all(|hit| hit["fileId"] != json!(bad)));
    }
    server.assert_audit_clean().await;
    server.stop().await;
    until("no process is left", async || processes(&mark).is_empty()).await;
}

#[on_each_database]
async fn the_process_of_a_cancelled_or_deleted_file_is_killed(db: TestDb) {
    let (program, mark) = misbehaving();
    let server = Setup::default().extractor(program).start(&db).await;
    let alice = server.client("alice");
    for delete in [false, true] {
        let file = alice.upload("bad.txt", b"misbehave: hang").await;
        let mut hanging = Vec::new();
        until("it hangs", async || {
            hanging = processes(&mark).into_iter().filter(|pid| has_read_its_document(*pid)).collect();
            !hanging.is_empty()
        })
        .await;
        if delete {
            alice.delete(&format!("/api/v2/uploads/files/{file}")).await.ok();
        } else {
            alice.post(&format!("/api/v2/uploads/files/{file}/cancel"), json!({})).await.ok();
        }
        until("it is killed", async || !processes(&mark).contains(&hanging[0])).await;
    }
    let next = alice.upload("good.txt", b"The lamp is lit.").await;
    until("the next is ready", async || alice.status(&next).await == "ready").await;
    server.assert_audit_clean().await;
}

/// The children of a process, by their arguments.
pub fn children_of(parent: u32) -> Vec<Pid> {
    processes(&format!("--parent\0{parent}\0"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_a_stopped_nor_a_killed_server_leaves_a_process_behind() {
    for signal in ["TERM", "KILL"] {
        let db = TestDb::sqlite();
        let mut server = Process::start(&db, &[]);
        let client = server.client();
        let file = client.upload("a.txt", b"Words to be read.").await;
        until("it is ready", async || client.status(&file).await == "ready").await;
        let parent = server.id();
        assert!(!children_of(parent).is_empty(), "it reads documents in child processes");
        if signal == "KILL" {
            server.kill();
        } else {
            server.signal(signal);
            assert!(server.wait());
        }
        until("its processes are gone", async || children_of(parent).is_empty()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stage_timeout_applies_while_a_document_is_read() {
    // The stage timeout goes by the manual clock and kills the process too.
    let db = TestDb::sqlite();
    let (program, mark) = misbehaving();
    let clock = crate::support::manual_clock();
    let server = Setup::default().extractor(program).clock(&clock).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("bad.txt", b"misbehave: hang").await;
    until("it hangs", async || processes(&mark).into_iter().any(has_read_its_document)).await;
    clock.advance(Duration::from_secs(301));
    until("it waits for another attempt", async || alice.status(&file).await == "queued").await;
    assert_eq!(alice.file(&file).await["error"]["code"], "STAGE_TIMEOUT");
    until("nothing hangs", async || !processes(&mark).into_iter().any(has_read_its_document)).await;
}
