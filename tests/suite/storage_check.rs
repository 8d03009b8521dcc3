//! `landfall storage check` tries what the server needs of its storage and names what is wrong; `landfall storage cors` sets the
//! rules for browsers.

use std::process::Stdio;

use serde_json::Value;
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::network::Request;
use crate::support::object_stores::{ALL, Bucket, ObjectStore, S3_READER};
use crate::support::process::Process;

type Settings = Vec<(&'static str, String)>;

const ON_A_BUCKET: [&str; 9] = [
    "connect",
    "write",
    "read",
    "list",
    "conditional put",
    "upload in parts",
    "signed URL",
    "CORS",
    "delete",
];

/// What the command says, by its exit code.
fn storage(db: &TestDb, settings: &Settings, arguments: &[&str]) -> (i32, String) {
    let output = Process::command(db)
        .envs(settings.iter().cloned())
        .arg("storage")
        .args(arguments)
        .stderr(Stdio::piped())
        .output()
        .expect("the program runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).into_owned())
}

/// The results of all checks: name, result, message.
fn check(db: &TestDb, settings: &Settings, origins: &[&str]) -> Vec<(String, String, String)> {
    let mut arguments = vec!["--json", "check"];
    arguments.extend(origins.iter().flat_map(|origin| ["--origin", origin]));
    let (code, said) = storage(db, settings, &arguments);
    // The log is behind it.
    let first = said.lines().next().unwrap_or_default();
    let report: Value = serde_json::from_str(first).unwrap_or_else(|_| panic!("{said}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let checks: Vec<_> = report["checks"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|check| (text(&check["check"]), text(&check["result"]), text(&check["message"])))
        .collect();
    let has_failed = checks.iter().any(|(_, result, _)| result == "failed");
    assert_eq!((code, &report["passed"]), (i32::from(has_failed), &Value::Bool(!has_failed)), "{said}");
    checks
}

/// The checks that failed, with what they said.
fn failures(db: &TestDb, settings: &Settings, origins: &[&str]) -> Vec<(String, String)> {
    let failed = check(db, settings, origins).into_iter().filter(|(_, result, _)| result == "failed");
    failed.map(|(name, _, message)| (name, message)).collect()
}

fn with(settings: &Settings, name: &str, value: &str) -> Settings {
    let replaced = |(known, old): &(&'static str, String)| {
        (*known, if *known == name { value.to_owned() } else { old.clone() })
    };
    settings.iter().map(replaced).collect()
}

#[track_caller]
fn assert_says(failures: &[(String, String)], check: &str, expected: &str) {
    let found = failures.iter().find(|(name, _)| name == check);
    assert!(found.is_some_and(|(_, said)| said.contains(expected)), "{expected}: {failures:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_passes_as_soon_as_its_rules_let_the_page_in() {
    let db = TestDb::sqlite();
    for store in ALL {
        let Some(bucket) = store.bucket().await else { return };
        let settings = bucket.settings();
        // The rules of Azure are those of the whole account, so another test's must not fit.
        let [ours, other] = [(); 2].map(|()| format!("https://{}.example", Uuid::new_v4().simple()));
        let names: Vec<_> = check(&db, &settings, &[]).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names, ON_A_BUCKET, "{store:?}");
        let refused = failures(&db, &settings, &[&ours]);
        assert_eq!(refused.len(), 1, "{store:?} {refused:?}");
        assert_says(&refused, "CORS", &format!("no CORS rule that lets pages of {ours} send PUT requests"));

        for origin in [&other, &ours, &ours] {
            let (code, said) = storage(&db, &settings, &["cors", "--set", "--origin", origin]);
            assert_eq!(code, 0, "{store:?} {said}");
        }
        assert_eq!(failures(&db, &settings, &[&ours, &other]), [], "{store:?}: the other rule stays");
        let rules = bucket.bucket_cors().await;
        assert_eq!(rules.matches(&*ours).count(), 1, "{store:?}: set again, and not added again: {rules}");
        assert_eq!(bucket.keys().await, [] as [&str; 0], "{store:?}: nothing is left");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_printed_rules_have_the_form_of_each_vendor() {
    let db = TestDb::sqlite();
    for (store, path) in [
        (ObjectStore::S3, "/CORSRules/0/AllowedOrigins/0"),
        (ObjectStore::Azure, "/cors/corsRules/0/allowedOrigins/0"),
        (ObjectStore::Gcs, "/0/origin/0"),
    ] {
        let Some(bucket) = store.name_a_bucket() else { return };
        let mut settings = bucket.settings();
        settings.push(("PUBLIC_URL", "https://files.example/landfall".to_owned()));
        let (code, said) = storage(&db, &settings, &["cors"]);
        let rules: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
        assert_eq!((code, rules.pointer(path)), (0, Some(&"https://files.example".into())), "{said}");
        for wrong in ["files.example", "https://files.example/page", "mailto:a@b"] {
            assert_eq!(storage(&db, &settings, &["cors", "--origin", wrong]).0, 2, "{wrong}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_keys_and_a_missing_bucket_and_a_store_that_is_away_are_named() {
    let db = TestDb::sqlite();
    for store in ALL {
        let Some(bucket) = store.bucket().await else { return };
        let settings = bucket.settings();
        let wrong: Vec<(Settings, &str)> = match store {
            ObjectStore::S3 => vec![
                (with(&settings, "AWS_SECRET_ACCESS_KEY", "other"), "The secret in AWS_SECRET_ACCESS_KEY"),
                (with(&settings, "AWS_ACCESS_KEY_ID", "other"), "does not know the access key"),
            ],
            ObjectStore::Azure => {
                vec![(
                    with(&settings, "AZURE_STORAGE_ACCOUNT_KEY", "b3RoZXI="),
                    "The key in AZURE_STORAGE_ACCOUNT_KEY",
                )]
            }
            ObjectStore::Gcs => {
                let account = with(&settings, "GOOGLE_SERVICE_ACCOUNT", &other_account(&db, &bucket));
                vec![(account, "The key of the service account")]
            }
        };
        for (settings, expected) in wrong {
            let refused = failures(&db, &settings, &[]);
            assert_eq!(refused.len(), 1, "nothing else is worth a try: {refused:?}");
            assert_says(&refused, "write", expected);
        }
        let missing = store.name_a_bucket().expect("the stores run");
        let word = if store == ObjectStore::Azure { "container" } else { "bucket" };
        let expected = format!("There is no {word} {}", missing.name);
        assert_says(&failures(&db, &missing.settings(), &[]), "write", &expected);

        let network = bucket.network().await;
        network.refuse();
        let refused = failures(&db, &bucket.through(&network).settings(), &[]);
        assert_says(&refused, "connect", &format!("The store does not answer at {}", network.address));
    }
}

/// The file of a service account with a key that the store does not know.
fn other_account(db: &TestDb, bucket: &Bucket) -> String {
    let settings = bucket.settings();
    let (_, path) = settings.iter().find(|(name, _)| *name == "GOOGLE_SERVICE_ACCOUNT").expect("a file");
    let mut account: Value =
        serde_json::from_slice(&std::fs::read(path).expect("it was written")).expect("JSON");
    let made = std::process::Command::new("openssl")
        .args(["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"])
        .output()
        .expect("openssl is installed");
    account["private_key"] = String::from_utf8(made.stdout).expect("text").into();
    let other = db.folder.path().join("account.json");
    std::fs::write(&other, account.to_string()).expect("it can be written");
    other.display().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_may_only_read_are_told_what_they_lack() {
    let db = TestDb::sqlite();
    let Some(bucket) = ObjectStore::S3.bucket().await else { return };
    let settings = with(&bucket.settings(), "AWS_ACCESS_KEY_ID", S3_READER.0);
    let refused = failures(&db, &with(&settings, "AWS_SECRET_ACCESS_KEY", S3_READER.1), &[]);
    let names: Vec<_> = refused.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["write", "upload in parts", "signed URL"], "listing works: {refused:?}");
    assert_says(&refused, "write", "no permission for writing (s3:PutObject)");
    let (code, said) = storage(
        &db,
        &with(&settings, "AWS_SECRET_ACCESS_KEY", S3_READER.1),
        &["cors", "--set", "--origin", "https://a.example"],
    );
    assert_eq!(code, 2);
    assert!(said.contains("no permission for"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_with_another_time_or_without_conditions_is_named() {
    let db = TestDb::sqlite();
    for store in ALL {
        let Some(bucket) = store.bucket().await else { return };
        let network = bucket.network().await;
        let settings = bucket.through(&network).settings();
        let is_probe = |request: &Request| request.method == "PUT" && request.target.contains("check");

        let date = "Date: Thu, 02 Jan 2020 03:04:05 GMT\r\n";
        network.answer_with(1, 403, date, "", |request| request.method == "GET" && request.target == "/");
        let refused = failures(&db, &settings, &[]);
        assert_says(&refused, "connect", "minutes ahead of that of");

        // The first write is the plain one, the second the conditional one.
        network.answer_with(
            2,
            200,
            "ETag: \"1\"\r\nLast-Modified: Thu, 02 Jan 2020 03:04:05 GMT\r\n",
            "",
            is_probe,
        );
        assert_says(
            &failures(&db, &settings, &[]),
            "conditional put",
            "ignores the condition \"only if there is no",
        );
        // The third replaces what is unchanged, the fourth changes it, and the fifth finds it changed.
        network.answer_with(
            5,
            200,
            "ETag: \"1\"\r\nLast-Modified: Thu, 02 Jan 2020 03:04:05 GMT\r\n",
            "",
            is_probe,
        );
        assert_says(
            &failures(&db, &settings, &[]),
            "conditional put",
            "only if the object is still the same",
        );
        // The client asks again when a server fails.
        for _ in 0..6 {
            network.answer(2, 501, "<Error><Code>NotImplemented</Code></Error>", is_probe);
        }
        assert_says(&failures(&db, &settings, &[]), "conditional put", "does not support conditional writes");
        network.restore();
        assert_eq!(failures(&db, &settings, &[]), [], "{store:?}");
        assert_eq!(bucket.keys().await, [] as [&str; 0], "{store:?}: nothing is left");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_go_through_the_server_need_no_rules() {
    let db = TestDb::sqlite();
    let results = |settings: &Settings| {
        let checks = check(&db, settings, &["https://a.example"]);
        checks.into_iter().map(|(name, result, _)| format!("{name} {result}")).collect::<Vec<_>>()
    };
    let folder = ["write", "read", "list", "conditional put", "delete"].map(|name| format!("{name} passed"));
    assert_eq!(results(&Vec::new()), folder, "a folder");
    let (code, said) = storage(&db, &Vec::new(), &["cors", "--origin", "https://a.example"]);
    assert!(code == 2 && said.contains("a folder"), "{said}");
    let Some(bucket) = ObjectStore::S3.bucket().await else { return };
    let mut settings = bucket.settings();
    settings.push(("UPLOAD_MODE", "proxy".to_owned()));
    let seen = results(&settings);
    assert!(
        seen.contains(&"CORS skipped".to_owned()) && seen.contains(&"signed URL skipped".to_owned()),
        "{seen:?}"
    );
}
