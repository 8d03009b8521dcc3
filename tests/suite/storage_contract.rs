//! What every backend of the storage must keep. A new backend runs [`contract`] on an empty storage.

use std::future::Future;

use tokio::io::AsyncReadExt;
use uuid::Uuid;

use landfall_core::clock::Clock;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_server::blobs::{BlobInfo, BlobReader, Blobs, Stored, Unfinished};
use landfall_server::config::{Config, Variables};
use landfall_store::Error;

use crate::support::object_stores::{Bucket, ObjectStore};

/// Checks one guarantee after the other. Each begins and ends with an empty storage. `keys` are those for the listings.
async fn contract(blobs: &Blobs, keys: &[&str]) {
    blobs.check().await.unwrap();
    a_missing_blob_is_a_typed_error(blobs).await;
    a_published_blob_is_read_whole_and_in_ranges(blobs).await;
    a_large_blob_comes_in_many_writes(blobs).await;
    bytes_are_not_visible_before_they_are_accepted(blobs).await;
    a_blob_is_never_overwritten(blobs).await;
    an_upload_is_unfinished_until_it_is_finished_or_dropped(blobs).await;
    a_listing_is_in_key_order_in_full_pages(blobs, keys).await;
    a_listing_goes_on_after_a_key(blobs, keys).await;
    a_listing_goes_on_while_blobs_are_removed(blobs, keys).await;
    a_file_is_published_while_its_previous_blob_is_removed(blobs).await;
    only_keys_of_ids_are_accepted(blobs).await;
    the_mark_is_replaced_by_compare_and_set(blobs).await;
}

#[tokio::test]
async fn a_local_folder_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    contract(&Blobs::open(folder.path()).await.unwrap(), &KEYS).await;
}

async fn object_store_keeps_the_contract(store: ObjectStore) {
    landfall_server::outbound::client();
    let Some(bucket) = store.bucket().await else { return };
    let spool = tempfile::tempdir().unwrap();
    // SeaweedFS sorts one folder after the other by its names, where S3 sorts whole keys. For keys of ids that is the same.
    let is_plain = |key: &&str| store != ObjectStore::S3 || !key.contains(['-', '_']);
    let keys: Vec<&str> = KEYS.iter().copied().filter(is_plain).collect();
    contract(&connect(&bucket, spool.path()).await, &keys).await;
}

pub async fn connect(bucket: &Bucket, data: &std::path::Path) -> Blobs {
    let mut variables = Variables::default();
    variables.set("DATA_DIR", data.display().to_string());
    for (name, value) in bucket.settings() {
        variables.set(name, value);
    }
    let config = Config::from_variables(variables).unwrap();
    Blobs::connect(&config.storage).await.unwrap()
}

#[tokio::test]
async fn s3_keeps_the_contract() {
    object_store_keeps_the_contract(ObjectStore::S3).await;
}

#[tokio::test]
async fn azure_keeps_the_contract() {
    object_store_keeps_the_contract(ObjectStore::Azure).await;
}

#[tokio::test]
async fn google_cloud_storage_keeps_the_contract() {
    object_store_keeps_the_contract(ObjectStore::Gcs).await;
}

#[tokio::test]
async fn a_local_folder_has_its_blobs_and_its_mark_when_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(folder.path()).await.unwrap();
    put(&blobs, "aa/file/one", b"12345").await;
    assert!(blobs.replace_mark(None, "mine").await.unwrap());
    let again = Blobs::open(folder.path()).await.unwrap();
    assert_eq!(bytes(again.read("aa/file/one").await).await, b"12345");
    assert_eq!(again.mark().await.unwrap().as_deref(), Some("mine"));
}

#[tokio::test]
async fn a_folder_that_is_gone_is_a_failure_and_not_a_missing_blob() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(folder.path()).await.unwrap();
    std::fs::remove_dir_all(folder.path()).unwrap();
    assert!(matches!(blobs.check().await, Err(Error::Storage { .. })));
    assert!(matches!(blobs.receive(Uuid::new_v4(), "aa/file/one").await.err(), Some(Error::Storage { .. })));
}

async fn a_missing_blob_is_a_typed_error(blobs: &Blobs) {
    let key = "aa/file/missing";
    assert_eq!(blobs.head(key).await.unwrap(), None);
    assert_eq!(blobs.size(key).await.unwrap(), None);
    for read in [blobs.read(key).await, blobs.read_range(key, 0..5).await] {
        assert!(matches!(read, Err(Error::BlobMissing { key: missing }) if missing == key));
    }
    blobs.remove(key).await.unwrap();
    // A prefix of a key, or a key below one, is not that key.
    put(blobs, "aa/file/one", b"12345").await;
    for key in ["aa", "aa/file", "aa/file/one/below"] {
        assert_eq!(blobs.size(key).await.unwrap(), None, "{key}");
        assert!(matches!(blobs.read(key).await, Err(Error::BlobMissing { .. })), "{key}");
    }
    remove_all(blobs).await;
}

async fn a_published_blob_is_read_whole_and_in_ranges(blobs: &Blobs) {
    let (key, before) = ("aa/file/one", Clock::System.now());
    let stored = put(blobs, key, b"0123456789").await;
    assert_eq!((stored.size, stored.md5.as_str()), (10, "781e5e245d69b566979b86e28d23f2c7"));
    assert_eq!(stored.sha256, "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882");
    let info = blobs.head(key).await.unwrap().unwrap();
    assert_eq!(info.revision.etag, stored.revision.etag, "what is stored is what is found");
    assert_eq!((info.key.as_str(), info.size), (key, 10));
    // The clock of a storage may differ from this one, and may count in whole seconds.
    assert!((info.written_at - before).abs() < chrono::TimeDelta::hours(1), "{info:?}");
    assert_eq!(blobs.size(key).await.unwrap(), Some(10));
    let reader = blobs.read(key).await;
    assert_eq!(reader.as_ref().unwrap().size(), 10);
    assert_eq!(bytes(reader).await, b"0123456789");
    for (range, expected) in [
        (0..10, "0123456789"),
        (0..1, "0"),
        (3..7, "3456"),
        (9..10, "9"),
        (7..u64::MAX, "789"),
        (5..5, ""),
        (10..20, ""),
        (20..30, ""),
    ] {
        let reader = blobs.read_range(key, range.clone()).await;
        assert_eq!(reader.as_ref().unwrap().size(), expected.len() as u64, "{range:?}");
        assert_eq!(bytes(reader).await, expected.as_bytes(), "{range:?}");
    }
    put(blobs, "aa/file/empty", b"").await;
    assert_eq!(blobs.size("aa/file/empty").await.unwrap(), Some(0));
    assert_eq!(bytes(blobs.read("aa/file/empty").await).await, b"");
    blobs.remove(key).await.unwrap();
    assert!(matches!(blobs.read(key).await, Err(Error::BlobMissing { .. })));
    assert_eq!(blobs.size("aa/file/empty").await.unwrap(), Some(0), "its neighbour stays");
    remove_all(blobs).await;
}

async fn a_large_blob_comes_in_many_writes(blobs: &Blobs) {
    let key = "aa/file/large";
    // Larger than any buffer or part of a backend, and different at every place.
    let content: Vec<u8> = (0..6_000_000_u32).flat_map(u32::to_be_bytes).collect();
    let mut incoming = blobs.receive(Uuid::new_v4(), key).await.unwrap();
    for part in content.chunks(700_001) {
        incoming.write(part).await.unwrap();
    }
    assert_eq!(incoming.size(), content.len() as u64);
    incoming.publish(|_| Ok(())).await.unwrap();
    incoming.finish().await;
    assert!(bytes(blobs.read(key).await).await == content);
    let range = 11_999_999..12_000_777;
    let expected = &content[11_999_999..12_000_777];
    assert!(bytes(blobs.read_range(key, range).await).await == expected);
    remove_all(blobs).await;
}

async fn bytes_are_not_visible_before_they_are_accepted(blobs: &Blobs) {
    let key = "aa/file/one";
    let mut incoming = blobs.receive(Uuid::new_v4(), key).await.unwrap();
    incoming.write(b"12345").await.unwrap();
    assert_is_invisible(blobs, key).await;
    let refused = incoming
        .publish(|stored| {
            assert_eq!(stored.size, 5);
            assert_eq!(stored.md5, "827ccb0eea8a706c4c34a16891f84e7b");
            Err(Refusal::new(RefusalCode::ChecksumMismatch, "They are others"))
        })
        .await;
    assert!(matches!(refused, Err(Error::Refused(refusal)) if refusal.code == RefusalCode::ChecksumMismatch));
    assert_is_invisible(blobs, key).await;
    drop(incoming);
    assert_is_invisible(blobs, key).await;
    unfinished_become(blobs, &[]).await;
}

async fn assert_is_invisible(blobs: &Blobs, key: &str) {
    assert_eq!(blobs.size(key).await.unwrap(), None);
    assert!(matches!(blobs.read(key).await, Err(Error::BlobMissing { .. })));
    assert_eq!(list(blobs, "", None, 10).await, [] as [&str; 0]);
}

/// An object store has no way to remove an entry at once when an upload is dropped. It does so soon.
async fn unfinished_become(blobs: &Blobs, expected: &[Unfinished]) {
    for _ in 0..200 {
        if blobs.unfinished().await.unwrap() == expected {
            return;
        }
        Clock::System.sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(blobs.unfinished().await.unwrap(), expected);
}

async fn a_blob_is_never_overwritten(blobs: &Blobs) {
    let (key, other) = ("aa/file/one", Uuid::new_v4());
    let mut early = blobs.receive(other, key).await.unwrap();
    early.write(b"late").await.unwrap();
    put(blobs, key, b"first").await;
    let mut late = blobs.receive(Uuid::new_v4(), key).await.unwrap();
    late.write(b"later").await.unwrap();
    for mut upload in [early, late] {
        let published = upload.publish(|_| Ok(())).await;
        assert!(matches!(published, Err(Error::BlobExists { key: existing }) if existing == key));
        drop(upload);
        assert_eq!(bytes(blobs.read(key).await).await, b"first");
    }
    unfinished_become(blobs, &[]).await; // no sweep may take the blob for an unfinished one
    // One process cannot receive the same blob twice at once.
    let _first = blobs.receive(other, key).await.unwrap();
    assert!(blobs.receive(other, key).await.is_err());
    remove_all(blobs).await;
}

async fn an_upload_is_unfinished_until_it_is_finished_or_dropped(blobs: &Blobs) {
    let (one, other) = (Uuid::new_v4(), Uuid::new_v4());
    let (kept, left) = (Blobs::key(Uuid::new_v4(), one), Blobs::key(Uuid::new_v4(), other));
    unfinished_become(blobs, &[]).await;
    let mut incoming = blobs.receive(one, &kept).await.unwrap();
    let dropped = blobs.receive(other, &left).await.unwrap();
    let entry = |owner, key: &str| Unfinished { owner, key: key.to_owned() };
    let mut unfinished = blobs.unfinished().await.unwrap();
    unfinished.sort_by_key(|upload| upload.owner != one);
    assert_eq!(unfinished, [entry(one, &kept), entry(other, &left)]);
    drop(dropped);
    unfinished_become(blobs, &[entry(one, &kept)]).await;

    incoming.publish(|_| Ok(())).await.unwrap();
    unfinished_become(blobs, &[entry(one, &kept)]).await; // its row does not know it yet
    incoming.finish().await;
    unfinished_become(blobs, &[]).await;
    assert_eq!(blobs.size(&kept).await.unwrap(), Some(0), "finished, not removed");

    // A process that died leaves its published blob and its entry. Forgetting the entry leaves the blob.
    let mut incoming = blobs.receive(other, &left).await.unwrap();
    incoming.publish(|_| Ok(())).await.unwrap();
    drop(incoming);
    unfinished_become(blobs, &[entry(other, &left)]).await;
    blobs.forget_unfinished(one, &left).await.unwrap();
    unfinished_become(blobs, &[entry(other, &left)]).await; // it is not that process's
    for _ in 0..2 {
        blobs.forget_unfinished(other, &left).await.unwrap();
        unfinished_become(blobs, &[]).await;
    }
    assert_eq!(blobs.size(&left).await.unwrap(), Some(0));

    // Forgotten while it still arrives: its process was taken for dead, and can end it without an error.
    let incoming = blobs.receive(other, &kept).await.unwrap();
    blobs.forget_unfinished(other, &kept).await.unwrap();
    incoming.finish().await;
    unfinished_become(blobs, &[]).await;
    remove_all(blobs).await;
}

/// In the order of whole keys. None is the folder of a file's id, which may be left from an earlier check. A walk that sorts one folder after the other by its bare names would have `a/…` before `a-b`.
const KEYS: [&str; 9] =
    ["a-b/c/d", "a/b-c/d", "a/b/c", "a/b/d", "a/b_c/d", "a0/b/c", "aa/b/c", "az", "b/c/d"];

async fn a_listing_is_in_key_order_in_full_pages(blobs: &Blobs, keys: &[&str]) {
    for (place, key) in keys.iter().enumerate().rev() {
        put(blobs, key, &b"123456789"[..place]).await;
    }
    let arriving = blobs.receive(Uuid::new_v4(), "a/b/z").await.unwrap();
    for limit in [1, 2, 3, 4, 8, 9, 10, usize::MAX] {
        let mut listing = blobs.list("", None);
        let mut place = 0;
        loop {
            let page = listing.next_page(limit).await.unwrap();
            if page.is_empty() {
                break;
            }
            assert_eq!(page.len(), limit.min(keys.len() - place), "a page is full unless it is the last");
            for BlobInfo { key, size, .. } in page {
                assert_eq!((key.as_str(), size), (keys[place], place as u64), "in pages of {limit}");
                place += 1;
            }
        }
        assert_eq!(place, keys.len(), "in pages of {limit}");
        assert_eq!(listing.next_page(limit).await.unwrap(), [], "the end stays the end");
    }
    for prefix in ["a", "a/b", "aa", "a/b/c/d", "nothing", "b/c"] {
        let expected = below(keys, prefix, "");
        assert_eq!(list(blobs, prefix, None, 2).await, expected, "below {prefix}");
    }
    drop(arriving);
    remove_all(blobs).await;
}

async fn a_listing_goes_on_after_a_key(blobs: &Blobs, keys: &[&str]) {
    for key in keys {
        put(blobs, key, b"").await;
    }
    for (place, key) in keys.iter().enumerate() {
        assert_eq!(list(blobs, "", Some(key), 2).await, keys[place + 1..], "after {key}");
    }
    let is_whole_order = keys.len() == KEYS.len();
    for after in ["", "a", "a/b", "a/b/cc", "a/b/zz", "aaa", "c"] {
        let is_folder =
            keys.iter().any(|key| key.strip_prefix(after).is_some_and(|rest| rest.starts_with('/')));
        if is_folder && !is_whole_order {
            // SeaweedFS begins behind all that is in it. Only keys of blobs are ever asked for.
            continue;
        }
        assert_eq!(list(blobs, "", Some(after), 3).await, below(keys, "", after), "after {after:?}");
    }
    for (prefix, after) in [("a", "a/b/c"), ("a", "b"), ("b", "a/b/c")] {
        assert_eq!(list(blobs, prefix, Some(after), 1).await, below(keys, prefix, after), "{prefix} {after}");
    }
    // A page that the caller stopped waiting for comes again.
    let mut listing = blobs.list("", None);
    let first = listing.next_page(2).await.unwrap();
    let second = match drop_after_first_poll(listing.next_page(3)).await {
        // It was there at once, so the caller has it.
        Some(page) => page.unwrap(),
        None => listing.next_page(3).await.unwrap(),
    };
    let listed: Vec<_> = first.iter().chain(&second).map(|blob| blob.key.as_str()).collect();
    assert_eq!(listed, keys[..5]);
    remove_all(blobs).await;
}

async fn a_listing_goes_on_while_blobs_are_removed(blobs: &Blobs, keys: &[&str]) {
    for key in keys {
        put(blobs, key, b"").await;
    }
    let mut listing = blobs.list("", None);
    let mut removed = 0;
    loop {
        let page = listing.next_page(2).await.unwrap();
        if page.is_empty() {
            break;
        }
        for blob in page {
            blobs.remove(&blob.key).await.unwrap();
            removed += 1;
        }
    }
    assert_eq!(removed, keys.len());
    assert_eq!(list(blobs, "", None, 1).await, [] as [&str; 0]);
    // What was removed since the last page is not listed, or is: but it fails no page.
    for key in keys {
        put(blobs, key, b"").await;
    }
    let mut listing = blobs.list("", None);
    listing.next_page(2).await.unwrap();
    remove_all(blobs).await;
    listing.next_page(usize::MAX).await.unwrap();
}

/// The keys below a prefix that come after a key.
fn below<'a>(keys: &[&'a str], prefix: &str, after: &str) -> Vec<&'a str> {
    let is_below =
        |key: &str| prefix.is_empty() || key.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'));
    keys.iter().copied().filter(|key| is_below(key) && *key > after).collect()
}

async fn a_file_is_published_while_its_previous_blob_is_removed(blobs: &Blobs) {
    let file = Uuid::new_v4();
    for _ in 0..50 {
        let (old, new) = (Blobs::key(file, Uuid::new_v4()), Blobs::key(file, Uuid::new_v4()));
        put(blobs, &old, b"old").await;
        tokio::join!(put(blobs, &new, b"new"), async { blobs.remove(&old).await.unwrap() });
        assert_eq!(blobs.keys_of(file).await.unwrap(), [new.as_str()]);
        blobs.remove(&new).await.unwrap();
    }
    assert_eq!(blobs.keys_of(file).await.unwrap(), [] as [&str; 0]);
    let mut keys: Vec<_> = (0..3).map(|_| Blobs::key(file, Uuid::new_v4())).collect();
    keys.sort();
    for key in &keys {
        assert_eq!(Blobs::file_of(key), Some(file));
        put(blobs, key, b"").await;
    }
    put(blobs, &Blobs::key(Uuid::new_v4(), Uuid::new_v4()), b"").await;
    assert_eq!(blobs.keys_of(file).await.unwrap(), keys);
    remove_all(blobs).await;
}

async fn only_keys_of_ids_are_accepted(blobs: &Blobs) {
    for key in ["", "/", "/a", "a/", "a//b", "../a", "a/..", "a.b", "a b", "ä", "a\\b", "a%2Fb"] {
        assert!(matches!(blobs.receive(Uuid::new_v4(), key).await.err(), Some(Error::Internal(_))), "{key}");
    }
    unfinished_become(blobs, &[]).await;
}

async fn the_mark_is_replaced_by_compare_and_set(blobs: &Blobs) {
    assert_eq!(blobs.mark().await.unwrap(), None);
    assert!(!blobs.replace_mark(Some("old"), "wrong").await.unwrap());
    assert_eq!(blobs.mark().await.unwrap(), None);
    assert!(blobs.replace_mark(None, "0").await.unwrap());
    assert!(!blobs.replace_mark(None, "wrong").await.unwrap());
    assert!(!blobs.replace_mark(Some("1"), "wrong").await.unwrap());
    assert_eq!(blobs.mark().await.unwrap().as_deref(), Some("0"));
    assert_eq!(list(blobs, "", None, 1).await, [] as [&str; 0], "a mark is not a blob");

    // Many that count at once: no count is lost.
    let writers = (0..8).map(|_| {
        let blobs = blobs.clone();
        tokio::spawn(async move {
            for _ in 0..5 {
                while !increment(&blobs).await {}
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    assert_eq!(blobs.mark().await.unwrap().as_deref(), Some("40"));
}

async fn increment(blobs: &Blobs) -> bool {
    let mark = blobs.mark().await.unwrap().unwrap();
    let next = mark.parse::<u32>().unwrap() + 1;
    blobs.replace_mark(Some(&mark), &next.to_string()).await.unwrap()
}

async fn put(blobs: &Blobs, key: &str, content: &[u8]) -> Stored {
    let mut incoming = blobs.receive(Uuid::new_v4(), key).await.unwrap();
    incoming.write(content).await.unwrap();
    let stored = incoming.publish(|_| Ok(())).await.unwrap();
    incoming.finish().await;
    stored
}

async fn bytes(reader: Result<BlobReader, Error>) -> Vec<u8> {
    let mut bytes = Vec::new();
    reader.unwrap().read_to_end(&mut bytes).await.unwrap();
    bytes
}

async fn list(blobs: &Blobs, prefix: &str, after: Option<&str>, limit: usize) -> Vec<String> {
    let mut listing = blobs.list(prefix, after);
    let mut keys = Vec::new();
    loop {
        let page = listing.next_page(limit).await.unwrap();
        if page.is_empty() {
            return keys;
        }
        keys.extend(page.into_iter().map(|blob| blob.key));
    }
}

async fn remove_all(blobs: &Blobs) {
    for key in list(blobs, "", None, 100).await {
        blobs.remove(&key).await.unwrap();
    }
    assert_eq!(list(blobs, "", None, 100).await, [] as [&str; 0]);
}

/// What the future returns, if it is ready at once.
async fn drop_after_first_poll<F: Future>(future: F) -> Option<F::Output> {
    let mut future = Box::pin(future);
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
        std::task::Poll::Pending => std::task::Poll::Ready(None),
    })
    .await
}
