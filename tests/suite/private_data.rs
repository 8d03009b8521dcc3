//! What the program writes is for its own user alone, and its tokens stay on this machine.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::process::Process;
use crate::support::{Client, TestDb, on_each_database, until};

/// Everything below a folder that other users may use.
fn open_to_others(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let metadata = entry.metadata().expect("it is there");
            if metadata.mode() & 0o077 != 0 && !metadata.file_type().is_symlink() {
                found.push(format!("{} {:o}", entry.path().display(), metadata.mode() & 0o7777));
            }
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    found
}

/// With all its data in a folder that the server itself creates.
fn in_new_folder(db: &TestDb) -> Vec<(&'static str, String)> {
    let data = db.folder.path().join("new");
    let mut variables = vec![("DATA_DIR", data.display().to_string())];
    if db.url.starts_with("sqlite:") {
        variables.push(("DATABASE_URL", format!("sqlite://{}/landfall.db", data.display())));
    }
    variables
}

#[on_each_database]
async fn all_data_of_a_server_is_for_its_own_user_alone(db: TestDb) {
    let variables = in_new_folder(&db);
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let process = Process::start(&db, &variables);
    let client: Client = process.client();
    let file = client.upload("a.txt", b"The harbour is closed to strangers.").await;
    until("it is ready", async || client.status(&file).await == "ready").await;
    let data = db.folder.path().join("new");
    assert_eq!(std::fs::metadata(&data).expect("it is there").mode() & 0o777, 0o700);
    assert!(std::fs::read_dir(&data).expect("a folder").count() >= 3, "there is something to look at");
    assert_eq!(open_to_others(&data), Vec::<String>::new());
}

#[on_each_database]
async fn a_folder_that_others_can_use_is_named_at_the_start_with_the_command(db: TestDb) {
    let variables = in_new_folder(&db);
    let data = db.folder.path().join("new");
    std::fs::create_dir(&data).expect("it is made");
    for folder in [db.folder.path(), data.as_path()] {
        std::fs::set_permissions(folder, Permissions::from_mode(0o755)).expect("its mode");
    }
    let log = db.folder.path().join("log");
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let process =
        Process::start_with_log(&db, &variables, Stdio::from(std::fs::File::create(&log).expect("a file")));
    let command = format!("chmod -R go= '{}'", data.display());
    until("it is named", async || std::fs::read_to_string(&log).expect("the log").contains(&command)).await;
    drop(process);
}

#[tokio::test]
async fn a_server_prints_a_link_that_signs_in_on_a_terminal_only() {
    let db = TestDb::sqlite();
    let mut child = Process::command(&db).arg("serve").stdout(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let printed: Vec<String> = lines.map(|line| line.expect("text")).take(2).collect();
    child.kill().expect("it was running");
    child.wait().expect("it ended");
    assert!(printed[0].contains("listening on http://"), "{printed:?}");
    assert!(printed[1].contains("landfall open"), "{printed:?}");
    assert!(!printed.concat().contains("/#"), "{printed:?}");

    let program = format!("{} serve", env!("CARGO_BIN_EXE_landfall"));
    let mut terminal = Command::new("script")
        .args(["--quiet", "--return", "--command", &program, "/dev/null"])
        .current_dir(db.folder.path())
        .env_clear()
        .envs(db.variables())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("util-linux has `script`");
    let mut shown = String::new();
    let mut out = terminal.stdout.take().expect("piped");
    let mut bytes = [0; 4_096];
    while !shown.contains("/#open=") {
        let read = out.read(&mut bytes).expect("output");
        assert!(read > 0, "no link on the terminal: {shown}");
        shown.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    terminal.kill().expect("it was running");
    terminal.wait().expect("it ended");
}

#[test]
fn no_token_that_is_made_here_is_sent_to_another_machine() {
    let db = TestDb::sqlite();
    for secret in [Some("4f1c0b6e9d2a8375c1e0f94b7a6d3528"), None] {
        let mut command = Process::command(&db);
        command.args(["files"]).env("LANDFALL_URL", "http://landfall.example:3002");
        command.envs(secret.map(|secret| ("JWT_SECRET", secret)));
        let output = command.stderr(Stdio::piped()).output().expect("the program runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("a token is needed for http://landfall.example:3002"), "{said}");
    }
}

#[test]
fn settings_are_read_from_the_current_folder_only() {
    let db = TestDb::sqlite();
    let below = db.folder.path().join("below");
    std::fs::create_dir(&below).expect("it is made");
    let port = |folder: &Path| {
        let mut command = Process::command(&db);
        command.env_remove("PORT").current_dir(folder).args(["config", "--json"]);
        let output = command.stderr(Stdio::piped()).output().expect("the program runs");
        (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let file = db.folder.path().join(".env");
    std::fs::write(&file, "PORT=4747\n").expect("it is written");
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("its mode");
    assert!(port(db.folder.path()).0.contains("4747"));
    assert!(!port(&below).0.contains("4747"), "a folder above may belong to another user");
    std::fs::set_permissions(&file, Permissions::from_mode(0o666)).expect("its mode");
    let (shown, said) = port(db.folder.path());
    assert!(!shown.contains("4747") && said.contains("chmod go-w .env"), "{shown} {said}");
}
