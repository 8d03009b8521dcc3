//! Requests to an object store whose answers are lost: the storage finds out what happened, and nothing is stored twice, lost, or
//! taken for another's.

use tokio::io::AsyncReadExt;
use uuid::Uuid;

use landfall_server::blobs::Blobs;
use landfall_store::Error;

use crate::storage_contract::connect;
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
