//! The description of the API lists everything that exists, and nothing else.

use std::collections::BTreeSet;
use std::path::Path;

use landfall_core::refusal::RefusalCode;
use landfall_server::http::{self, document};
use reqwest::Method;
use serde_json::Value;

use crate::support::{Client, Setup, TestDb, contract};

/// Path, method and description of every operation.
fn operations() -> Vec<(&'static str, &'static str, &'static Value)> {
    let mut all = Vec::new();
    for (path, item) in document()["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("methods") {
            all.push((path.as_str(), method.as_str(), operation));
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_router_and_the_description_have_the_same_paths() {
    let db = TestDb::sqlite();
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    // The debug output of a router has every path in quotes.
    let shown = format!("{:?}", http::router(server.app.clone()));
    let routed: BTreeSet<&str> =
        shown.split('"').filter(|part| part.starts_with('/') && !part.contains("__private")).collect();
    // The addresses of the console's screens, which are not for programs.
    let routed: BTreeSet<&str> = routed.into_iter().filter(|path| !path.starts_with("/console")).collect();
    let described: BTreeSet<&str> = operations().iter().map(|(path, ..)| *path).collect();
    assert!(described.len() > 40, "{described:?}");
    assert_eq!(routed, described);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_accepts_exactly_the_methods_that_it_describes() {
    let db = TestDb::sqlite();
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let anonymous = Client::new(server.base.clone(), String::new());
    let id = uuid::Uuid::nil().to_string();
    for (path, item) in document()["paths"].as_object().expect("paths") {
        let parts = path.split('/').map(|part| match part {
            "{asset}" => "index.html",
            "{consoleFile}" => "icon.svg",
            part if part.starts_with('{') => id.as_str(),
            part => part,
        });
        let address = parts.collect::<Vec<_>>().join("/");
        for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let request = anonymous.http.request(method.clone(), format!("{}{address}", anonymous.base));
            let answer = anonymous.send(request).await;
            if item.get(method.as_str().to_ascii_lowercase()).is_some() {
                assert!(![404, 405, 500].contains(&answer.status), "{method} {path}: {answer:?}");
            } else {
                answer.refused(405, "METHOD_NOT_ALLOWED");
            }
        }
    }
}

#[test]
fn each_operation_has_a_unique_name_a_group_and_a_summary() {
    let mut names = BTreeSet::new();
    let groups: Vec<&Value> =
        document()["tags"].as_array().expect("tags").iter().map(|tag| &tag["name"]).collect();
    for (path, method, operation) in operations() {
        let name = operation["operationId"].as_str().unwrap_or_default();
        assert!(names.insert(name), "{method} {path}: another one is called {name:?}");
        assert!(groups.contains(&&operation["tags"][0]), "{method} {path} has no group");
        assert!(operation["summary"].as_str().is_some_and(|it| it.len() > 5), "{method} {path} says nothing");
        let good = operation["responses"].as_object().expect("answers").keys();
        assert!(good.filter(|status| status.starts_with(['2', '3'])).count() > 0, "{method} {path}");
    }
}

/// What the linters of OpenAPI ask for is checked by `scripts/check-description`. This names the operation at once.
#[test]
fn each_operation_and_each_response_is_described() {
    for (path, method, operation) in operations() {
        assert!(
            operation["description"].is_string(),
            "{method} {path}: add a second paragraph to the comment"
        );
        for (status, answer) in operation["responses"].as_object().expect("answers") {
            assert!(answer["description"].is_string(), "{method} {path} {status}");
        }
    }
}

/// The JSON bodies of a request and of its success.
fn bodies(operation: &Value) -> Vec<&Value> {
    let good = operation["responses"].as_object().expect("answers").iter();
    let good = good.filter(|(status, _)| status.starts_with('2')).map(|(_, answer)| answer);
    let all = std::iter::once(&operation["requestBody"]).chain(good);
    all.filter_map(|body| body["content"].get("application/json")).collect()
}

#[test]
fn each_json_body_has_an_example_that_is_as_its_schema_says() {
    let mut examples = 0;
    for (path, method, operation) in operations() {
        for body in bodies(operation) {
            let example = body.get("example").unwrap_or_else(|| {
                panic!("{method} {path}: add an example to crates/server/src/http/document/examples")
            });
            let complaints = contract::complaints(&body["schema"], example);
            assert!(complaints.is_empty(), "{method} {path}: {complaints:?} in {example}");
            examples += 1;
        }
    }
    assert!(examples > 70, "{examples}");
}

#[test]
fn bodies_that_are_not_text_are_described_as_bytes() {
    for id in ["sendBytes", "createUpload", "appendToUpload", "downloadFile", "downloadJob", "showResult"] {
        let (.., operation) = operations().into_iter().find(|(.., one)| one["operationId"] == id).expect(id);
        let media = [&operation["requestBody"], &operation["responses"]["200"]]
            .into_iter()
            .flat_map(|body| body["content"].as_object().into_iter().flatten())
            .find(|(kind, _)| kind.contains("octet-stream") || *kind == "*/*");
        let (_, media) = media.unwrap_or_else(|| panic!("{id} has no bytes"));
        assert_eq!(media["schema"], serde_json::json!({ "type": "string", "format": "binary" }), "{id}");
    }
}

#[test]
fn the_codes_are_enums_and_those_in_responses_are_open() {
    let schema = |name: &str| &document()["components"]["schemas"][name];
    let listed = |name: &str| schema(name)["enum"].as_array().expect(name).len();
    assert_eq!(schema("RefusalError")["properties"]["code"]["$ref"], "#/components/schemas/RefusalCode");
    let refusals: BTreeSet<&str> = RefusalCode::ALL.iter().map(|known| known.code()).collect();
    assert_eq!(listed("RefusalCode"), refusals.len());
    assert_eq!(listed("KnownFailureCode"), landfall_core::failure::Code::ALL.len());
    assert_eq!(listed("KnownWarningCode"), landfall_core::warning::WarningCode::ALL.len());
    for (name, known) in [("FailureCode", "KnownFailureCode"), ("WarningCode", "KnownWarningCode")] {
        assert_eq!(schema(name)["anyOf"][0]["$ref"], format!("#/components/schemas/{known}"));
        contract::check_as(name, &"A_CODE_OF_A_LATER_VERSION".into());
    }
}

#[test]
fn every_reference_resolves() {
    fn check(value: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                    assert!(document().pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
                }
                fields.values().for_each(check);
            }
            Value::Array(items) => items.iter().for_each(check),
            _ => {}
        }
    }
    check(document());
}

/// The name of every refusal that the code returns.
fn written_refusals() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let text = std::fs::read_to_string(&path).expect("text");
                let names = text.split("RefusalCode::").skip(1);
                found.extend(
                    names.filter_map(|rest| {
                        rest.split(|c: char| !c.is_alphanumeric()).next().map(str::to_owned)
                    }),
                );
            }
        }
    }
    found
}

#[test]
fn every_listed_refusal_is_returned_somewhere() {
    let written = written_refusals();
    for known in RefusalCode::ALL {
        assert!(written.contains(&format!("{known:?}")), "{known:?} is never returned");
    }
}

#[test]
fn every_refusal_is_described_for_some_route() {
    let mut described = BTreeSet::new();
    for (_, _, operation) in operations() {
        for (status, answer) in operation["responses"].as_object().expect("answers") {
            let part = &answer["content"]["application/json"]["schema"];
            let codes = part["properties"]["error"]["properties"]["code"]["enum"].as_array();
            for code in codes.into_iter().flatten().filter_map(Value::as_str) {
                described.insert((status.parse::<u16>().expect("a status"), code));
            }
        }
    }
    // An unknown path has no description.
    described.insert((405, "METHOD_NOT_ALLOWED"));
    let known: BTreeSet<(u16, &str)> =
        RefusalCode::ALL.iter().map(|known| (known.status(), known.code())).collect();
    assert_eq!(described, known);
}

#[test]
fn the_error_document_lists_every_refusal() {
    let document = include_str!("../../docs/errors.md");
    let listed: Vec<String> = document
        .lines()
        .filter(|line| line.starts_with("| ") && line[2..].starts_with(|c: char| c.is_ascii_digit()))
        .map(str::to_owned)
        .collect();
    let expected: Vec<String> = RefusalCode::ALL
        .iter()
        .map(|known| format!("| {} | `{}` | {} |", known.status(), known.code(), known.meaning()))
        .collect();
    assert_eq!(listed, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_page_opens_without_a_token_and_loads_nothing_from_other_hosts() {
    let db = TestDb::sqlite();
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let http = landfall_server::outbound::client();
    let page = http.get(format!("{}/api/docs", server.base)).send().await.unwrap();
    assert_eq!((page.status().as_u16(), page.url().path()), (200, "/api/docs/index.html"));
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    let page = page.text().await.unwrap();
    let loaded: Vec<&str> = page
        .split(['"', '\''])
        .filter(|part| [".js", ".css", ".png"].iter().any(|end| part.ends_with(end)))
        .collect();
    assert!(loaded.len() >= 4, "{page}");
    for part in loaded {
        assert!(!part.contains("//"), "{part}");
        let name = part.trim_start_matches("./");
        let part = http.get(format!("{}/api/docs/{name}", server.base)).send().await.unwrap();
        assert_eq!(part.status(), 200, "{name}");
    }
    let shown: Value =
        http.get(format!("{}/api/openapi.json", server.base)).send().await.unwrap().json().await.unwrap();
    assert_eq!(&shown, document());
}

#[test]
fn the_command_line_defines_no_response_types_of_its_own() {
    fn scan(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            // The notes about unfinished uploads are files of the command line's own.
            let keeps_notes =
                ["upload/unfinished.rs", "upload/candidates.rs"].iter().any(|own| path.ends_with(own));
            if path.is_dir() {
                scan(&path, found);
            } else if !keeps_notes {
                let text = std::fs::read_to_string(&path).unwrap();
                // A derive for tests only cannot read what a server sends.
                let reads = |line: &&str| {
                    line.replace("DeserializeOwned", "").contains("Deserialize")
                        && !line.contains("cfg_attr(test")
                };
                let lines = text.lines().map(str::trim).filter(reads);
                found.extend(lines.map(|line| format!("{}: {line}", path.display())));
            }
        }
    }
    let mut found = Vec::new();
    scan(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut found);
    assert!(found.is_empty(), "use the types of crates/api: {found:#?}");
}

#[test]
fn the_command_line_prints_the_description_without_a_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_landfall"));
    let printed = program.arg("openapi").current_dir(folder.path()).env_clear().output().expect("it runs");
    assert!(printed.status.success(), "{printed:?}");
    assert_eq!(&serde_json::from_slice::<Value>(&printed.stdout).expect("JSON"), document());
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "it wrote something");
}
