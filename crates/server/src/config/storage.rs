//! Where the database and the uploaded bytes are.

use std::path::PathBuf;

use super::declared::group;
use super::reader::{Reader, bytes};

group! { "Database and storage" {
    DATA_DIR = "data": "The folder for everything that has no folder of its own."
    DATABASE_URL = "sqlite://data/landfall.db": "The database: `sqlite://FILE` or `postgres://USER:PASSWORD@HOST/DATABASE`."
    DATABASE_CONNECTIONS = "16": "The maximum number of database connections of one process."
    STORAGE_URL = "file://data/blobs": "The folder of the uploaded bytes, which all processes that use the same database share."
    MIN_FREE_DISK = "256MB": "With less free space on the disk of the blobs or of a SQLite database, the server takes in nothing new; deletions still work."
} }

pub(super) struct Storage {
    pub data_dir: PathBuf,
    pub database_url: String,
    pub database_connections: u32,
    pub blobs_dir: PathBuf,
    pub min_free_disk: u64,
}

pub(super) fn read(read: &mut Reader) -> Storage {
    let data_dir = PathBuf::from(read.text(DATA_DIR));
    let database = format!("sqlite://{}/landfall.db", data_dir.display());
    let blobs = format!("file://{}/blobs", data_dir.display());
    Storage {
        database_url: read.database_url(DATABASE_URL, &database),
        database_connections: read.at_least(DATABASE_CONNECTIONS, 4),
        blobs_dir: read.with_default(STORAGE_URL, &blobs, folder),
        min_free_disk: read.with(MIN_FREE_DISK, bytes),
        data_dir,
    }
}

fn folder(text: &str) -> Result<PathBuf, String> {
    text.strip_prefix("file://")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .ok_or_else(|| "the URL of a folder, like file://data/blobs".to_owned())
}
