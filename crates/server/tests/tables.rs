//! Each table belongs to the modules that this file lists. No other source names it in SQL, so that all
//! statements about a table are found together.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A table, and the sources that may name it: first its own, then those with a statement over several tables.
/// A name without `.rs` stands for a module with its folder.
type Table = (&'static str, &'static [&'static str], &'static [&'static str]);

/// The checks of the whole database compare tables with one another, so they name nearly all of them.
const AUDIT: &str = "audit/invariants.rs";

const TABLES: [Table; 44] = [
    ("alerts", &["reports/alerts"], &[]),
    ("api_keys", &["auth/api_keys.rs"], &[]),
    ("arriving_uploads", &["records/files/arriving.rs"], &[]),
    ("artifacts", &["content/artifacts.rs"], &[]),
    ("audit_log", &["records/audit_log.rs"], &[]),
    // A file without a mapping has that of its batch.
    ("batches", &["records/batch"], &[AUDIT, "records/files.rs"]),
    // A search reads the vectors that their codes found, and the audit compares them.
    (
        "chunk_index",
        &["content/index.rs"],
        &[AUDIT, "content/search.rs", "content/codes/vectors.rs", "content/codes/check.rs"],
    ),
    ("chunk_postings", &["content/words.rs"], &[]),
    ("chunk_terms", &["content/words.rs"], &[AUDIT]),
    ("chunks", &["content/chunks.rs"], &[AUDIT, "content/search.rs"]),
    // What holds up a claim is read in one statement.
    ("circuits", &["queue/circuits.rs"], &["queue/gates.rs"]),
    ("cleanup_failures", &["records/cleanup_failures.rs"], &[]),
    ("code_segments", &["content/codes/segments.rs"], &["content/codes/check.rs"]),
    ("coded_files", &["content/codes/segments.rs"], &["content/codes/check.rs"]),
    ("database_identity", &["recovery/ownership.rs"], &[]),
    ("event_epochs", &["records/epochs.rs"], &[]),
    ("events", &["records/events"], &[AUDIT]),
    ("file_attributes", &["records/files/attributes.rs"], &["content/narrowing.rs"]),
    (
        "files",
        &["records/file.rs", "records/files", "records/moves"],
        &[
            AUDIT,
            // The index of an earlier version takes the tenants from them.
            "content/index.rs",
            // The index holds no state of files, so a search joins it with them.
            "content/indexed_files.rs",
            "content/search.rs",
            "content/codes/vectors.rs",
            "content/words.rs",
            // What holds up a claim is read in one statement.
            "queue/gates.rs",
            // A batch is timed out while it misses files, and the totals of a user begin with their files.
            "records/batch/changes.rs",
            // A batch goes when none of its files is left.
            "records/batch/removal.rs",
            // An upload is over when its file is.
            "records/resumable.rs",
            "records/totals.rs",
        ],
    ),
    ("hourly", &["records/hourly.rs"], &[]),
    ("idempotency_keys", &["intake/idempotency.rs"], &[]),
    // The index is made with this table.
    ("indexed_files", &["content/indexed_files.rs"], &[AUDIT, "content/index.rs"]),
    ("job_runs", &["recovery/runs.rs"], &[]),
    ("job_schedules", &["recovery/runs.rs"], &[]),
    ("listed_files", &["records/files/listed.rs"], &[AUDIT]),
    ("notifications", &["records/notifications.rs"], &[]),
    ("operations", &["operations/rows.rs"], &[]),
    ("orphan_scans", &["recovery/orphan_cleanup/scan.rs"], &[]),
    // What holds up a claim is read in one statement.
    ("paused_stages", &["queue/pause.rs"], &["queue/gates.rs"]),
    // Only the store reads and writes it, before a server can use the database.
    ("program_versions", &[], &[]),
    ("rate_buckets", &["queue/limits.rs"], &[]),
    ("reindexing", &["stages/reindex/rows.rs"], &[]),
    ("removed_events", &["records/events"], &[]),
    // A file whose bytes come in several requests is not abandoned before its expiry has looked at them.
    ("resumable_uploads", &["records/resumable.rs"], &[AUDIT, "records/files/uploads.rs"]),
    ("secrets", &["auth/agreement.rs"], &[]),
    ("sessions", &["auth/sessions.rs"], &[]),
    ("sign_in_links", &["auth/links.rs"], &[]),
    ("tenants", &["records/quota.rs"], &[AUDIT]),
    ("throughput", &["records/throughput.rs"], &[]),
    // Whether all files of an owner are coded is read with the list of the segments.
    (
        "uncoded_files",
        &["content/codes/uncoded.rs"],
        &["content/codes/check.rs", "content/codes/segments.rs"],
    ),
    // The totals say which users have files in the queue.
    ("user_totals", &["records/totals.rs"], &[AUDIT, "records/files/queue.rs"]),
    ("webhook_deliveries", &["delivery/webhooks/deliveries.rs"], &["delivery/webhooks/rows.rs"]),
    ("webhooks", &["delivery/webhooks/rows.rs"], &["delivery/webhooks/deliveries.rs"]),
    (
        "workers",
        &["process/workers.rs"],
        // What a dead process held is found with the rows that name their holder.
        &[
            AUDIT,
            "delivery/webhooks/rows.rs",
            "records/files/arriving.rs",
            "records/files/stuck.rs",
            "records/resumable.rs",
            "recovery/runs.rs",
            "stages/reindex/rows.rs",
        ],
    ),
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every source file, by its path below the source.
fn files() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![source()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let inside = path.strip_prefix(source()).expect("it is below the source");
                found.push((inside.to_str().expect("a name").to_owned(), read(&path)));
            }
        }
    }
    found
}

/// The tables that a source names in SQL, each with its line: behind `FROM`, `INTO`, `UPDATE` or `JOIN`, or where the rows
/// of an insert go (`"files (id, …`).
fn named(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut follows = false;
    for (number, line) in (1..).zip(source.lines()) {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for (at, _) in line.match_indices('"') {
            let name = word(&line[at + 1..]);
            if line[at + 1 + name.len()..].starts_with(" (") {
                found.push((number, name.to_owned()));
            }
        }
        for part in line.split_whitespace() {
            let part = part.trim_start_matches(|c: char| !c.is_alphanumeric());
            if follows && !word(part).is_empty() {
                found.push((number, word(part).to_owned()));
            }
            follows = matches!(part, "FROM" | "INTO" | "UPDATE" | "JOIN");
        }
    }
    found
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// Whether a source is one of these, or is in the folder of one.
fn is_one_of(path: &str, sources: &[&str]) -> bool {
    sources.iter().any(|source| {
        let below = path.strip_prefix(source);
        below.is_some_and(|rest| rest.is_empty() || rest == ".rs" || rest.starts_with('/'))
    })
}

#[test]
fn no_source_names_a_table_of_another_module() {
    let mut strays = Vec::new();
    for (path, source) in files() {
        for (line, name) in named(&source) {
            let table = TABLES.iter().find(|(table, ..)| *table == name);
            if let Some((table, owners, others)) = table
                && !is_one_of(&path, owners)
                && !is_one_of(&path, others)
            {
                strays.push(format!("{path}:{line} names {table}, which belongs to {}", owners.join(", ")));
            }
        }
    }
    assert!(strays.is_empty(), "{}", strays.join("\n"));
}

/// Sources with a statement about all users of a name.
const BY_NAME_ALONE: [&str; 2] = [
    // A check that knows only the name counts again for each tenant.
    "records/totals.rs",
    // A filter beside the condition on what the caller may see, which has the tenant.
    "records/files/listing/wanted.rs",
];

/// The same user name in another tenant is another user.
#[test]
fn no_statement_compares_the_user_without_the_tenant() {
    let mut strays = Vec::new();
    for (path, source) in files() {
        let code: Vec<&str> = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let code = code.join("\n");
        let literals = code.split('"').skip(1).step_by(2);
        let lone = |text: &&str| {
            ["user_id = ", "user_id > ", "user_id IN"].iter().any(|compared| text.contains(compared))
                && !text.contains("tenant_id")
        };
        for text in literals.filter(lone).filter(|_| !is_one_of(&path, &BY_NAME_ALONE)) {
            strays.push(format!("{path}: {text}"));
        }
    }
    assert!(strays.is_empty(), "{}", strays.join("\n"));
}

/// An entry that is not needed any more would let a statement in unseen.
#[test]
fn every_entry_is_in_use() {
    let files: Vec<(String, Vec<(usize, String)>)> =
        files().into_iter().map(|(path, source)| (path, named(&source))).collect();
    for (table, owners, others) in TABLES {
        for entry in owners.iter().chain(others) {
            let used = files.iter().any(|(path, names)| {
                is_one_of(path, &[entry]) && names.iter().any(|(_, name)| name == table)
            });
            assert!(used, "{entry} does not name {table}");
        }
    }
}

#[test]
fn every_table_has_its_module() {
    let listed: BTreeSet<&str> = TABLES.iter().map(|(table, ..)| *table).collect();
    let migrations = source().join("../../../migrations");
    let mut texts: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(migrations).expect("the migrations") {
        texts.push(read(&entry.expect("an entry").path()));
    }
    texts.extend(["content/index.rs", "content/words.rs"].map(|path| read(&source().join(path))));
    let mut made = BTreeSet::new();
    for text in &texts {
        for rest in text.split("CREATE TABLE ").skip(1).chain(text.split("CREATE VIRTUAL TABLE ").skip(1)) {
            made.insert(word(rest.strip_prefix("IF NOT EXISTS ").unwrap_or(rest)));
        }
    }
    // A table that replaces another is made under a name of its own, and then gets the other's.
    for text in &texts {
        for rest in text
            .split("ALTER TABLE ")
            .skip(1)
            .filter(|rest| rest[word(rest).len()..].starts_with(" RENAME TO "))
        {
            made.remove(word(rest));
        }
    }
    // Tables of earlier versions.
    for text in &texts {
        for rest in text.split("DROP TABLE IF EXISTS ").skip(1) {
            made.remove(word(rest));
        }
    }
    assert_eq!(made, listed);
}

#[test]
fn tables_are_found_however_the_statement_is_written() {
    let source = "
        // SELECT * FROM tenants
        let one = \"SELECT * FROM files WHERE id = $1\";
        let two = \"WITH due AS (SELECT id FROM
            batches) UPDATE workers SET name = $1\";
        tx.insert(\"events (at, kind)\", rows, \"\");";
    let found = named(source);
    let found: Vec<(usize, &str)> = found.iter().map(|(line, name)| (*line, name.as_str())).collect();
    assert_eq!(found, [(3, "files"), (5, "batches"), (5, "workers"), (6, "events")]);
}
