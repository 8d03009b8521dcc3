-- What lists of files are sorted by, in a table that no step of a file changes. In `files` each of these indexes had every
-- file, and where a step changes any index, PostgreSQL writes an entry into all indexes that have the row.

-- A row for each file that is not deleted, with the same values as its row in `files`. None of them ever changes.
CREATE TABLE listed_files (
    id         UUID PRIMARY KEY,
    tenant_id  TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    file_name  TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
-- [sqlite]
) WITHOUT ROWID;
-- [postgres]
);
-- [both]

INSERT INTO listed_files (id, tenant_id, user_id, file_name, size_bytes, created_at)
SELECT id, tenant_id, user_id, file_name, size_bytes, created_at FROM files WHERE deleted_at IS NULL;

-- By registration, by name and by size: a user's, a tenant's, and all.
CREATE INDEX listed_by_user ON listed_files (tenant_id, user_id, id);
CREATE INDEX listed_of_tenant ON listed_files (tenant_id, id);
CREATE INDEX listed_by_name ON listed_files (tenant_id, user_id, LOWER(file_name), id);
CREATE INDEX listed_of_tenant_by_name ON listed_files (tenant_id, LOWER(file_name), id);
CREATE INDEX listed_of_all_by_name ON listed_files (LOWER(file_name), id);
CREATE INDEX listed_by_size ON listed_files (tenant_id, user_id, size_bytes, id);
CREATE INDEX listed_of_tenant_by_size ON listed_files (tenant_id, size_bytes, id);
CREATE INDEX listed_of_all_by_size ON listed_files (size_bytes, id);

DROP INDEX files_by_user;
DROP INDEX files_of_tenant_by_id;
DROP INDEX files_by_name;
DROP INDEX files_of_tenant_by_name;
DROP INDEX files_of_all_by_name;
DROP INDEX files_by_size;
DROP INDEX files_of_tenant_by_size;
DROP INDEX files_of_all_by_size;
