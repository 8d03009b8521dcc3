-- Lists of files by name and by size: a user's, a tenant's, and all. Of columns that never change, so that no step of a file
-- has to touch them where the database can avoid that.
CREATE INDEX files_by_name ON files (tenant_id, user_id, LOWER(file_name), id) WHERE deleted_at IS NULL;
CREATE INDEX files_of_tenant_by_name ON files (tenant_id, LOWER(file_name), id) WHERE deleted_at IS NULL;
CREATE INDEX files_of_all_by_name ON files (LOWER(file_name), id) WHERE deleted_at IS NULL;
CREATE INDEX files_by_size ON files (tenant_id, user_id, size_bytes, id) WHERE deleted_at IS NULL;
CREATE INDEX files_of_tenant_by_size ON files (tenant_id, size_bytes, id) WHERE deleted_at IS NULL;
CREATE INDEX files_of_all_by_size ON files (size_bytes, id) WHERE deleted_at IS NULL;
-- Filters that few files match: those with an error, and those with warnings.
CREATE INDEX files_with_error ON files (tenant_id, user_id, id) WHERE error_code IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX files_with_warnings ON files (tenant_id, user_id, id) WHERE warning_count > 0 AND deleted_at IS NULL;

-- Operations on files of any state. The columns for dead letters are empty then, except whose files they are.
ALTER TABLE operations ADD COLUMN action TEXT NOT NULL DEFAULT 'retry' CHECK (action IN ('retry', 'cancel', 'delete'));
-- The filter as the client sent it, or the ids of the files. Both are NULL for dead letters.
ALTER TABLE operations ADD COLUMN wanted JSONB;
ALTER TABLE operations ADD COLUMN file_ids JSONB CHECK (file_ids IS NULL OR wanted IS NULL);
-- How many files matched when it began. NULL: not counted.
ALTER TABLE operations ADD COLUMN total_count BIGINT;
