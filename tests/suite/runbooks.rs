//! The runbooks are correct: the program accepts every command, the server serves every address, every setting
//! exists, and every alert has its chapter.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Parser;
use landfall_cli::Cli;
use reqwest::Method;

use crate::support::{TestDb, TestServer};

const ID: &str = "01890000-0000-7000-8000-000000000000";

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The name and the text of each runbook.
fn runbooks() -> Vec<(String, String)> {
    let folder = root().join("docs/runbooks");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

/// The lines of `sh` blocks; lines continued with a backslash are joined.
fn shell_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let (mut inside, mut continues) = (false, false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = line.trim() == "```sh";
            continue;
        }
        if !inside {
            continue;
        }
        let part = line.trim().trim_end_matches('\\').to_owned();
        match lines.last_mut().filter(|_| continues) {
            Some(last) => *last = format!("{last} {part}"),
            None => lines.push(part),
        }
        continues = line.trim_end().ends_with('\\');
    }
    lines
}

/// The text between backquotes within a line.
fn inline(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found
}

/// The words of each call of the program in a line of shell, without other programs in a pipe.
fn calls(line: &str) -> Vec<Vec<String>> {
    let mut calls = Vec::new();
    for part in line.split(['|', ';', '&', '(', ')']) {
        let words = part.split_whitespace().skip_while(|word| word.contains('=') || *word == "$");
        let mut words = words.map(|word| word.trim_matches(['"', '\''])).peekable();
        if words.peek() != Some(&"landfall") {
            continue;
        }
        // A redirection is not an argument.
        let words = words.take_while(|word| !word.starts_with(['>', '<', '#']) && !word.starts_with("2>"));
        calls.push(words.map(fill_placeholder).collect());
    }
    calls
}

/// Replaces a placeholder by a valid value.
fn fill_placeholder(word: &str) -> String {
    match word {
        "$FILE" | "$BATCH" | "ID" => ID.to_owned(),
        "$FINGERPRINT" | "…" => "0123456789abcdef".to_owned(),
        "$STAGE" => "extract".to_owned(),
        _ => word.to_owned(),
    }
}

#[test]
fn the_program_accepts_every_command() {
    let mut seen = 0;
    for (name, text) in runbooks() {
        for line in shell_lines(&text).into_iter().chain(inline(&text)) {
            for call in calls(&line) {
                seen += 1;
                if let Err(error) = Cli::try_parse_from(&call) {
                    panic!("{name}: {}\n{error}", call.join(" "));
                }
            }
        }
    }
    assert!(seen > 40, "there are commands to check: {seen}");
}

#[test]
fn an_unknown_command_would_be_noticed() {
    for line in
        ["landfall tidy", "$ X=1 landfall stuck --everything | head", "true && landfall jobs stop retention"]
    {
        let calls = calls(line);
        assert_eq!(calls.len(), 1, "{line}");
        assert!(Cli::try_parse_from(&calls[0]).is_err(), "{line}");
    }
}

/// The addresses in a line, each with the method that is used there.
fn addresses(line: &str) -> Vec<(Method, String)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut found = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let Some(start) =
            ["/api/", "/healthz", "/readyz", "/metrics"].iter().filter_map(|path| word.find(path)).min()
        else {
            continue;
        };
        let path: String =
            word[start..].chars().take_while(|c| c.is_alphanumeric() || "/-_${}.".contains(*c)).collect();
        let path: Vec<&str> = path
            .trim_end_matches('.')
            .split('/')
            .map(|part| match part {
                "{stage}" | "$STAGE" => "extract",
                "{name}" => "retention",
                part if part.starts_with(['$', '{']) => ID,
                part => part,
            })
            .collect();
        let methods = [Method::POST, Method::PUT, Method::DELETE];
        let method = methods.into_iter().find(|method| words[..place].contains(&method.as_str()));
        found.push((method.unwrap_or(Method::GET), path.join("/")));
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_serves_every_address() {
    let db = TestDb::sqlite();
    let server = TestServer::new(&db).await;
    // Without a token: nothing is changed, and an unknown path is still refused as such.
    let http = landfall_server::outbound::client();
    let mut seen = 0;
    for (name, text) in runbooks() {
        for line in shell_lines(&text).into_iter().chain(inline(&text)) {
            for (method, path) in addresses(&line) {
                seen += 1;
                let answer =
                    http.request(method.clone(), format!("{}{path}", server.base)).send().await.unwrap();
                let status = answer.status().as_u16();
                assert!([200, 401].contains(&status), "{name}: {method} {path} is answered with {status}");
            }
        }
    }
    assert!(seen > 10, "there are addresses to check: {seen}");
    server.stop().await;
}

#[test]
fn every_setting_exists() {
    let known = std::fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    for (name, text) in runbooks() {
        for word in inline(&text) {
            let setting = word.split(['=', ' ']).next().unwrap_or_default();
            let looks_like_one = setting.len() > 4
                && setting.contains('_')
                && setting.chars().all(|c| c.is_ascii_uppercase() || c == '_');
            // Codes look the same; they are in another document.
            let codes = std::fs::read_to_string(root().join("docs/errors.md")).unwrap();
            if looks_like_one && !codes.contains(&format!("`{setting}`")) {
                assert!(known.contains(&format!("`{setting}`")), "{name}: {setting}");
            }
        }
    }
}

#[test]
fn every_link_has_a_target() {
    for (name, text) in runbooks() {
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, chapter) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { name.as_str() } else { file };
            let path = root().join("docs/runbooks").join(file);
            assert!(path.exists(), "{name}: {target}");
            let anchors = || {
                let text = std::fs::read_to_string(&path).unwrap();
                text.lines().filter(|line| line.starts_with('#')).map(anchor).collect::<Vec<_>>()
            };
            assert!(chapter.is_empty() || anchors().contains(&chapter.to_owned()), "{name}: {target}");
        }
    }
}

/// The anchor that GitHub generates for a heading.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().replace(' ', "-")
}

/// The alerts of the program, by the part of their names before the colon.
fn alerts_in_the_code() -> BTreeSet<String> {
    let code =
        std::fs::read_to_string(root().join("crates/server/src/reports/alerts/conditions.rs")).unwrap();
    let names = code.split("name: ").skip(1).filter_map(|rest| {
        let line = rest.lines().next()?;
        line.split('"').nth(1)?.split(':').next().map(str::to_owned)
    });
    names.collect()
}

fn alerts_of_prometheus() -> BTreeSet<String> {
    let rules = std::fs::read_to_string(root().join("deploy/prometheus/alerts.yml")).unwrap();
    rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).map(str::to_owned).collect()
}

#[test]
fn every_alert_has_its_chapter_and_every_chapter_its_alert() {
    let (ours, prometheus) = (alerts_in_the_code(), alerts_of_prometheus());
    assert!(ours.len() >= 4 && prometheus.len() >= 10, "{ours:?} {prometheus:?}");
    let alerts: BTreeSet<String> = ours.union(&prometheus).cloned().collect();
    let text = std::fs::read_to_string(root().join("docs/runbooks/alerts.md")).unwrap();
    let headings = text.lines().filter(|line| line.starts_with("## "));
    let chapters: BTreeSet<String> = headings.flat_map(inline).collect();
    assert_eq!(chapters, alerts);
}

#[test]
fn the_index_names_every_runbook() {
    let index = std::fs::read_to_string(root().join("docs/runbooks/README.md")).unwrap();
    for (name, _) in runbooks() {
        assert!(name == "README.md" || index.contains(&format!("]({name})")), "{name}");
    }
}
