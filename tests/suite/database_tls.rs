//! PostgreSQL over TLS: with `sslmode=verify-full`, the server has to prove who it is before it learns anything.

use std::path::Path;
use std::process::Stdio;

use landfall_store::args;

use crate::support::certificate::Certificate;
use crate::support::cluster::Cluster;
use crate::support::process::Process;
use crate::support::{TestDb, TestServer};

fn verified(authority: &Path) -> String {
    format!("?sslmode=verify-full&sslrootcert={}", authority.display())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_used_over_tls_by_a_server_that_verifies_its_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Certificate::make_authority(folder.path(), "authority");
    let certificate = authority.issue(folder.path(), "postgres", "DNS:localhost");
    let Some(cluster) = Cluster::start_with_tls(&certificate) else { return };
    let db = cluster.database_at("localhost", &verified(&authority.cert));
    let server = TestServer::new(&db).await;
    let client = server.client("ada");
    let file = client.upload("a.txt", b"Sealed orders, to be opened at sea.").await;
    server.idle().await;
    assert_eq!(client.status(&file).await, "ready");
    let mut tx = server.app.db.read().await.unwrap();
    // Those that it queries with, and the one that wakes it.
    let sql = "SELECT COUNT(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
               WHERE application_name = 'landfall' AND NOT ssl";
    assert_eq!(tx.number(sql, args![]).await.unwrap(), 0, "no connection is plain");
    let all = "SELECT COUNT(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
               WHERE application_name = 'landfall' AND ssl";
    assert!(tx.number(all, args![]).await.unwrap() > 0);
    drop(tx);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_that_does_not_prove_who_it_is_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Certificate::make_authority(folder.path(), "authority");
    let stranger = Certificate::make_authority(folder.path(), "stranger");
    let certificate = authority.issue(folder.path(), "postgres", "DNS:localhost");
    let Some(cluster) = Cluster::start_with_tls(&certificate) else { return };
    let (known, missing) = (verified(&authority.cert), verified(&folder.path().join("missing.pem")));
    let at = |host, parameters: &str| refusal(&cluster.database_at(host, parameters));
    let port = cluster.port;
    for (host, parameters, expected) in [
        (
            "localhost",
            verified(&stranger.cert),
            format!(
                "PostgreSQL at localhost:{port} has a certificate of an authority that this machine does not trust"
            ),
        ),
        (
            "127.0.0.1",
            known.clone(),
            format!("PostgreSQL at 127.0.0.1:{port} has a certificate for another name"),
        ),
        ("localhost", missing, "A file that DATABASE_URL names (sslrootcert, sslcert or sslkey)".to_owned()),
    ] {
        let refused = at(host, &parameters);
        assert!(refused.contains(&expected), "{parameters}: {refused}");
        assert!(!refused.contains("only-this-test-knows"), "the password is not shown: {refused}");
    }
    drop(cluster);

    let Some(plain) = Cluster::start_new() else { return };
    let refused = refusal(&plain.database_at("localhost", &known));
    let expected = format!("PostgreSQL at localhost:{} does not offer TLS", plain.port);
    assert!(refused.contains(&expected), "{refused}");
}

/// What the program says when it cannot open the database.
fn refusal(db: &TestDb) -> String {
    // A command that opens the database and ends, whether it may or not.
    let mut command = Process::command(db);
    let output = command.args(["storage", "show"]).stderr(Stdio::piped()).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}
