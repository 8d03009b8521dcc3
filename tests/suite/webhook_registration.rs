//! Who may register which webhooks, and which addresses a webhook may never use.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use futures_util::future::join_all;
use landfall_server::delivery::webhooks::target::Names;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::hooks::{Hook, WEBHOOKS, server, setup};
use crate::support::webhook_receiver::{Receiver, Reply};
use crate::support::{Script, Setup, TestDb, manual_clock, on_each_database};

#[on_each_database]
async fn a_secret_is_shown_only_when_it_is_created(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let alice = server.client("alice");
    let body = json!({ "url": "https://example.com/hook?key=1", "description": "for the archive", "eventTypes": ["batch:completed"] });
    let send = async |body: &Value| {
        alice.send(alice.request(Method::POST, WEBHOOKS).header("Idempotency-Key", "k").json(body)).await
    };
    let first = send(&body).await;
    assert_eq!(first.status, 201);
    let first = first.ok();
    assert!(first["secret"].as_str().unwrap().starts_with("whsec_"), "{first}");
    assert_eq!((&first["scope"], &first["enabled"]), (&json!("own"), &json!(true)));
    assert_eq!(send(&body).await.ok(), first, "the same request is the same webhook");
    send(&json!({ "url": "https://example.com/other" })).await.refused(422, "IDEMPOTENCY_KEY_REUSED");

    let id = first["id"].as_str().unwrap();
    let rotated = alice.post(&format!("{WEBHOOKS}/{id}/rotate-secret"), json!({})).await.ok();
    let (old, new) = (first["secret"].as_str().unwrap(), rotated["secret"].as_str().unwrap());
    let shown = alice.get(&format!("{WEBHOOKS}/{id}")).await.ok();
    assert_eq!((&shown["url"], &shown["description"]), (&body["url"], &body["description"]));
    assert_eq!(shown["eventTypes"], json!(["batch:completed"]));
    let listed = alice.get(WEBHOOKS).await.ok();
    assert_eq!(listed["webhooks"].as_array().unwrap().len(), 1);
    alice.post(&format!("{WEBHOOKS}/{id}/test"), json!({})).await.ok();
    let log = alice.get(&format!("{WEBHOOKS}/{id}/deliveries")).await.ok();
    for answer in [shown, listed, log] {
        let text = answer.to_string();
        assert!(!text.contains("whsec_") && !text.contains(&old[6..]) && !text.contains(&new[6..]), "{text}");
    }
}

#[on_each_database]
async fn an_invalid_webhook_is_refused(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let alice = server.client("alice");
    let url = "https://example.com";
    for (body, status, code) in [
        (json!({}), 400, "INVALID_REQUEST"),
        (json!({ "url": url, "surprise": 1 }), 400, "INVALID_REQUEST"),
        (json!({ "url": "ftp://example.com" }), 400, "INVALID_WEBHOOK_URL"),
        (json!({ "url": "https://me:hush@example.com" }), 400, "INVALID_WEBHOOK_URL"),
        (json!({ "url": url, "eventTypes": [] }), 400, "INVALID_EVENT_TYPE"),
        (json!({ "url": url, "eventTypes": ["file:danced"] }), 400, "INVALID_EVENT_TYPE"),
        (
            json!({ "url": url, "eventTypes": ["batch:completed", "batch:completed"] }),
            400,
            "INVALID_EVENT_TYPE",
        ),
        (json!({ "url": url, "eventTypes": ["circuit:changed"] }), 400, "INVALID_EVENT_TYPE"),
        (json!({ "url": url, "description": "x".repeat(501) }), 400, "INVALID_REQUEST"),
        (json!({ "url": url, "description": "a\u{0}b" }), 400, "INVALID_REQUEST"),
        (json!({ "url": url, "scope": "mine" }), 400, "INVALID_REQUEST"),
        (json!({ "url": url, "scope": "all" }), 403, "FORBIDDEN"),
    ] {
        let answer = alice.post(WEBHOOKS, body.clone()).await;
        assert_eq!((answer.status, answer.code()), (status, code), "{body}");
    }
    let hook = Hook::register(&alice, url).await;
    hook.change(json!({ "url": "nonsense" })).await.refused(400, "INVALID_WEBHOOK_URL");
    hook.change(json!({ "eventTypes": ["alert:raised"] })).await.refused(400, "INVALID_EVENT_TYPE");
    hook.change(json!({ "secret": "mine" })).await.refused(400, "INVALID_REQUEST");
    alice.get(&hook.path("/deliveries?status=lost")).await.refused(400, "INVALID_REQUEST");
    alice.get(&hook.path("/deliveries?cursor=x")).await.refused(400, "INVALID_CURSOR");
    for id in ["x", "0189d5c2-0000-7000-8000-000000000000"] {
        alice.get(&format!("{WEBHOOKS}/{id}")).await.refused(404, "WEBHOOK_NOT_FOUND");
    }
    let all = json!({ "url": url, "scope": "all", "eventTypes": ["circuit:changed"] });
    Hook::register_as(&server.admin(), all).await;
}

#[on_each_database]
async fn a_change_of_a_webhook_affects_only_the_named_fields(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let body =
        json!({ "url": "https://example.com", "description": "one", "eventTypes": ["batch:completed"] });
    let hook = Hook::register_as(&server.client("alice"), body).await;
    let before = hook.show().await;
    assert_eq!(hook.change(json!({})).await.ok(), before);
    let changed = hook
        .change(json!({ "url": "https://example.org/x", "description": null, "eventTypes": null }))
        .await
        .ok();
    assert_eq!((&changed["url"], &changed["description"]), (&json!("https://example.org/x"), &Value::Null));
    assert_eq!((&changed["eventTypes"], &changed["enabled"]), (&Value::Null, &json!(true)));
    let off = hook.change(json!({ "enabled": false })).await.ok();
    assert_eq!((&off["enabled"], &off["disabledReason"]), (&json!(false), &json!("Disabled by alice")));
    assert_eq!(hook.change(json!({ "enabled": false })).await.ok()["disabledAt"], off["disabledAt"]);
    let on = hook.change(json!({ "enabled": true, "eventTypes": ["file:cleaned-up"] })).await.ok();
    assert_eq!((&on["disabledAt"], &on["eventTypes"]), (&Value::Null, &json!(["file:cleaned-up"])));
}

#[on_each_database]
async fn webhooks_of_another_user_are_not_found(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let alice = server.client("alice");
    let hook = Hook::register(&alice, "https://example.com").await;
    let all =
        Hook::register_as(&server.admin(), json!({ "url": "https://example.com", "scope": "all" })).await;
    for (other, hook) in
        [(server.client_of("bob", "alice"), &hook), (server.admin(), &hook), (alice.clone(), &all)]
    {
        for (method, rest) in [
            (Method::GET, ""),
            (Method::DELETE, ""),
            (Method::PATCH, ""),
            (Method::GET, "/deliveries"),
            (Method::POST, "/test"),
            (Method::POST, "/rotate-secret"),
        ] {
            let request = other.request(method, &hook.path(rest)).json(&json!({}));
            other.send(request).await.refused(404, "WEBHOOK_NOT_FOUND");
        }
    }
    let ids = async |client: &crate::support::Client| {
        let listed = client.get(WEBHOOKS).await.ok();
        let all = listed["webhooks"].as_array().unwrap().iter();
        all.map(|one| one["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&alice).await, std::slice::from_ref(&hook.id));
    assert_eq!(ids(&server.admin()).await, std::slice::from_ref(&all.id));
    assert!(ids(&server.client("bob")).await.is_empty());
    let anonymous = crate::support::Client::new(server.base.clone(), "no token".to_owned());
    assert_eq!(anonymous.get(WEBHOOKS).await.status, 401);
}

#[on_each_database]
async fn the_limit_of_webhooks_holds_under_concurrent_requests(db: TestDb) {
    let clock = manual_clock();
    let server = setup().clock(&clock).with("WEBHOOKS_PER_USER", 5).start(&db).await;
    let alice = server.client("alice");
    let asked = (0..20).map(|_| alice.post(WEBHOOKS, json!({ "url": "https://example.com" })));
    let answers = join_all(asked).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 5);
    assert!(answers.iter().all(|answer| answer.status == 201 || answer.code() == "TOO_MANY_WEBHOOKS"));
    let mut seen = HashSet::new();
    let mut query = "?limit=2".to_owned();
    loop {
        let page = alice.get(&format!("{WEBHOOKS}{query}")).await.ok();
        seen.extend(page["webhooks"].as_array().unwrap().iter().map(|one| one["id"].to_string()));
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        query = format!("?limit=2&cursor={cursor}");
    }
    assert_eq!(seen.len(), 5);
    Hook::register(&server.client("bob"), "https://example.com").await;
}

#[on_each_database]
async fn a_private_address_is_refused_by_number_and_by_name(db: TestDb) {
    let server = Setup::default().work(Script::new()).names(resolver(&["1.1.1.1"])).start(&db).await;
    let alice = server.client("alice");
    let good = Hook::register(&alice, "https://example.com/hook").await;
    for url in [
        "http://127.0.0.1:9/",
        "http://2130706433/",
        "http://0177.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:10.0.0.1]/",
        "http://[fd00::1]/",
    ] {
        alice.post(WEBHOOKS, json!({ "url": url })).await.refused(400, "PRIVATE_WEBHOOK_ADDRESS");
        good.change(json!({ "url": url })).await.refused(400, "PRIVATE_WEBHOOK_ADDRESS");
    }
    server.stop().await;
    // Names of the local system.
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    alice
        .post(WEBHOOKS, json!({ "url": "http://localhost:9/" }))
        .await
        .refused(400, "PRIVATE_WEBHOOK_ADDRESS");
    let unknown = alice.post(WEBHOOKS, json!({ "url": "http://there-is-no-such-host.invalid/" })).await;
    assert_eq!(unknown.refused(400, "UNKNOWN_WEBHOOK_HOST")["retryable"], true);
}

#[on_each_database]
async fn an_address_that_becomes_private_later_is_not_connected_to(db: TestDb) {
    let clock = manual_clock();
    let receiver = Receiver::serve([]).await;
    let port = receiver.url.rsplit(':').next().unwrap().to_owned();
    let by_name = format!("http://rebound.example.com:{port}");
    // Registered by number while it was allowed.
    let before = server(&db, &clock).await;
    let numbered = Hook::register(&before.client("alice"), &receiver.url).await;
    before.stop().await;
    // Registered while the name resolved to another address.
    let rebound = Arc::new(AtomicBool::new(false));
    let names: Names = {
        let rebound = rebound.clone();
        Arc::new(move |_| {
            let address: IpAddr =
                if rebound.load(Ordering::SeqCst) { [127, 0, 0, 1] } else { [1, 1, 1, 1] }.into();
            async move { Ok(vec![address]) }.boxed()
        })
    };
    let after =
        setup().with("WEBHOOK_ALLOW_PRIVATE", "false").clock(&clock).names(names.clone()).start(&db).await;
    let named = Hook::register(&after.client("alice"), &by_name).await;
    rebound.store(true, Ordering::SeqCst);
    let numbered = Hook { client: after.client("alice"), ..numbered };
    for (hook, host) in [(&numbered, "127.0.0.1"), (&named, "rebound.example.com")] {
        let test = hook.test().await;
        let failed = hook.after(1, &test).await;
        let error = failed["error"].as_str().unwrap();
        // The host as it was registered, and not the address that the name has.
        assert!(error.contains(&format!("the address of {host} is not public")), "{error}");
        assert_eq!((&failed["status"], &failed["responseStatus"]), (&json!("pending"), &Value::Null));
    }
    assert!(receiver.calls().is_empty());
    after.stop().await;
    // The same name works where the operator allows it, and leads to the address that the resolver returns.
    let allowed = setup().clock(&clock).names(names).start(&db).await;
    let named = Hook { client: allowed.client("alice"), ..named };
    named.test().await;
    let calls = receiver.wait_for_calls(1).await;
    assert!(calls[0].is_signed_with(&named.secret));
}

#[on_each_database]
async fn a_proxy_in_the_environment_is_not_used(db: TestDb) {
    use crate::support::process::Process;
    let (proxy, receiver) = (Receiver::serve([]).await, Receiver::serve([]).await);
    proxy.otherwise(Reply::Status(500));
    let address = proxy.url.trim_end_matches("/hook");
    let process = Process::start(
        &db,
        &[
            ("http_proxy", address),
            ("HTTP_PROXY", address),
            ("ALL_PROXY", address),
            ("WEBHOOK_ALLOW_PRIVATE", "true"),
        ],
    );
    let hook = Hook::register(&process.client(), &receiver.url).await;
    let test = hook.test().await;
    assert_eq!(hook.after(1, &test).await["status"], "delivered");
    assert_eq!((receiver.calls().len(), proxy.calls().len()), (1, 0));
}

/// A resolver that returns these addresses for every name.
fn resolver(addresses: &'static [&'static str]) -> Names {
    Arc::new(|_| {
        async { Ok(addresses.iter().map(|text| text.parse().expect("an address")).collect()) }.boxed()
    })
}
