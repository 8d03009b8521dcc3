//! The pages in a real browser: they work, and nothing in them breaks their own policy.

use axum::response::Html;
use axum::routing::get;
use landfall_server::config::{Config, Variables};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::support::chromium::Shown;
use crate::support::{Setup, TestDb};

async fn open(url: String) -> Option<Shown> {
    tokio::task::spawn_blocking(move || Shown::open(&url)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_runs_under_its_policy() {
    let db = TestDb::sqlite();
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let Some(page) = open(server.base.clone()).await else { return };
    assert_eq!(page.console, "", "a violation of the policy is written to the console");
    assert!(page.dom.contains("Sign in to Landfall"), "its script ran and asks who it is: {}", page.dom);
    assert!(page.dom.contains("Sign in with a token"), "{}", page.dom);
    assert!(!page.dom.contains("aria-label=\"Screens\""), "nobody is signed in: {}", page.dom);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_the_api_runs_under_its_policy() {
    let db = TestDb::sqlite();
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let Some(page) = open(format!("{}/api/docs/index.html", server.base)).await else { return };
    assert_eq!(page.console, "");
    assert!(
        page.dom.contains("/api/v2/uploads/batches"),
        "its script ran and shows the routes: {}",
        page.dom
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_violation_of_a_policy_would_be_seen() {
    let inline =
        "<body><p id=\"quiet\" hidden></p><script>document.getElementById('quiet').hidden = false</script>";
    let page = async move || ([("Content-Security-Policy", "default-src 'none'")], Html(inline));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let settings = Config::from_variables(Variables::default()).unwrap().http;
        let router = axum::Router::new().route("/", get(page));
        landfall_server::http::serve(listener, router, &settings, CancellationToken::new()).await;
    });
    let Some(page) = open(url).await else { return };
    assert!(page.console.contains("Content Security Policy"), "{}", page.console);
    assert!(!page.shows("quiet"), "{}", page.dom);
}
