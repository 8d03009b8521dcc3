//! The object stores of the tests keep the rules that the tests rely on, and the network before them breaks as told.

use std::time::Duration;

use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::network::{Network, Request};
use crate::support::object_stores::{ALL, Bucket, ObjectStore};

fn is_put(request: &Request) -> bool {
    request.method == "PUT"
}

/// Each store's bucket, and the same behind a network.
async fn buckets() -> Vec<(Bucket, Network, Bucket)> {
    let mut found = Vec::new();
    for store in ALL {
        let Some(bucket) = store.bucket().await else { continue };
        let network = bucket.network().await;
        let behind = bucket.through(&network);
        found.push((bucket, network, behind));
    }
    found
}

#[tokio::test]
async fn an_object_is_written_read_listed_and_removed() {
    for (bucket, network, behind) in buckets().await {
        assert_eq!(bucket.keys().await, [] as [&str; 0]);
        behind.put("a/b", b"bytes").await;
        assert_eq!(behind.get("a/b").await.as_deref(), Some(&b"bytes"[..]), "{:?}", bucket.store);
        assert_eq!(behind.keys().await, ["a/b"], "{:?}", bucket.store);
        behind.remove("a/b").await;
        assert_eq!(bucket.get("a/b").await, None);
        let methods: Vec<_> = network.requests().into_iter().map(|request| request.method).collect();
        assert_eq!(methods, ["PUT", "GET", "GET", "DELETE"], "requests are recognised, bodies are not");
    }
}

#[tokio::test]
async fn a_request_that_was_changed_after_it_was_signed_is_refused() {
    for (bucket, ..) in buckets().await {
        let header = match bucket.store {
            ObjectStore::S3 => ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
            ObjectStore::Azure => ("x-ms-meta-other", "1"),
            ObjectStore::Gcs => ("authorization", "Bearer of.nothing.good"),
        };
        let mut request = bucket.upload("a", b"bytes").build().unwrap();
        request.headers_mut().insert(header.0, header.1.parse().unwrap());
        let response = bucket.http.execute(request).await.unwrap();
        assert!([401, 403].contains(&response.status().as_u16()), "{:?} {}", bucket.store, response.status());
        assert_eq!(bucket.keys().await, [] as [&str; 0]);
    }
}

#[tokio::test]
async fn a_lost_answer_belongs_to_a_request_that_was_done() {
    for (bucket, network, behind) in buckets().await {
        network.lose_answer(2, is_put);
        behind.put("first", b"1").await;
        assert!(behind.upload("second", b"2").send().await.is_err(), "{:?}", bucket.store);
        behind.put("third", b"3").await;
        assert_eq!((network.lost(), bucket.keys().await.len()), (1, 3), "{:?}", bucket.store);
    }
}

#[tokio::test]
async fn a_lost_request_and_one_that_the_network_answered_never_reach_the_store() {
    for (bucket, network, behind) in buckets().await {
        network.lose_request(1, is_put);
        assert!(behind.upload("lost", b"1").send().await.is_err(), "{:?}", bucket.store);
        network.answer(1, 503, "<Error><Code>SlowDown</Code></Error>", is_put);
        let answer = behind.upload("refused", b"1").send().await.unwrap();
        assert_eq!(answer.status(), 503);
        assert!(answer.text().await.unwrap().contains("SlowDown"));
        behind.put("done", b"1").await;
        assert_eq!(bucket.keys().await, ["done"]);
    }
}

#[tokio::test]
async fn an_upload_that_is_cut_in_the_middle_leaves_no_object() {
    for (bucket, network, behind) in buckets().await {
        network.cut_after_sending(1 << 20);
        assert!(behind.upload("large", &vec![7; 4 << 20]).send().await.is_err(), "{:?}", bucket.store);
        assert_eq!((network.lost(), bucket.keys().await.len()), (1, 0), "{:?}", bucket.store);
        behind.put("large", &vec![7; 4 << 20]).await;
        network.cut_after_receiving(1 << 20);
        let response = behind.request(Method::GET, "large", &[], &[], b"").send().await.unwrap();
        assert!(response.bytes().await.is_err(), "{:?}", bucket.store);
        assert_eq!(behind.get("large").await.map(|bytes| bytes.len()), Some(4 << 20));
    }
}

#[tokio::test]
async fn a_network_refuses_connections_and_accepts_them_again() {
    let echo = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let network = Network::before(&echo.local_addr().unwrap().to_string()).await;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = echo.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                drop(tokio::io::copy(&mut from, &mut to).await);
            });
        }
    });
    let connect = || tokio::net::TcpStream::connect(network.address);
    let mut stream = connect().await.unwrap();
    network.delay(Duration::from_millis(1));
    // Not HTTP: it passes all the same.
    stream.write_all(b"\0one").await.unwrap();
    let mut read = [0; 4];
    stream.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"\0one");
    for _ in 0..3 {
        network.refuse();
        assert!(stream.read_exact(&mut read).await.is_err(), "it was cut");
        assert_eq!(connect().await.unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
        network.restore();
        stream = connect().await.unwrap();
    }
    network.hold();
    stream.write_all(b"\0two").await.unwrap();
    let held = tokio::time::timeout(Duration::from_millis(50), stream.read_exact(&mut read)).await;
    assert!(held.is_err(), "nothing passes");
    network.restore();
    stream.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"\0two");
    network.cut();
    assert!(stream.read_exact(&mut read).await.is_err());
}
