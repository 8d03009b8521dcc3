-- The keys that sign upload URLs and tickets are derived from a secret that is not in the database. What is kept here from
-- now on is a fingerprint of that secret.
DELETE FROM secrets;

-- The SHA-256 of the bytes of a file, in hexadecimal digits. NULL for bytes that arrived before this migration, until they
-- are checked for the first time.
ALTER TABLE files ADD COLUMN blob_sha256 TEXT;
-- When all bytes were last compared with their checksum. NULL: not since this migration.
ALTER TABLE files ADD COLUMN blob_checked_at TIMESTAMPTZ;
-- When the bytes were found to be others than those that arrived.
ALTER TABLE files ADD COLUMN blob_damaged_at TIMESTAMPTZ;
CREATE INDEX files_by_blob_check ON files (blob_checked_at, id) WHERE blob_key IS NOT NULL;
CREATE INDEX files_damaged ON files (id) WHERE blob_damaged_at IS NOT NULL;

-- The upload that a file receives at this moment: there is at most one. It counts while its process is known.
CREATE TABLE arriving_uploads (
    file_id    UUID PRIMARY KEY REFERENCES files (id) ON DELETE CASCADE,
    upload_id  UUID NOT NULL,
    worker_id  UUID NOT NULL,
    started_at TIMESTAMPTZ NOT NULL
);
