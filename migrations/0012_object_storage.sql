-- What the object store said of a file's bytes when they were taken in. From then on exactly these are read. NULL in a folder.
ALTER TABLE files ADD COLUMN blob_etag TEXT;
ALTER TABLE files ADD COLUMN blob_version TEXT;
-- Whether the client sends the bytes straight to the object store. Until they are confirmed the row has no key for them.
ALTER TABLE files ADD COLUMN is_direct BOOLEAN NOT NULL DEFAULT FALSE;
-- The SHA-256 that the bytes must have, in hexadecimal digits, where the client declared it.
ALTER TABLE files ADD COLUMN declared_sha256 TEXT;
-- What the client notes about a file: a flat object of strings, numbers and booleans.
ALTER TABLE files ADD COLUMN attributes JSONB;
