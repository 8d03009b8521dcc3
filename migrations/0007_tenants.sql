-- Everything belongs to a user of a tenant. The same name in another tenant is another user.
--
-- Some tables knew only the name of the user. Their rows go to the tenant of the user's newest file; a user without files
-- was their own tenant.

-- A list of one user's, or of one tenant's.
CREATE INDEX files_of_tenant_by_id ON files (tenant_id, id) WHERE deleted_at IS NULL;
CREATE INDEX dead_letters_of_tenant ON files (tenant_id, failed_at, id) WHERE failed_at IS NOT NULL;
CREATE INDEX user_totals_of_tenant ON user_totals (tenant_id);

-- Operations: whose wish it was, and whose files they retry. Without `of_user` they are those of the tenant, without
-- `of_tenant` those of all.
ALTER TABLE operations ADD COLUMN tenant_id TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN of_tenant TEXT;
UPDATE operations SET tenant_id = COALESCE(
    (SELECT f.tenant_id FROM files f WHERE f.user_id = operations.user_id AND f.deleted_at IS NULL ORDER BY f.id DESC LIMIT 1),
    user_id);
UPDATE operations SET of_tenant = COALESCE(
    (SELECT f.tenant_id FROM files f WHERE f.user_id = operations.of_user AND f.deleted_at IS NULL ORDER BY f.id DESC LIMIT 1),
    of_user) WHERE of_user IS NOT NULL;
DROP INDEX operations_by_user;
CREATE INDEX operations_by_user ON operations (tenant_id, user_id, id);

-- (SQLite changes a primary key or a CHECK only by way of a new table.)
CREATE TABLE new_idempotency_keys (
    tenant_id  TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    key        TEXT NOT NULL,
    -- What was asked: the same key with another request is a mistake of the caller's.
    request    TEXT NOT NULL,
    answer     JSONB,
    created_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (tenant_id, user_id, key)
);
INSERT INTO new_idempotency_keys (tenant_id, user_id, key, request, answer, created_at)
    -- What a request registered was created at the time of its key.
    SELECT COALESCE((SELECT f.tenant_id FROM files f WHERE f.user_id = k.user_id AND f.deleted_at IS NULL
                       AND f.created_at = k.created_at LIMIT 1),
                    (SELECT b.tenant_id FROM batches b WHERE b.user_id = k.user_id AND b.created_at = k.created_at LIMIT 1),
                    (SELECT w.tenant_id FROM webhooks w WHERE w.user_id = k.user_id AND w.created_at = k.created_at LIMIT 1),
                    (SELECT f.tenant_id FROM files f WHERE f.user_id = k.user_id AND f.deleted_at IS NULL
                     ORDER BY f.id DESC LIMIT 1), k.user_id),
           k.user_id, k.key, k.request, k.answer, k.created_at
    FROM idempotency_keys k;
DROP TABLE idempotency_keys;
ALTER TABLE new_idempotency_keys RENAME TO idempotency_keys;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

-- What came to its end within the last day: each user's; without a user the tenant's; without a tenant all.
CREATE TABLE new_throughput (
    tenant_id     TEXT NOT NULL,
    user_id       TEXT NOT NULL,
    slot          TIMESTAMPTZ NOT NULL,
    completed     BIGINT NOT NULL,
    failed        BIGINT NOT NULL,
    processing_ms BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, user_id, slot)
);
INSERT INTO new_throughput (tenant_id, user_id, slot, completed, failed, processing_ms)
    SELECT CASE WHEN t.user_id = '' THEN '' ELSE
               COALESCE((SELECT f.tenant_id FROM files f WHERE f.user_id = t.user_id AND f.deleted_at IS NULL
                         ORDER BY f.id DESC LIMIT 1), t.user_id) END,
           t.user_id, t.slot, t.completed, t.failed, t.processing_ms
    FROM throughput t;
INSERT INTO new_throughput (tenant_id, user_id, slot, completed, failed, processing_ms)
    SELECT tenant_id, '', slot, SUM(completed), SUM(failed), SUM(processing_ms) FROM new_throughput
    WHERE user_id <> '' GROUP BY tenant_id, slot;
DROP TABLE throughput;
ALTER TABLE new_throughput RENAME TO throughput;
CREATE INDEX throughput_by_age ON throughput (slot);

-- Blobs that no row knows, as the last scan of the storage found them: each user's; without a user the tenant's; without a
-- tenant all.
CREATE TABLE new_orphan_scans (
    tenant_id  TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    count      BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    samples    JSONB NOT NULL,
    scanned_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (tenant_id, user_id)
);
INSERT INTO new_orphan_scans (tenant_id, user_id, count, bytes, samples, scanned_at)
    SELECT CASE WHEN s.user_id = '' THEN '' ELSE
               COALESCE((SELECT f.tenant_id FROM files f WHERE f.user_id = s.user_id AND f.deleted_at IS NULL
                         ORDER BY f.id DESC LIMIT 1), s.user_id) END,
           s.user_id, s.count, s.bytes, s.samples, s.scanned_at
    FROM orphan_scans s;
DROP TABLE orphan_scans;
ALTER TABLE new_orphan_scans RENAME TO orphan_scans;

DROP INDEX notifications_by_user;
DROP INDEX notifications_unread;
CREATE INDEX notifications_by_user ON notifications (tenant_id, user_id, id);
CREATE INDEX notifications_unread ON notifications (tenant_id, user_id, id) WHERE read_at IS NULL;

-- Webhooks, as before, with one more scope.
CREATE TABLE new_webhooks (
    id               UUID PRIMARY KEY,
    tenant_id        TEXT NOT NULL,
    user_id          TEXT NOT NULL,
    -- tenant: the events of all users of the tenant, at the wish of its administrator. all: those of all tenants and the
    -- server's own, at an operator's wish.
    scope            TEXT NOT NULL CHECK (scope IN ('own', 'tenant', 'all')),
    url              TEXT NOT NULL,
    description      TEXT,
    event_types      JSONB,
    secret           BYTEA NOT NULL,
    old_secret       BYTEA,
    old_secret_until TIMESTAMPTZ,
    enabled          BOOLEAN NOT NULL DEFAULT TRUE,
    disabled_at      TIMESTAMPTZ,
    disabled_reason  TEXT,
    cursor_id        BIGINT NOT NULL,
    held_by          UUID,
    turn_at          TIMESTAMPTZ NOT NULL,
    failures         BIGINT NOT NULL DEFAULT 0,
    failing_since    TIMESTAMPTZ,
    rest_until       TIMESTAMPTZ,
    created_at       TIMESTAMPTZ NOT NULL,
    updated_at       TIMESTAMPTZ NOT NULL,
    CONSTRAINT disabled_has_a_time_and_a_reason CHECK (
        enabled = (disabled_at IS NULL) AND enabled = (disabled_reason IS NULL)),
    CONSTRAINT failing_exactly_after_failures CHECK ((failures > 0) = (failing_since IS NOT NULL)),
    CONSTRAINT an_old_secret_has_an_end CHECK ((old_secret IS NULL) = (old_secret_until IS NULL))
);
INSERT INTO new_webhooks
    (id, tenant_id, user_id, scope, url, description, event_types, secret, old_secret, old_secret_until, enabled,
     disabled_at, disabled_reason, cursor_id, held_by, turn_at, failures, failing_since, rest_until, created_at, updated_at)
    SELECT id, tenant_id, user_id, scope, url, description, event_types, secret, old_secret, old_secret_until, enabled,
           disabled_at, disabled_reason, cursor_id, held_by, turn_at, failures, failing_since, rest_until, created_at, updated_at
    FROM webhooks;
DROP TABLE webhooks;
ALTER TABLE new_webhooks RENAME TO webhooks;
CREATE INDEX webhooks_by_user ON webhooks (tenant_id, user_id, id);
CREATE INDEX webhooks_for_all ON webhooks (id) WHERE scope = 'all';

-- Last, because the statements above look for files and batches by their user.
DROP INDEX batches_by_user;
DROP INDEX batches_active;
CREATE INDEX batches_by_user ON batches (tenant_id, user_id, id);
CREATE INDEX batches_active ON batches (tenant_id, user_id) WHERE status = 'active';
DROP INDEX files_by_user;
DROP INDEX dead_letters_by_user;
DROP INDEX dead_letters_by_cause;
DROP INDEX files_at_rest;
DROP INDEX files_to_confirm;
DROP INDEX files_under_way;
CREATE INDEX files_by_user ON files (tenant_id, user_id, id) WHERE deleted_at IS NULL;
CREATE INDEX dead_letters_by_user ON files (tenant_id, user_id, failed_at, id) WHERE failed_at IS NOT NULL;
CREATE INDEX dead_letters_by_cause ON files (tenant_id, user_id, error_fingerprint, failed_at, id)
    WHERE failed_at IS NOT NULL;
CREATE INDEX files_at_rest ON files (tenant_id, user_id, status, id) WHERE status IN ('ready', 'failed', 'cancelled');
CREATE INDEX files_to_confirm ON files (tenant_id, user_id, status, id) WHERE upload_until IS NOT NULL;
CREATE INDEX files_under_way ON files (tenant_id, user_id, id)
    WHERE confirmed_at IS NOT NULL AND ready_at IS NULL AND failed_at IS NULL AND deleted_at IS NULL;
