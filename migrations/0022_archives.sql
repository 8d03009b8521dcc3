-- The files of an archive are files of their own, in a batch that belongs to the archive.

-- The batch with the files of this archive. NULL for every other file.
ALTER TABLE files ADD COLUMN archive_batch UUID;
-- The archive that the files of this batch are from. NULL for a batch that a client opened.
ALTER TABLE batches ADD COLUMN archive_id UUID;
-- The archive was deleted, and its files are still to be deleted.
ALTER TABLE batches ADD COLUMN deletes_files BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX batches_deleting_files ON batches (id) WHERE deletes_files;
