//! Requests to an object store whose answers are lost: the storage finds out what happened, and nothing is stored twice, lost, or
//! taken for another's.

use tokio::io::AsyncReadExt;
use uuid::Uuid;

use landfall_server::blobs::direct::Marker;
use landfall_server::blobs::{Blobs, Incoming};
use landfall_store::Error;

use crate::storage_contract::connect;
use crate::support::network::{Network, Request};
use crate::support::object_stores::{ALL, ObjectStore};
use crate::support::until;

/// More than one part.
const LARGE: usize = (8 << 20) + 5;

/// Everything that is done with a blob in its life.
async fn life(blobs: &Blobs, content: &[u8]) -> Result<(), Error> {
    let (owner, key) = (Uuid::new_v4(), Blobs::key(Uuid::new_v4(), Uuid::new_v4()));
    let mut incoming = blobs.receive(owner, &key).await?;
    incoming.write(content).await?;
    incoming.publish(|_| Ok(())).await?;
    incoming.finish().await;
    assert_eq!(blobs.size(&key).await?, Some(content.len() as u64));
    if content.len() >= LARGE {
        // The rest is the same for both.
        return blobs.remove(&key).await;
    }
    let mut read = Vec::new();
    blobs.read(&key).await?.read_to_end(&mut read).await.expect("it can be read");
    assert_eq!(read, content);
    let listed = blobs.list("", None).next_page(10).await?;
    assert_eq!(listed.iter().map(|blob| &blob.key).collect::<Vec<_>>(), [&key]);
    blobs.remove(&key).await?;
    assert_eq!(blobs.size(&key).await?, None);
    let mark = blobs.mark().await?;
    assert!(blobs.replace_mark(mark.as_deref(), &Uuid::new_v4().to_string()).await?, "it is ours");
    Ok(())
}

async fn every_answer_may_be_lost(store: ObjectStore, content: &[u8]) {
    let Some(bucket) = store.bucket().await else { return };
    let network = bucket.network().await;
    let data = tempfile::tempdir().unwrap();
    let blobs = connect(&bucket.through(&network), data.path()).await;
    life(&blobs, content).await.unwrap();
    let requests = network.requests();
    for (place, request) in requests.iter().enumerate() {
        network.lose_answer(place + 1, |_| true);
        let lived = life(&blobs, content).await;
        network.restore();
        // Nobody can tell whose these were. The upload fails, and the client sends it again.
        let is_beginning = request.target.contains("incoming") || request.target.contains("uploads");
        assert!(lived.is_ok() || is_beginning, "{store:?} {request:?}: {:?}", lived.err());
        until("what was begun is gone again", async || blobs.unfinished().await.unwrap().is_empty()).await;
        assert_eq!(blobs.list("", None).next_page(10).await.unwrap(), [], "{store:?} {request:?}");
    }
    assert_eq!(network.lost(), requests.len(), "{store:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answer_to_any_request_for_a_small_blob_may_be_lost() {
    for store in ALL {
        every_answer_may_be_lost(store, b"Lost at sea.").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answer_to_any_request_for_a_blob_in_parts_may_be_lost() {
    for store in ALL {
        every_answer_may_be_lost(store, &vec![7; LARGE]).await;
    }
}

/// Whether it removes an object, or the parts of one.
fn removes(request: &Request) -> bool {
    let removes_many = request.target.contains("?delete") || request.target.contains("comp=batch");
    request.method == "DELETE" || request.method == "POST" && removes_many
}

fn makes_entry(request: &Request) -> bool {
    request.method == "PUT" && request.target.contains("incoming")
}

fn lose_requests(network: &Network, count: usize, matches: fn(&Request) -> bool) {
    for _ in 0..count {
        network.lose_request(1, matches);
    }
}

/// Waits until nothing is left of an upload, after so many faults in all.
async fn nothing_is_left(blobs: &Blobs, network: &Network, faults: usize) {
    until("what was begun is gone again", async || blobs.unfinished().await.unwrap().is_empty()).await;
    assert_eq!(blobs.unfinished_parts(&Marker::default()).await.unwrap().0, []);
    assert_eq!(network.lost(), faults, "{:?}", network.requests());
}

/// Runs the check on each store, through a network that the check disturbs.
async fn on_each_store(check: impl AsyncFn(&Blobs, &Network)) {
    for store in ALL {
        let Some(bucket) = store.bucket().await else { continue };
        let network = bucket.network().await;
        let data = tempfile::tempdir().unwrap();
        check(&connect(&bucket.through(&network), data.path()).await, &network).await;
    }
}

async fn receive(blobs: &Blobs) -> Result<Incoming, Error> {
    blobs.receive(Uuid::new_v4(), &Blobs::key(Uuid::new_v4(), Uuid::new_v4())).await
}

// No other process removes what an upload of this one left, as long as this one lives.

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_entry_of_a_finished_upload_goes_as_soon_as_the_store_answers() {
    on_each_store(async |blobs, network| {
        let mut incoming = receive(blobs).await.unwrap();
        incoming.write(b"Lost at sea.").await.unwrap();
        incoming.publish(|_| Ok(())).await.unwrap();
        // Three at once when it is finished, three at once behind that, and one more after a pause.
        lose_requests(network, 7, removes);
        incoming.finish().await;
        nothing_is_left(blobs, network, 7).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_entry_of_an_upload_that_could_not_begin_goes_as_soon_as_the_store_answers() {
    on_each_store(async |blobs, network| {
        // The store has made the entry, and is away when it is asked again.
        network.lose_answer(1, makes_entry);
        lose_requests(network, 2, makes_entry);
        lose_requests(network, 4, removes);
        assert!(receive(blobs).await.is_err());
        nothing_is_left(blobs, network, 7).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_entry_of_an_upload_that_was_given_up_goes_as_soon_as_the_store_answers() {
    on_each_store(async |blobs, network| {
        let mut incoming = receive(blobs).await.unwrap();
        incoming.write(b"Lost at sea.").await.unwrap();
        lose_requests(network, 4, removes);
        drop(incoming);
        nothing_is_left(blobs, network, 4).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_parts_of_an_upload_that_was_given_up_go_as_soon_as_the_store_answers() {
    on_each_store(async |blobs, network| {
        let mut incoming = receive(blobs).await.unwrap();
        incoming.write(&vec![7; LARGE]).await.unwrap();
        lose_requests(network, 2, removes);
        drop(incoming);
        nothing_is_left(blobs, network, 2).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_parts_of_an_upload_that_could_not_be_completed_go_with_its_entry() {
    on_each_store(async |blobs, network| {
        let mut incoming = receive(blobs).await.unwrap();
        incoming.write(&vec![7; LARGE]).await.unwrap();
        // Azure completes it with another request.
        let completes = |request: &Request| request.method == "POST" && request.target.contains("uploadId=");
        network.answer(1, 400, "", completes);
        let published = incoming.publish(|_| Ok(())).await;
        assert_eq!(published.is_err(), network.lost() == 1, "{published:?}");
        incoming.finish().await;
        assert_eq!(blobs.unfinished().await.unwrap(), []);
        assert_eq!(blobs.unfinished_parts(&Marker::default()).await.unwrap().0, []);
    })
    .await;
}
