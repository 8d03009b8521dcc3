//! Lists of files: each filter and order, cursors that hold while files come and go, and counts.

use std::collections::BTreeSet;
use std::time::Duration;

use landfall_core::caller::{Reach, Role, TenantUser};
use landfall_core::clock::{Clock, ManualClock};
use landfall_core::lifecycle::Status;
use landfall_core::states::{FileSort, SortOrder};
use landfall_server::records::files::listing::{Listing, Sorting, Wanted};
use landfall_store::args;
use serde_json::{Value, json};

use crate::support::many_files::{insert_ready, rename};
use crate::support::offline_app::Sql;
use crate::support::scripted_failures::{ScriptedFailures, names};
use crate::support::{Client, Setup, TestDb, on_each_database};

const FILES: &str = "/api/v2/uploads/files";
const HOUR: Duration = Duration::from_hours(1);

/// All files of a list, page by page.
async fn all(client: &Client, query: &str, limit: usize) -> Vec<Value> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("{FILES}?limit={limit}&{query}{cursor}")).await.ok();
        found.extend(page["files"].as_array().expect("a list").iter().cloned());
        let Some(next) = page["nextCursor"].as_str() else { return found };
        cursor = format!("&cursor={next}");
    }
}

fn names_of(files: &[Value]) -> Vec<&str> {
    files.iter().map(|file| file["fileName"].as_str().expect("a name")).collect()
}

/// The same files, in each order and with pages of each size, and counted.
async fn assert_found(client: &Client, query: &str, expected: &[&str]) {
    let expected: BTreeSet<&str> = expected.iter().copied().collect();
    for sort in ["createdAt", "fileName", "size"] {
        for order in ["asc", "desc"] {
            for limit in [2, 200] {
                let query = format!("{query}&sort={sort}&order={order}");
                let files = all(client, &query, limit).await;
                let found = names_of(&files);
                assert_eq!(found.len(), expected.len(), "{query}: {found:?}");
                assert_eq!(found.iter().copied().collect::<BTreeSet<_>>(), expected, "{query}");
                let key = |file: &Value| match sort {
                    "createdAt" => (0, file["createdAt"].as_str().expect("a time").to_owned()),
                    "fileName" => (0, file["fileName"].as_str().expect("a name").to_lowercase()),
                    _ => (file["size"].as_i64().expect("a size"), String::new()),
                };
                let mut keys: Vec<_> = files.iter().map(key).collect();
                if order == "desc" {
                    keys.reverse();
                }
                assert!(keys.is_sorted(), "{query}: {keys:?}");
            }
        }
    }
    let counts = client.get(&format!("{FILES}/counts?{query}")).await.ok();
    assert_eq!((&counts["total"], &counts["isCapped"]), (&json!(expected.len()), &json!(false)), "{query}");
    let by_status = counts["byStatus"].as_object().expect("an object");
    assert_eq!(by_status.values().map(|count| count.as_i64().unwrap()).sum::<i64>(), json!(expected.len()));
}

#[on_each_database]
async fn each_filter_finds_its_files_and_no_others(db: TestDb) {
    // In the future, because ids never go back behind those that this process made with the time of the machine.
    let clock = ManualClock::starting_at("2040-01-02T03:04:05Z".parse().unwrap());
    let start = clock_time(&clock);
    let server = Setup::default().clock(&clock).work(ScriptedFailures::new()).start(&db).await;
    let alice = server.client("alice");
    let (batch, _) = alice.upload_all(&["p1".to_owned(), "d1".to_owned(), "a1".to_owned()]).await;
    server.idle().await;
    clock.advance(HOUR);
    let middle = clock_time(&clock);
    alice.upload("a2 Warned_100%.txt", b"four").await;
    alice.upload("p2", b"sixsix").await;
    server.idle().await;
    clock.advance(HOUR);
    alice.register(None, "registered.txt", 7).await;
    let cancelled = alice.upload("e1", b"ab").await;
    server.idle().await;
    alice.post(&format!("{FILES}/{cancelled}/retry"), json!({})).await.ok();
    server.idle().await;
    server.client("bob").upload("p3", b"x").await;
    server.idle().await;
    let warn = "UPDATE files SET warning_count = 1, warnings = $1 WHERE file_name LIKE 'a2%'";
    let warnings = json!([{ "code": "PAGES_SKIPPED", "message": "One page", "page": 1 }]);
    server.app.db.write(Sql(warn.to_owned(), args![warnings])).await.unwrap();

    let (all, a2) =
        (["p1", "d1", "a1", "a2 Warned_100%.txt", "p2", "registered.txt", "e1"], "a2 Warned_100%.txt");
    assert_found(&alice, "", &all).await;
    assert_found(&alice, "status=failed", &["p1", "d1", "p2", "e1"]).await;
    assert_found(&alice, "status=ready,registered", &["a1", a2, "registered.txt"]).await;
    assert_found(&alice, "status=queued,embedding,cancelled", &[]).await;
    assert_found(&alice, "status=deleted", &[]).await;
    assert_found(&alice, "code=PARSE_ERROR", &["p1", "p2"]).await;
    assert_found(&alice, "code=PARSE_ERROR,DB_ERROR", &["p1", "d1", "p2"]).await;
    assert_found(&alice, "code=PARSE_ERROR&status=ready", &[]).await;
    assert_found(&alice, &format!("batchId={batch}"), &["p1", "d1", "a1"]).await;
    assert_found(&alice, &format!("batchId={batch}&status=failed,cancelled"), &["p1", "d1"]).await;
    assert_found(&alice, "warnings=true", &[a2]).await;
    assert_found(&alice, "warnings=true&status=failed", &[]).await;
    assert_found(&alice, "warnings=false&q=WARNED_100%25", &[a2]).await;
    assert_found(&alice, "q=_100%25", &[a2]).await;
    assert_found(&alice, &format!("createdBefore={middle}"), &["p1", "d1", "a1"]).await;
    assert_found(&alice, &format!("createdAfter={middle}"), &[a2, "p2", "registered.txt", "e1"]).await;
    assert_found(
        &alice,
        &format!("createdAfter={start}&createdBefore={middle}&status=failed"),
        &["p1", "d1"],
    )
    .await;
    assert_found(&alice, &format!("createdAfter={middle}&code=PARSE_ERROR"), &["p2"]).await;

    let admin = server.admin();
    assert_found(&admin, "scope=all&code=PARSE_ERROR", &["p1", "p2", "p3"]).await;
    assert_found(&admin, "scope=all&owner=bob", &["p3"]).await;
    assert_found(&admin, "scope=all&owner=nobody", &[]).await;
    assert_found(&admin, "scope=all&tenantId=alice&status=failed", &["p1", "d1", "p2", "e1"]).await;
    assert_found(&admin, "scope=all&tenantId=alice&owner=bob", &[]).await;
}

fn clock_time(clock: &ManualClock) -> String {
    Clock::Manual(clock.clone()).now().to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}

#[on_each_database]
async fn whose_files_are_listed_depends_on_the_role(db: TestDb) {
    let server = Setup::default().work(ScriptedFailures::new()).start(&db).await;
    for (user, tenant) in [("ada", "acme"), ("bob", "acme"), ("ada", "evilcorp")] {
        server.client_of(user, tenant).upload(&format!("{user} of {tenant}"), b"x").await;
    }
    server.idle().await;
    let member = server.client_of("ada", "acme");
    let tenant_admin = server.client_with("carol", "acme", Role::TenantAdmin);
    assert_found(&member, "", &["ada of acme"]).await;
    assert_found(&tenant_admin, "scope=tenant", &["ada of acme", "bob of acme"]).await;
    assert_found(&tenant_admin, "scope=tenant&owner=ada", &["ada of acme"]).await;
    assert_found(&server.admin(), "scope=all&owner=ada", &["ada of acme", "ada of evilcorp"]).await;
    assert_found(&server.admin(), "scope=all&owner=ada&tenantId=evilcorp", &["ada of evilcorp"]).await;
    for path in [FILES.to_owned(), format!("{FILES}/counts"), format!("{FILES}/archive")] {
        member.get(&format!("{path}?scope=tenant")).await.refused(403, "FORBIDDEN");
        member.get(&format!("{path}?scope=all")).await.refused(403, "FORBIDDEN");
        member.get(&format!("{path}?owner=bob")).await.refused(400, "INVALID_REQUEST");
        member.get(&format!("{path}?tenantId=evilcorp")).await.refused(400, "INVALID_REQUEST");
        tenant_admin
            .get(&format!("{path}?scope=tenant&tenantId=evilcorp"))
            .await
            .refused(400, "INVALID_REQUEST");
        tenant_admin.get(&format!("{path}?scope=all")).await.refused(403, "FORBIDDEN");
        for wrong in [
            "status=lost",
            "status=",
            "code=LOST",
            "createdAfter=today",
            "warnings=some",
            "owner=%00&scope=all",
        ] {
            server.admin().get(&format!("{path}?{wrong}")).await.refused(400, "INVALID_REQUEST");
        }
        member.get(&format!("{path}?batchId=x")).await.refused(404, "BATCH_NOT_FOUND");
    }
    for wrong in ["sort=age", "order=up"] {
        member.get(&format!("{FILES}?{wrong}")).await.refused(400, "INVALID_REQUEST");
    }
    for wrong in
        ["s1_x", "n00_01920000-0000-7000-8000-000000000000", "s7_01920000-0000-7000-8000-000000000000"]
    {
        member.get(&format!("{FILES}?sort=fileName&cursor={wrong}")).await.refused(400, "INVALID_CURSOR");
    }
}

#[on_each_database]
async fn a_cursor_holds_while_files_come_and_go(db: TestDb) {
    let server = Setup::default().work(ScriptedFailures::new()).start(&db).await;
    let alice = server.client("alice");
    // Several of one name, and in both cases: the ids decide.
    let old: Vec<String> = ["b", "B", "a", "c", "b", "d", "b", "A"].map(str::to_owned).to_vec();
    let (_, ids) = alice.upload_all(&old).await;
    server.idle().await;
    for sort in ["createdAt", "fileName", "size"] {
        for order in ["asc", "desc"] {
            let query = format!("{FILES}?sort={sort}&order={order}&limit=3");
            let (mut seen, mut deleted): (Vec<String>, Vec<String>) = Default::default();
            let mut cursor = String::new();
            for page in 0.. {
                let is_early = page < 3;
                let page = alice.get(&format!("{query}{cursor}")).await.ok();
                let files = page["files"].as_array().unwrap().iter();
                seen.extend(files.map(|file| file["fileId"].as_str().unwrap().to_owned()));
                // New ones before, behind and among the others; and the one that the cursor names goes.
                if is_early {
                    alice.upload_all(&["0".to_owned(), "b".to_owned(), "z".to_owned()]).await;
                }
                let Some(next) = page["nextCursor"].as_str() else { break };
                cursor = format!("&cursor={next}");
                let last = seen.last().unwrap();
                if !ids.contains(last) {
                    alice.delete(&format!("{FILES}/{last}")).await.ok();
                    deleted.push(last.clone());
                }
            }
            let left = all(&alice, &format!("sort={sort}&order={order}"), 200).await;
            let is_deleted = |file: &&Value| deleted.iter().any(|id| file["fileId"] == **id);
            assert_eq!(left.iter().find(is_deleted), None, "{sort} {order}: no list has a deleted file");
            assert_eq!(
                seen.iter().collect::<BTreeSet<_>>().len(),
                seen.len(),
                "{sort} {order}: none comes twice"
            );
            assert!(ids.iter().all(|id| seen.contains(id)), "{sort} {order}: none is left out");
        }
    }
    server.idle().await;
    server.assert_audit_clean().await;
}

/// A user with very many files: no list and no count walks through all of them, and what is not compared is said.
#[on_each_database]
async fn lists_and_counts_of_very_many_files_are_limited(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    insert_ready(&server, "alice", 100_050).await;
    rename(&server, "Zebra", "size_bytes = 70000").await;
    let rare = "UPDATE files SET warning_count = 1, warnings = $1 WHERE size_bytes = 70000";
    server.app.db.write(Sql(rare.to_owned(), args![json!([{}])])).await.unwrap();

    let largest = alice.get(&format!("{FILES}?sort=size&limit=2")).await.ok();
    assert_eq!(names_of(largest["files"].as_array().unwrap()), ["file 100050", "file 100049"]);
    let last = alice.get(&format!("{FILES}?sort=fileName&limit=1")).await.ok();
    assert_eq!(names_of(last["files"].as_array().unwrap()), ["Zebra"]);
    // Few files have warnings, so these are found in any order.
    let warned = alice.get(&format!("{FILES}?sort=size&order=asc&warnings=true&limit=2")).await.ok();
    assert_eq!(
        (names_of(warned["files"].as_array().unwrap()), &warned["nextCursor"]),
        (vec!["Zebra"], &Value::Null)
    );
    // Names are compared, some at a time.
    let part = alice.get(&format!("{FILES}?q=zeb&sort=size&limit=2")).await.ok();
    assert_eq!(
        (names_of(part["files"].as_array().unwrap()).len(), part["nextCursor"].is_string()),
        (0, true)
    );
    assert_eq!(names_of(&all(&alice, "q=zeb&sort=size", 100).await), ["Zebra"]);

    let count = async |query: &str| alice.get(&format!("{FILES}/counts?{query}")).await.ok();
    let counted = count("q=file").await;
    assert_eq!(counted["isCapped"], true);
    assert!((99_000..=100_001).contains(&counted["total"].as_i64().unwrap()), "{counted}");
    assert_eq!(
        count("warnings=true").await,
        json!({ "total": 1, "byStatus": { "ready": 1 }, "isCapped": false })
    );
    // Without another filter the kept totals are the answer, and nobody kept them here.
    assert_eq!(count("status=ready").await, json!({ "total": 0, "byStatus": {}, "isCapped": false }));
    let archive = alice.get(&format!("{FILES}/archive?q=file")).await;
    archive.refused(400, "INVALID_FILE_COUNT");

    let mut tx = server.app.db.read().await.unwrap();
    if !tx.is_postgres() {
        // The unit tests of the list read the plans of SQLite.
        return;
    }
    let reaches =
        [Reach::User(TenantUser::new("alice", "alice")), Reach::Tenant("alice".to_owned()), Reach::All];
    for reach in reaches {
        // What only `files` has is looked up for the rows that are compared, and not in all of the table.
        let wanted = Wanted { states: vec![Status::Failed], ..Wanted::all_of(reach.clone()) };
        let sorting = Sorting { by: FileSort::Size, ..Sorting::default() };
        let (sql, arguments) = Listing::new(&wanted, sorting, None).statement(50, 0);
        let plan: Vec<(String,)> = tx.rows(format!("EXPLAIN {sql}"), arguments).await.unwrap();
        assert!(!plan.iter().any(|(line,)| line.contains("Seq Scan")), "{plan:#?}");
        for by in [FileSort::CreatedAt, FileSort::FileName, FileSort::Size] {
            for order in [SortOrder::Asc, SortOrder::Desc] {
                let sorting = Sorting { by, order };
                let wanted = Wanted::all_of(reach.clone());
                let first = Listing::new(&wanted, sorting, None).first(&mut tx, 10, 40_000).await.unwrap();
                let after = sorting.position(first.last().expect("there are many"));
                for after in [None, Some(&after)] {
                    let (sql, arguments) = Listing::new(&wanted, sorting, after).statement(50, 0);
                    let plan: Vec<(String,)> =
                        tx.rows(format!("EXPLAIN ANALYZE {sql}"), arguments).await.unwrap();
                    let plan: Vec<&str> = plan.iter().map(|(line,)| line.as_str()).collect();
                    assert!(!plan.iter().any(|line| line.contains("Seq Scan")), "{plan:#?}");
                    // No step sees more than the page, twice where it is made of two.
                    for line in &plan {
                        let rows = line.split("actual").nth(1).and_then(|part| part.split("rows=").nth(1));
                        let rows =
                            rows.and_then(|part| part.split(' ').next()?.parse::<f64>().ok()).unwrap_or(0.0);
                        assert!(rows <= 100.0 && !line.contains("Rows Removed"), "{plan:#?}");
                    }
                }
            }
        }
    }
}

#[on_each_database]
async fn the_command_line_lists_with_the_same_filters(db: TestDb) {
    let server = Setup::default().work(ScriptedFailures::new()).start(&db).await;
    let alice = server.client("alice");
    alice.upload_all(&[names('p', 2), names('a', 2)].concat()).await;
    server.idle().await;
    let list = async |arguments: &[&str], token: &str| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_landfall"));
        command
            .args(["--json", "files", "--server", &server.base])
            .args(arguments)
            .env("LANDFALL_TOKEN", token);
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let page: Value = serde_json::from_slice(&output.stdout).unwrap();
        names_of(page["files"].as_array().unwrap()).join(" ")
    };
    assert_eq!(list(&["--sort", "fileName", "--order", "asc"], &alice.token).await, "a0 a1 p0 p1");
    assert_eq!(list(&["--code", "PARSE_ERROR", "--sort", "fileName"], &alice.token).await, "p1 p0");
    assert_eq!(list(&["--created-after", "2999-01-01"], &alice.token).await, "");
    assert_eq!(
        list(
            &[
                "--created-before",
                "2999-01-01T00:00:00Z",
                "--status",
                "failed,ready",
                "--limit",
                "1",
                "--sort",
                "fileName"
            ],
            &alice.token
        )
        .await,
        "p1"
    );
    let admin = server.admin();
    assert_eq!(
        list(
            &["--tenant", "alice", "--owner", "alice", "--status", "failed", "--sort", "fileName"],
            &admin.token
        )
        .await,
        "p1 p0"
    );
}
