//! Keys are derived from a secret that is not in the database, and what is secret in the database is encrypted with it.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use landfall_core::clock::Clock;
use landfall_server::app::{App, Replacements};
use landfall_store::{Db, Error, args};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::fault_injector::{Break, PlannedFaults};
use crate::support::fixture::{Fixture, text};
use crate::support::hooks::{self, Hook, WEBHOOKS};
use crate::support::offline_app::Sql;
use crate::support::webhook_receiver::Receiver;
use crate::support::{
    Client, Script, Setup, TestDb, TestServer, config, manual_clock, on_each_database, until,
};

const ONE: &str = "0f3c9a51e7b2486d9c04f1ab37d5e8620f3c9a51e7b2486d9c04f1ab37d5e8aa";
const OTHER: &str = "b81d4e7203fa9c65718e2bd40c9fa3567e1d05c8f2a94b63d7e80a1f5c2b9d44";

/// Everything in the database that could hold the secret of a webhook, as text.
async fn everything_secret(db: &Db) -> String {
    let mut tx = db.read().await.expect("a connection");
    let webhooks: Vec<(Vec<u8>, Option<Vec<u8>>)> =
        tx.rows("SELECT secret, old_secret FROM webhooks", args![]).await.expect("rows");
    let answers: Vec<(Option<Value>,)> =
        tx.rows("SELECT answer FROM idempotency_keys", args![]).await.expect("rows");
    let kept: Vec<(String, Vec<u8>)> =
        tx.rows("SELECT name, value FROM secrets", args![]).await.expect("rows");
    let bytes = webhooks.iter().flat_map(|(one, old)| [Some(one), old.as_ref()]).flatten();
    let bytes: Vec<String> = bytes.chain(kept.iter().map(|(_, value)| value)).map(hex::encode).collect();
    format!("{} {answers:?}", bytes.join(" "))
}

/// The forms in which a secret could be in a database.
fn forms(secret: &str) -> [String; 2] {
    let bare = secret.strip_prefix("whsec_").expect("a secret of a webhook");
    [bare.to_owned(), hex::encode(BASE64_STANDARD.decode(bare).expect("base64"))]
}

async fn assert_not_in_the_database(db: &Db, secret: &str) {
    let all = everything_secret(db).await;
    for form in forms(secret) {
        assert!(!all.contains(&form), "{secret} is in the database: {all}");
    }
}

/// SQLite must not leave in its files what it has overwritten.
fn assert_not_in_the_files(db: &TestDb, secret: &str) {
    let Some(file) = db.url.strip_prefix("sqlite://") else { return };
    let bytes = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").expect("a secret")).expect("base64");
    for ending in ["", "-wal"] {
        let content = std::fs::read(format!("{file}{ending}")).unwrap_or_default();
        for form in [&bytes[..], secret.as_bytes()] {
            assert!(!content.windows(form.len()).any(|part| part == form), "a secret is in {file}{ending}");
        }
    }
}

async fn start(db: &TestDb, variables: &[(&'static str, String)]) -> Result<App, Error> {
    let replacements = Replacements {
        clock: Some(Clock::Manual(manual_clock())),
        work: Some(Script::new()),
        ..Replacements::default()
    };
    Box::pin(App::start(config(db, variables), replacements)).await
}

fn with_key(key: &str) -> Vec<(&'static str, String)> {
    vec![("SECRET_KEY", key.to_owned())]
}

async fn register(client: &Client, key: &str, url: &str) -> Value {
    let request = client.request(Method::POST, WEBHOOKS).json(&json!({ "url": url }));
    let answer = client.send(request.header("idempotency-key", key)).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.body
}

async fn assert_signs(server: &TestServer, receiver: &Receiver, hook: &Hook) {
    let before = receiver.calls().len();
    hook.test().await;
    until("it arrives", async || receiver.calls().len() > before).await;
    assert!(receiver.calls().last().expect("a call").is_signed_with(&hook.secret));
    assert_not_in_the_database(&server.app.db, &hook.secret).await;
}

#[on_each_database]
async fn the_secret_of_a_webhook_is_nowhere_in_the_database(db: TestDb) {
    let clock = manual_clock();
    let server = hooks::server(&db, &clock).await;
    let receiver = Receiver::serve([]).await;
    let client = server.client("alice");

    let registered = register(&client, "a key", &receiver.url).await;
    let again = register(&client, "a key", &receiver.url).await;
    assert_eq!(registered, again, "a repeated request gets the same answer");
    let id = text(&registered["id"]).to_owned();
    let mut hook = Hook { client: client.clone(), id, secret: text(&registered["secret"]).to_owned() };
    assert_signs(&server, &receiver, &hook).await;

    let rotate = client.request(Method::POST, &hook.path("/rotate-secret"));
    let rotated = client.send(rotate.header("idempotency-key", "another key")).await.ok();
    let old = std::mem::replace(&mut hook.secret, text(&rotated["secret"]).to_owned());
    assert_ne!(old, hook.secret);
    assert_signs(&server, &receiver, &hook).await;
    assert!(receiver.calls().last().expect("a call").is_signed_with(&old), "the old one signs for a day");
    assert_not_in_the_database(&server.app.db, &old).await;
    server.stop().await;
    for secret in [&old, &hook.secret] {
        assert_not_in_the_files(&db, secret);
    }
}

#[on_each_database]
async fn a_process_with_another_secret_does_not_start_and_says_what_to_set(db: TestDb) {
    start(&db, &with_key(ONE)).await.expect("the first one starts").db.close().await;
    start(&db, &with_key(ONE)).await.expect("one with the same secret starts").db.close().await;
    let refused = start(&db, &with_key(OTHER)).await.err().expect("one with another does not").to_string();
    for said in ["SECRET_KEY to the same value", "SECRET_KEY_PREVIOUS", "docs/secrets.md"] {
        assert!(refused.contains(said), "{refused}");
    }
    // It changed nothing.
    let app = start(&db, &with_key(ONE)).await.expect("the right one still starts");
    // Where the secret is lost, an operator removes the fingerprint, as docs/secrets.md says.
    let remove = "DELETE FROM secrets WHERE name = 'key-fingerprint'";
    assert!(include_str!("../../docs/secrets.md").contains(remove));
    app.db.write(Sql(remove.to_owned(), args![])).await.expect("it is removed");
    app.db.close().await;
    start(&db, &with_key(OTHER)).await.expect("another one starts").db.close().await;
}

#[on_each_database]
async fn a_secret_is_replaced_without_losing_what_it_encrypted(db: TestDb) {
    let receiver = Receiver::serve([]).await;
    let server = hooks::setup().with("SECRET_KEY", ONE).start(&db).await;
    let client = server.client("alice");
    let registered = register(&client, "a key", &receiver.url).await;
    let mut hook = Hook {
        client,
        id: text(&registered["id"]).to_owned(),
        secret: text(&registered["secret"]).to_owned(),
    };
    let ticket = hook.client.register(None, "a.txt", 5).await;
    let url = text(&ticket["uploadUrl"]).to_owned();
    let base = server.base.clone();
    server.stop().await;

    let rotating = || hooks::setup().with("SECRET_KEY", OTHER).with("SECRET_KEY_PREVIOUS", ONE);
    let server = rotating().start(&db).await;
    hook.client = server.client("alice");
    assert_signs(&server, &receiver, &hook).await;
    // A URL that was issued before the rotation is still good.
    hook.client.put(&url.replace(&base, &server.base), "12345").await.ok();
    server.stop().await;

    // From now on the old secret is not needed, and not accepted.
    let server = hooks::setup().with("SECRET_KEY", OTHER).start(&db).await;
    hook.client = server.client("alice");
    assert_signs(&server, &receiver, &hook).await;
    assert_eq!(register(&hook.client, "a key", &receiver.url).await["secret"], hook.secret.as_str());
    server.stop().await;
    assert!(start(&db, &with_key(ONE)).await.is_err());
}

#[on_each_database]
async fn setting_a_secret_for_the_first_time_needs_no_previous_one(db: TestDb) {
    let receiver = Receiver::serve([]).await;
    let server = hooks::setup().start(&db).await;
    let mut hook = Hook::register(&server.client("alice"), &receiver.url).await;
    server.stop().await;
    // First the secret of the tokens is set, then one of its own. The file in the data folder is still there.
    for variables in [vec![("JWT_SECRET", ONE)], vec![("JWT_SECRET", ONE), ("SECRET_KEY", OTHER)]] {
        let setup = variables.iter().fold(hooks::setup(), |setup, (name, value)| setup.with(name, value));
        let server = setup.start(&db).await;
        hook.client = server.client("alice");
        assert_signs(&server, &receiver, &hook).await;
        server.stop().await;
    }
}

#[on_each_database]
async fn a_process_that_runs_on_with_the_old_secret_registers_nothing_that_cannot_be_read(db: TestDb) {
    let old = Setup::default().with("SECRET_KEY", ONE).with("WEBHOOK_ALLOW_PRIVATE", "true").start(&db).await;
    let rotated = vec![("SECRET_KEY", OTHER.to_owned()), ("SECRET_KEY_PREVIOUS", ONE.to_owned())];
    let new = start(&db, &rotated).await.expect("it starts");
    old.client("alice")
        .post(WEBHOOKS, json!({ "url": "http://127.0.0.1:9/" }))
        .await
        .refused(500, "INTERNAL");
    new.db.close().await;
    old.stop().await;
}

#[on_each_database]
async fn a_secret_that_cannot_be_decrypted_is_reported_and_the_rest_works(db: TestDb) {
    let clock = manual_clock();
    let server = hooks::server(&db, &clock).await;
    let receiver = Receiver::serve([]).await;
    let client = server.client("alice");
    let (broken, good) =
        (Hook::register(&client, &receiver.url).await, Hook::register(&client, &receiver.url).await);
    // The secret of another webhook, well encrypted: it is bound to that one.
    let swap = "UPDATE webhooks SET secret = (SELECT secret FROM webhooks WHERE id = $2) WHERE id = $1";
    let id = |hook: &Hook| hook.id.parse::<uuid::Uuid>().expect("an id");
    server.app.db.write(Sql(swap.to_owned(), args![id(&broken), id(&good)])).await.expect("it is swapped");
    server.stop().await;

    let server = hooks::server(&db, &clock).await;
    let client = server.client("alice");
    let (broken, good) = (Hook { client: client.clone(), ..broken }, Hook { client, ..good });
    let delivery = broken.test().await;
    let logged = broken.after(1, &delivery).await;
    assert!(text(&logged["error"]).contains("cannot be decrypted"), "{logged}");
    assert!(!broken.show().await["failingSince"].is_null());
    assert_signs(&server, &receiver, &good).await;
    // A fresh secret mends it.
    let rotated = broken.client.post(&broken.path("/rotate-secret"), json!({})).await.ok();
    let mended = Hook { secret: text(&rotated["secret"]).to_owned(), ..broken };
    let calls = receiver.calls().len();
    until("the retry arrives", async || {
        clock.advance(Duration::from_mins(1));
        receiver.calls().len() > calls
    })
    .await;
    assert!(receiver.calls().last().expect("a call").is_signed_with(&mended.secret));
    server.stop().await;
}

/// The secrets of the webhooks that 0.1.0 had.
fn old_secrets(fixture: &Fixture) -> Vec<String> {
    let webhooks = fixture.expected["webhooks"].as_object().expect("webhooks");
    webhooks.values().filter_map(|webhook| webhook["secret"].as_str()).map(str::to_owned).collect()
}

#[on_each_database]
async fn two_processes_that_upgrade_0_1_0_at_once_encrypt_its_secrets_once(db: TestDb) {
    let fixture = Fixture::unpack(&db).await;
    let secrets = old_secrets(&fixture);
    assert!(!secrets.is_empty());
    let (one, other) = (with_key(ONE), with_key(ONE));
    let (one, other) = tokio::join!(start(&db, &one), start(&db, &other));
    let (one, other) = (one.expect("it starts"), other.expect("so does the other"));
    for secret in &secrets {
        assert_not_in_the_database(&one.db, secret).await;
    }
    let signing = "SELECT COUNT(*) FROM secrets WHERE name <> 'key-fingerprint'";
    let left = one.db.read().await.expect("a connection").number(signing, args![]).await.expect("a number");
    assert_eq!(left, 0, "the old keys have left the database");
    one.db.close().await;
    other.db.close().await;
    for secret in &secrets {
        assert_not_in_the_files(&db, secret);
    }
}

#[on_each_database]
async fn an_upgrade_that_breaks_anywhere_is_finished_by_the_next_start(db: TestDb) {
    let fixture = Fixture::unpack(&db).await;
    let secrets = old_secrets(&fixture);
    let faults = PlannedFaults::new();
    let mut step = 0;
    loop {
        step += 1;
        faults.break_at(step, Break::Permanently);
        let replacements = Replacements {
            clock: Some(Clock::Manual(fixture.clock())),
            work: Some(Script::new()),
            faults: Some(Arc::clone(&faults) as _),
            ..Replacements::default()
        };
        let started = Box::pin(App::start(config(&db, &with_key(ONE)), replacements)).await;
        let Ok(app) = started else { continue };
        faults.reset();
        for secret in &secrets {
            assert_not_in_the_database(&app.db, secret).await;
        }
        app.db.close().await;
        break;
    }
    assert!(step > 10, "the start has that many steps: {step}");
}

#[on_each_database]
async fn answers_that_0_1_0_kept_are_encrypted_and_can_still_be_repeated(db: TestDb) {
    let receiver = Receiver::serve([]).await;
    let server = hooks::setup().with("SECRET_KEY", ONE).start(&db).await;
    let registered = register(&server.client("alice"), "a key", &receiver.url).await;
    let secret = text(&registered["secret"]).to_owned();
    // As 0.1.0 wrote it.
    let bytes = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").expect("a secret")).expect("base64");
    for (sql, values) in [
        ("UPDATE webhooks SET secret = $1", args![bytes]),
        ("UPDATE idempotency_keys SET answer = $1", args![json!({ "answer": registered })]),
        ("DELETE FROM secrets", args![]),
    ] {
        server.app.db.write(Sql(sql.to_owned(), values)).await.expect("it is written");
    }
    assert!(everything_secret(&server.app.db).await.contains(&forms(&secret)[0]));
    server.stop().await;

    let server = hooks::setup().with("SECRET_KEY", ONE).start(&db).await;
    assert_not_in_the_database(&server.app.db, &secret).await;
    let client = server.client("alice");
    assert_eq!(register(&client, "a key", &receiver.url).await, registered);
    let hook = Hook { client, id: text(&registered["id"]).to_owned(), secret };
    assert_signs(&server, &receiver, &hook).await;
    server.stop().await;
    assert_not_in_the_files(&db, &hook.secret);
}
