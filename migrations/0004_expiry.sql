-- Batches know which of their files never came, and their owners are notified when a batch expires.

-- How many of the deleted files were given up because their bytes never came.
ALTER TABLE batches ADD COLUMN never_uploaded_files BIGINT NOT NULL DEFAULT 0
    CHECK (never_uploaded_files >= 0 AND never_uploaded_files <= deleted_files);
-- A batch that had expired had given up what was missing. Which of its deleted files these were is not known any more.
UPDATE batches SET never_uploaded_files = deleted_files WHERE status = 'expired';

-- The kinds of notifications are checked by the program, so that a new kind does not need a new table.
CREATE TABLE notifications_of_any_kind (
    id         UUID PRIMARY KEY,
    tenant_id  TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    kind       TEXT NOT NULL,
    file_id    UUID,
    file_name  TEXT,
    message    TEXT NOT NULL,
    data       JSONB NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    read_at    TIMESTAMPTZ,
    CONSTRAINT notice_of_a_file_with_its_name CHECK ((file_id IS NULL) = (file_name IS NULL))
);
INSERT INTO notifications_of_any_kind
    (id, tenant_id, user_id, kind, file_id, file_name, message, data, created_at, read_at)
    SELECT id, tenant_id, user_id, kind, file_id, file_name, message, data, created_at, read_at FROM notifications;
DROP TABLE notifications;
ALTER TABLE notifications_of_any_kind RENAME TO notifications;
CREATE INDEX notifications_by_user ON notifications (user_id, id);
CREATE INDEX notifications_unread ON notifications (user_id, id) WHERE read_at IS NULL;
CREATE INDEX notifications_by_age ON notifications (created_at);

-- Until when the registrations of a batch live, because its owner still sends files of it. A file's own deadline counts
-- where it is later.
ALTER TABLE batches ADD COLUMN receiving_until TIMESTAMPTZ;

-- The dead letters that a retry of many left alone, each with its reason.
ALTER TABLE operations ADD COLUMN skipped JSONB NOT NULL DEFAULT '[]';
