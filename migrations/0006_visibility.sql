-- Who or what caused each step of a file: user, worker, sweep, administrator or system, and its name. NULL for steps from
-- before this migration.
ALTER TABLE events ADD COLUMN actor_kind TEXT;
ALTER TABLE events ADD COLUMN actor_name TEXT;

-- Notifications: more kinds, and when one was settled by itself because its file is ready or deleted. (SQLite changes a
-- CHECK only by way of a new table.)
CREATE TABLE new_notifications (
    id          UUID PRIMARY KEY,
    tenant_id   TEXT NOT NULL,
    user_id     TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind LIKE '%-notification' OR kind = 'file-deletion-warning'),
    -- The file that it is about, where it is about one.
    file_id     UUID,
    file_name   TEXT,
    message     TEXT NOT NULL,
    data        JSONB NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL,
    read_at     TIMESTAMPTZ,
    resolved_at TIMESTAMPTZ,
    CONSTRAINT of_a_file_with_its_name CHECK ((file_id IS NULL) = (file_name IS NULL)),
    CONSTRAINT resolved_is_read CHECK (resolved_at IS NULL OR read_at IS NOT NULL)
);
INSERT INTO new_notifications
    (id, tenant_id, user_id, kind, file_id, file_name, message, data, created_at, read_at)
    SELECT id, tenant_id, user_id, kind, file_id, file_name, message, data, created_at, read_at FROM notifications;
DROP TABLE notifications;
ALTER TABLE new_notifications RENAME TO notifications;
CREATE INDEX notifications_by_user ON notifications (user_id, id);
CREATE INDEX notifications_unread ON notifications (user_id, id) WHERE read_at IS NULL;
CREATE INDEX notifications_by_age ON notifications (created_at);
-- Those of a file that may still be settled.
CREATE INDEX notifications_unresolved ON notifications (file_id) WHERE file_id IS NOT NULL AND resolved_at IS NULL;

-- What could not be cleaned, and why, until a later run can.
CREATE TABLE cleanup_failures (
    -- The file, or the key of a blob.
    subject   TEXT NOT NULL,
    -- The job, or the part of it, that could not clean it.
    scope     TEXT NOT NULL,
    file_id   UUID,
    error     TEXT NOT NULL,
    attempts  BIGINT NOT NULL CHECK (attempts > 0),
    first_at  TIMESTAMPTZ NOT NULL,
    last_at   TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (scope, subject)
);
CREATE INDEX cleanup_failures_by_age ON cleanup_failures (first_at, scope, subject);
