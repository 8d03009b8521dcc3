//! A disk without room: nothing is lost, what is refused says why, and it heals by itself. The disk is a small file system in
//! memory, which only root can mount; elsewhere these tests say that they did not run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use crate::support::fixture::text;
use crate::support::{Script, Setup, TestDb, TestServer, on_each_database, until};

/// A file system with little room.
struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    fn mount(megabytes: u32) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let size = format!("size={megabytes}m,mode=700");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "landfall-test"])
            .arg(folder.path())
            .output()
            .is_ok_and(|output| output.status.success());
        if mounted {
            return Some(Self { folder });
        }
        eprintln!("NOT RUN: this test needs to mount a small file system, which only root may do");
        None
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file until so many bytes are free.
    fn fill(&self, leave: u64) -> PathBuf {
        let path = self.path().join("filler");
        let mut filler = std::fs::File::create(&path).expect("a file");
        let block = vec![0; 64 << 10];
        loop {
            let disk = rustix::fs::statvfs(self.path()).expect("a file system");
            let free = disk.f_bavail * disk.f_frsize;
            if free <= leave {
                return path;
            }
            let length = usize::try_from((free - leave).min(block.len() as u64)).expect("a length");
            if filler.write_all(&block[..length]).is_err() {
                return path;
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A server of the test may still have files open.
        drop(Command::new("umount").arg("--lazy").arg(self.folder.path()).output());
    }
}

/// A server with all its data on the disk, as far as its database is a file.
async fn server_on(disk: &SmallDisk, db: &TestDb, min_free: &str) -> TestServer {
    let mut setup = Setup::default()
        .work(Script::new())
        .with("STORAGE_URL", format!("file://{}/blobs", disk.path().display()))
        .with("MIN_FREE_DISK", min_free);
    if db.url.starts_with("sqlite:") {
        setup = setup.with("DATABASE_URL", format!("sqlite://{}/landfall.db", disk.path().display()));
    }
    setup.start(db).await
}

async fn status(server: &TestServer) -> u16 {
    server.client("anyone").get("/readyz").await.status
}

#[on_each_database]
async fn below_the_minimum_the_server_takes_in_nothing_until_there_is_room(db: TestDb) {
    let Some(disk) = SmallDisk::mount(64) else { return };
    let server = server_on(&disk, &db, "8MB").await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"The tide comes in twice a day.").await;
    server.idle().await;
    until("it is ready", async || status(&server).await == 200).await;

    let filler = disk.fill(4 << 20);
    let announced = json!({ "fileName": "b.txt", "fileSize": 5 });
    until("registrations are refused", async || {
        let answer = alice.post("/api/v2/uploads/files/init", announced.clone()).await;
        answer.status == 507 && answer.code() == "STORAGE_FULL"
    })
    .await;
    until("it is not ready", async || status(&server).await == 503).await;
    assert_eq!(alice.status(&file).await, "ready", "what is there is served");
    alice.delete(&format!("/api/v2/uploads/files/{file}")).await.ok();

    std::fs::remove_file(filler).expect("it is there");
    until("it is ready again", async || status(&server).await == 200).await;
    let file = alice.upload("b.txt", b"The tide goes out twice a day.").await;
    server.idle().await;
    assert_eq!(alice.status(&file).await, "ready");
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn a_disk_without_a_free_byte_loses_nothing_and_heals_by_itself(db: TestDb) {
    let Some(disk) = SmallDisk::mount(64) else { return };
    let server = server_on(&disk, &db, "1B").await;
    let alice = server.client("alice");
    let kept = alice.upload("a.txt", b"The tide comes in twice a day.").await;
    server.idle().await;
    let ticket = alice.register(None, "large.bin", 3 << 20).await;
    let url = text(&ticket["uploadUrl"]).to_owned();

    let filler = disk.fill(0);
    until("it is not ready", async || status(&server).await == 503).await;
    let refused = alice.put(&url, vec![b'a'; 3 << 20]).await;
    assert!(
        [("STORAGE_FULL", 507), ("DATABASE_UNAVAILABLE", 503)].contains(&(refused.code(), refused.status)),
        "{refused:?}"
    );
    assert_eq!(refused.body["error"]["retryable"], true);
    let download = alice.request(reqwest::Method::GET, &format!("/api/v2/uploads/files/{kept}/download"));
    let bytes = download.send().await.expect("an answer").bytes().await.expect("bytes");
    assert_eq!(&bytes[..], b"The tide comes in twice a day.");

    std::fs::remove_file(filler).expect("it is there");
    until("it is ready again", async || status(&server).await == 200).await;
    until("the same upload is accepted", async || alice.put(&url, vec![b'a'; 3 << 20]).await.status == 200)
        .await;
    alice.confirm(text(&ticket["fileId"])).await.ok();
    server.idle().await;
    assert_eq!(alice.status(&kept).await, "ready");
    server.assert_audit_clean().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_table_is_noticed_by_the_readiness() {
    use std::os::unix::fs::FileExt;
    let db = TestDb::sqlite();
    let server = TestServer::new(&db).await;
    let client = server.client("alice");
    until("it is ready", async || client.get("/readyz").await.status == 200).await;
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'artifacts'";
    let page = server.app.db.read().await.expect("a connection").number(sql, vec![]).await.expect("a page");
    server.stop().await;

    let file = db.url.strip_prefix("sqlite://").expect("a file");
    let file = std::fs::File::options().write(true).open(file).expect("the database");
    let offset = u64::try_from(page - 1).expect("a number") * 4_096;
    file.write_all_at(&[0xFF; 4_096], offset).expect("it is written");
    let server = TestServer::new(&db).await;
    let ready = server.client("alice").get("/readyz").await;
    let database = &ready.body["checks"]["database"];
    assert_eq!((ready.status, &database["status"]), (503, &json!("failed")));
    assert!(text(&database["message"]).contains("damaged"), "{database}");
}

#[on_each_database]
async fn a_thousand_probes_are_answered_with_few_writes(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let counted = server.app.probes.clone();
    let before = landfall_core::clock::Stopwatch::start();
    let probes = (0..1_000).map(|_| counted.probe());
    futures_util::future::join_all(probes).await;
    let seconds = before.elapsed().as_secs();
    // One for each second that the probes took, and one for the last of them.
    let writes = server.app.probes.count().await;
    assert!(writes <= seconds + 2, "{writes} in {seconds} s");
    server.stop().await;
}
