-- Batches know which of their files never came.

-- How many of the deleted files were given up because their bytes never came.
ALTER TABLE batches ADD COLUMN never_uploaded_files BIGINT NOT NULL DEFAULT 0
    CHECK (never_uploaded_files >= 0 AND never_uploaded_files <= deleted_files);
-- A batch that had expired had given up what was missing. Which of its deleted files these were is not known any more.
UPDATE batches SET never_uploaded_files = deleted_files WHERE status = 'expired';

-- Until when the registrations of a batch live, because its owner still sends files of it. A file's own deadline counts
-- where it is later.
ALTER TABLE batches ADD COLUMN receiving_until TIMESTAMPTZ;

-- The dead letters that a retry of many left alone, each with its reason.
ALTER TABLE operations ADD COLUMN skipped JSONB NOT NULL DEFAULT '[]';
