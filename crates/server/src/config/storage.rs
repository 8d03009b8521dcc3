//! Where the database and the uploaded bytes are.

use std::path::PathBuf;

use super::declared::group;
use super::reader::{Reader, bytes};
use crate::blobs::{Place, StorageConfig};

group! { "Database and storage" {
    DATA_DIR = "data": "The folder for everything that has no folder of its own."
    DATABASE_URL = "sqlite://data/landfall.db": "The database: `sqlite://FILE` or `postgres://USER:PASSWORD@HOST/DATABASE`."
    DATABASE_CONNECTIONS = "16": "The maximum number of database connections of one process."
    STORAGE_URL = "file://data/blobs": "Where the uploaded bytes are, for all processes that use the same database: `file://FOLDER`, or `s3://BUCKET`, `az://CONTAINER` or `gs://BUCKET` with an optional `/PREFIX`, which the usual variables of the store (`AWS_…`, `AZURE_…`, `GOOGLE_…`) say how to reach."
    STORAGE_PUBLIC_URL = "": "Where clients reach the object store, if that is another address than the server uses: URLs for clients are signed for it."
    UPLOAD_MODE = "direct": "With an object store: `direct` has clients send and load bytes straight there, and `proxy` through this server, as always with a folder."
    STORAGE_EVENTS_TOKEN = "": "The token with which the object store's notifications are sent to `/api/v2/storage/events`, which takes none without it."
    MIN_FREE_DISK = "256MB": "With less free space on the disk of the blobs or of a SQLite database, the server takes in nothing new; deletions still work."
} }

pub(super) struct Storage {
    pub data_dir: PathBuf,
    pub database_url: String,
    pub database_connections: u32,
    pub storage: StorageConfig,
    pub is_direct: bool,
    pub events_token: Option<String>,
    pub min_free_disk: u64,
}

pub(super) fn read(read: &mut Reader) -> Storage {
    let data_dir = PathBuf::from(read.text(DATA_DIR));
    let database = format!("sqlite://{}/landfall.db", data_dir.display());
    let blobs = format!("file://{}/blobs", data_dir.display());
    let place = read_place(read, &blobs);
    let is_direct = read.with(UPLOAD_MODE, mode) && place.folder().is_none();
    let storage = StorageConfig { place, spool: data_dir.join("spool"), max_file_bytes: 0 };
    Storage {
        database_url: read.database_url(DATABASE_URL, &database),
        database_connections: read.at_least(DATABASE_CONNECTIONS, 4),
        storage,
        is_direct,
        events_token: read.secret(STORAGE_EVENTS_TOKEN),
        min_free_disk: read.with(MIN_FREE_DISK, bytes),
        data_dir,
    }
}

/// The bucket gets the variables of its store, which keep their own names.
fn read_place(read: &mut Reader, default: &str) -> Place {
    let mut place = read.with_default(STORAGE_URL, default, Place::parse);
    let public_endpoint = read.optional(STORAGE_PUBLIC_URL, endpoint);
    if let Place::Objects(bucket) = &mut place {
        bucket.options = read.foreign(bucket.kind.variables());
        bucket.public_endpoint = public_endpoint;
    }
    place
}

fn endpoint(text: &str) -> Result<String, String> {
    let is_endpoint = url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    if is_endpoint {
        Ok(text.trim_end_matches('/').to_owned())
    } else {
        Err("a URL, like https://files.example.com".to_owned())
    }
}

fn mode(text: &str) -> Result<bool, String> {
    match text {
        "direct" => Ok(true),
        "proxy" => Ok(false),
        _ => Err("direct or proxy".to_owned()),
    }
}
