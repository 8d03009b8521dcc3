//! Which hosts the server answers for, where it says that it can be reached, and the headers of its responses.

use landfall_server::config::{Config, Variables};
use reqwest::Method;
use serde_json::json;

use crate::support::process::Process;
use crate::support::{ApiResponse, Client, Setup, TestDb, TestServer, config, until};

const QUOTA: &str = "/api/v2/uploads/quota";

async fn ask(client: &Client, host: &str, path: &str) -> ApiResponse {
    client.send(client.request(Method::GET, path).header("Host", host)).await
}

async fn upload_url(client: &Client, headers: &[(&str, &str)]) -> String {
    let mut request = client.request(Method::POST, "/api/v2/uploads/files/init");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let ticket = client.send(request.json(&json!({ "fileName": "a.txt", "fileSize": 4 }))).await.ok();
    ticket["uploadUrl"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_on_loopback_answers_only_for_loopback() {
    let db = TestDb::sqlite();
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    for host in ["localhost", "LOCALHOST:8080", "localhost.:1", "127.0.0.1", "127.0.0.9:3002", "[::1]:3002"] {
        ask(&alice, host, QUOTA).await.ok();
    }
    for host in [
        "evil.example",
        "evil.example:3002",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "192.0.2.1",
        "10.0.0.5:3002",
    ] {
        let refused = ask(&alice, host, QUOTA).await.refused(421, "UNKNOWN_HOST");
        assert!(refused["message"].as_str().unwrap().contains("PUBLIC_URL"), "{refused}");
        // What the page of another site could send.
        ask(&alice, host, "/").await.refused(421, "UNKNOWN_HOST");
        // A probe or Prometheus calls by any address.
        for path in ["/healthz", "/metrics"] {
            let asked =
                alice.http.get(format!("{}{path}", server.base)).header("Host", host).send().await.unwrap();
            assert_eq!(asked.status(), 200, "{path} for {host}");
        }
    }
    assert!(
        upload_url(&alice, &[("Host", "localhost:8080")]).await.starts_with("http://localhost:8080/api/")
    );
}

/// Sends the bytes of a request and returns the first line of the response.
async fn raw(server: &TestServer, request: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let address = server.base.strip_prefix("http://").unwrap();
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).await.unwrap();
    text.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_names_its_host_once_and_no_other_in_its_first_line() {
    let db = TestDb::sqlite();
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let good = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(raw(&server, good).await, "HTTP/1.1 200 OK");
    for bad in [
        "GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: \r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: evil.example/localhost\r\nConnection: close\r\n\r\n",
    ] {
        let line = raw(&server, bad).await;
        assert!(line.contains(" 421 ") || line.contains(" 400 "), "{line} for {bad}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_public_url_links_begin_with_it_and_other_hosts_are_refused() {
    let db = TestDb::sqlite();
    let setup = Setup::default().with("ROLE", "api").with("PUBLIC_URL", "https://files.example.com/");
    let server = setup.with("TRUSTED_PROXIES", "127.0.0.1").start(&db).await;
    let alice = server.client("alice");
    let by_proxy = async |host: &str| {
        let request = alice.request(Method::GET, QUOTA).header("Host", host);
        alice.send(request.header("X-Forwarded-For", "192.0.2.1")).await
    };
    for host in ["files.example.com", "FILES.example.com:443", "files.example.com."] {
        by_proxy(host).await.ok();
    }
    for host in ["files.example.com:80", "evil.example", "example.com", "localhost", "127.0.0.1", "192.0.2.1"]
    {
        by_proxy(host).await.refused(421, "UNKNOWN_HOST");
    }
    // The command line on this machine.
    ask(&alice, "127.0.0.1:3002", QUOTA).await.ok();
    for host in ["127.0.0.1:3002", "files.example.com"] {
        let url = upload_url(&alice, &[("Host", host)]).await;
        assert!(url.starts_with("https://files.example.com/api/v2/uploads/blobs/"), "{url}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_declared_proxy_is_believed_that_a_client_came_by_https() {
    let db = TestDb::sqlite();
    let said = [("X-Forwarded-For", "192.0.2.1"), ("X-Forwarded-Proto", "https")];
    let headers = async |server: &TestServer, said: &[(&str, &str)]| {
        let mut request = server.client("alice").http.get(format!("{}/", server.base));
        for (name, value) in said {
            request = request.header(*name, *value);
        }
        request.send().await.unwrap().headers().clone()
    };
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let undeclared = headers(&server, &said).await;
    assert!(!undeclared.contains_key("strict-transport-security"));
    assert!(upload_url(&server.client("alice"), &said).await.starts_with("http://"));
    server.stop().await;

    let server = Setup::default().with("ROLE", "api").with("TRUSTED_PROXIES", "loopback").start(&db).await;
    let declared = headers(&server, &said).await;
    assert_eq!(declared["strict-transport-security"], "max-age=63072000");
    assert!(upload_url(&server.client("alice"), &said).await.starts_with("https://"));
    let plain = headers(&server, &[("X-Forwarded-For", "192.0.2.1"), ("X-Forwarded-Proto", "http")]).await;
    assert!(!plain.contains_key("strict-transport-security"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_response_keeps_other_pages_away() {
    let db = TestDb::sqlite();
    let server = Setup::default().start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("page.html", b"<script>alert(1)</script>Words about the sea").await;
    until("it is ready", async || alice.status(&file).await == "ready").await;
    let download = format!("/api/v2/uploads/files/{file}/download");
    let text = format!("/api/v2/uploads/files/{file}/text");
    let result = format!("/api/v2/uploads/files/{file}/result");
    let job = format!("/api/jobs/{file}/download");
    let paths =
        ["/", "/assets/icon.svg", "/console/files", "/api/docs/index.html", "/nothing", QUOTA, "/healthz"];
    for path in paths.into_iter().chain([download.as_str(), &text, &result, &job]) {
        let response = alice.request(Method::GET, path).send().await.unwrap();
        let headers = response.headers();
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{path}: {policy}"
        );
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(headers["referrer-policy"], "no-referrer", "{path}");
        assert_eq!(headers["cross-origin-opener-policy"], "same-origin", "{path}");
        assert_eq!(headers["cross-origin-resource-policy"], "same-origin", "{path}");
        assert!(headers["permissions-policy"].to_str().unwrap().contains("camera=()"), "{path}");
        // What users or their files wrote runs nowhere, even if a browser is made to show it.
        if !paths[..4].contains(&path) {
            assert!(policy.contains("sandbox"), "{path}: {policy}");
        }
    }
    for path in [&download, &result, &job] {
        let response = alice.request(Method::GET, path).send().await.unwrap();
        assert!(
            response.headers()["content-disposition"].to_str().unwrap().starts_with("attachment"),
            "{path}"
        );
    }
}

#[test]
fn an_address_that_others_reach_needs_tls_or_a_declared_proxy() {
    let db = TestDb::sqlite();
    let secret = ("JWT_SECRET", "a secret that is long enough to be one");
    for address in ["0.0.0.0", "::", "192.0.2.1"] {
        let mut variables = Variables::default();
        variables.set("BIND_ADDRESS", address);
        assert!(Config::from_variables(variables).is_err(), "{address}");
        let mut command = Process::command(&db);
        command.env("BIND_ADDRESS", address).env(secret.0, secret.1).env("PORT", "0").arg("serve");
        let ended = command.stderr(std::process::Stdio::piped()).output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{said}");
        for name in ["BIND_ADDRESS", "TLS_CERT", "TLS_KEY", "TRUSTED_PROXIES"] {
            assert!(said.contains(name), "{name} in {said}");
        }
    }
    // A process that serves no clients listens on no such address.
    for role in ["worker", "maintenance"] {
        config(&db, &[("BIND_ADDRESS", "0.0.0.0".to_owned()), ("ROLE", role.to_owned())]);
    }
    config(&db, &[("BIND_ADDRESS", "0.0.0.0".to_owned()), ("TRUSTED_PROXIES", "private".to_owned())]);
}
