-- One text for SQLite and PostgreSQL. Every integer is BIGINT (so that it reads back as one Rust type), every instant
-- TIMESTAMPTZ, every id UUID. {{identity}} is the one word that differs: an ascending 64-bit key made by the database.

CREATE TABLE tenants (
    id             TEXT PRIMARY KEY,
    -- NULL: the configured default applies.
    quota_bytes    BIGINT,
    quota_files    BIGINT,
    reserved_bytes BIGINT NOT NULL DEFAULT 0,
    reserved_files BIGINT NOT NULL DEFAULT 0,
    used_bytes     BIGINT NOT NULL DEFAULT 0,
    used_files     BIGINT NOT NULL DEFAULT 0,
    CONSTRAINT quota_never_negative
        CHECK (reserved_bytes >= 0 AND reserved_files >= 0 AND used_bytes >= 0 AND used_files >= 0)
);

CREATE TABLE batches (
    id              UUID PRIMARY KEY,
    tenant_id       TEXT NOT NULL,
    user_id         TEXT NOT NULL,
    status          TEXT NOT NULL CHECK (status IN ('active', 'completed', 'expired', 'cancelled')),
    -- How many files were promised; completion waits for so many terminal ones.
    file_count      BIGINT NOT NULL CHECK (file_count >= 0),
    -- Rows ever created for this batch, and how many of them rest in each terminal state now.
    registered_files BIGINT NOT NULL DEFAULT 0,
    ready_files     BIGINT NOT NULL DEFAULT 0,
    failed_files    BIGINT NOT NULL DEFAULT 0,
    cancelled_files BIGINT NOT NULL DEFAULT 0,
    deleted_files   BIGINT NOT NULL DEFAULT 0,
    priority        BIGINT NOT NULL DEFAULT 1 CHECK (priority IN (0, 1, 2)),
    metadata        JSONB,
    mapping         JSONB,
    created_at      TIMESTAMPTZ NOT NULL,
    updated_at      TIMESTAMPTZ NOT NULL,
    expires_at      TIMESTAMPTZ NOT NULL,
    completed_at    TIMESTAMPTZ,
    -- When its progress was last told of, and when it is to be told of again if that is owed.
    progress_at     TIMESTAMPTZ,
    progress_due    TIMESTAMPTZ,
    CONSTRAINT counts_never_negative
        CHECK (ready_files >= 0 AND failed_files >= 0 AND cancelled_files >= 0 AND deleted_files >= 0),
    CONSTRAINT no_more_files_than_promised CHECK (registered_files <= file_count),
    CONSTRAINT no_more_terminal_than_registered
        CHECK (ready_files + failed_files + cancelled_files + deleted_files <= registered_files)
);
CREATE INDEX batches_by_user ON batches (user_id, id);

CREATE TABLE files (
    id            UUID PRIMARY KEY,
    tenant_id     TEXT NOT NULL,
    user_id       TEXT NOT NULL,
    batch_id      UUID REFERENCES batches (id),
    file_name     TEXT NOT NULL,
    content_type  TEXT,
    size_bytes    BIGINT NOT NULL CHECK (size_bytes >= 0),
    declared_md5  TEXT,
    -- For the operator's own extraction; the batch's applies where there is none.
    mapping       JSONB,

    -- Where the bytes are, and what arriving there they hashed to. Each upload gets a key of its own, so that
    -- a second upload can never change bytes under a file that was confirmed with the first.
    blob_key      TEXT,
    md5           TEXT,

    status        TEXT NOT NULL CHECK (status IN ('registered', 'uploaded', 'queued', 'scanning', 'extracting',
                      'chunking', 'embedding', 'ready', 'failed', 'cancelled', 'deleted')),
    next_stage    TEXT NOT NULL CHECK (next_stage IN ('scan', 'extract', 'chunk', 'embed')),
    priority      BIGINT NOT NULL DEFAULT 1 CHECK (priority IN (0, 1, 2)),
    run_after     TIMESTAMPTZ,
    -- Whether that has come. Files that wait for their next attempt are not in the way of those that can be claimed.
    is_due        BOOLEAN NOT NULL DEFAULT FALSE,

    -- When it could last be claimed, as its last claim found it: since then it had waited.
    due_at        TIMESTAMPTZ,

    -- The hold of a worker: a fresh token for each attempt. Only who knows the token moves the file.
    claim         UUID,
    claimed_by    UUID,
    claimed_at    TIMESTAMPTZ,

    attempt       BIGINT NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    lost_workers  BIGINT NOT NULL DEFAULT 0,
    retry_count   BIGINT NOT NULL DEFAULT 0,

    error_code    TEXT,
    error_message TEXT,
    error_stage   TEXT,
    error_at      TIMESTAMPTZ,
    -- What the dead letters of one cause have in common.
    error_fingerprint TEXT,

    -- The last time that a person wanted it tried again, and the operation that did it with many others.
    retried_at    TIMESTAMPTZ,
    retried_by    TEXT,
    retried_in    UUID,

    -- The place in its trace that its stages hang on (a W3C traceparent), and that of its first life where a person
    -- wanted it tried again. NULL where nobody collects traces.
    trace_parent  TEXT,
    trace_first   TEXT,

    -- When the owner was last told that a failed file is going to be deleted.
    deletion_warned_at TIMESTAMPTZ,

    chunk_count   BIGINT,
    upload_until  TIMESTAMPTZ,
    created_at    TIMESTAMPTZ NOT NULL,
    updated_at    TIMESTAMPTZ NOT NULL,
    confirmed_at  TIMESTAMPTZ,
    ready_at      TIMESTAMPTZ,
    failed_at     TIMESTAMPTZ,
    deleted_at    TIMESTAMPTZ,

    CONSTRAINT traces_are_short CHECK (LENGTH(trace_parent) <= 64 AND LENGTH(trace_first) <= 64),
    CONSTRAINT running_exactly_when_claimed CHECK (
        (status IN ('scanning', 'extracting', 'chunking', 'embedding'))
        = (claim IS NOT NULL AND claimed_by IS NOT NULL AND claimed_at IS NOT NULL)),
    CONSTRAINT queued_exactly_when_due CHECK ((status = 'queued') = (run_after IS NOT NULL)),
    CONSTRAINT due_only_when_queued CHECK (status = 'queued' OR NOT is_due),
    CONSTRAINT failed_has_a_reason CHECK (
        status <> 'failed' OR (error_code IS NOT NULL AND error_message IS NOT NULL AND error_stage IS NOT NULL
                               AND error_fingerprint IS NOT NULL)),
    -- So that the indices of dead letters need not know the status, which changes with every step.
    CONSTRAINT failed_exactly_when_it_has_a_time CHECK ((status = 'failed') = (failed_at IS NOT NULL)),
    CONSTRAINT ready_has_a_time CHECK (status <> 'ready' OR ready_at IS NOT NULL),
    CONSTRAINT confirmed_before_queued CHECK (
        status IN ('registered', 'uploaded', 'deleted')
        -- The blob of an infected file is removed.
        OR (confirmed_at IS NOT NULL AND (blob_key IS NOT NULL OR (status = 'failed' AND error_code = 'INFECTED')))),
    CONSTRAINT deleted_has_a_time CHECK ((status = 'deleted') = (deleted_at IS NOT NULL))
);

-- The queue: a line for each user at each stage. Finished files are not in it, so a claim costs the same beside a
-- million of them.
CREATE INDEX files_claimable ON files (next_stage, tenant_id, user_id, priority, run_after)
    WHERE status = 'queued' AND is_due;
-- Those whose next attempt is still to come.
CREATE INDEX files_not_due ON files (run_after) WHERE status = 'queued' AND NOT is_due;
-- Those that failed before, by when.
CREATE INDEX files_failed_before ON files (error_at) WHERE status = 'queued' AND error_code IS NOT NULL;
-- What a dead worker held.
CREATE INDEX files_claimed ON files (claimed_by) WHERE claimed_by IS NOT NULL;
-- Deleted and infected files whose blob is not gone yet.
CREATE INDEX files_with_blob_to_remove ON files (id)
    WHERE (deleted_at IS NOT NULL OR error_code = 'INFECTED') AND blob_key IS NOT NULL;
-- By the time and not by the status, which changes with every step.
CREATE INDEX files_by_user ON files (user_id, id) WHERE deleted_at IS NULL;
CREATE INDEX files_by_batch ON files (batch_id, status) WHERE batch_id IS NOT NULL;
-- Dead letters, newest first: a user's, everybody's, and those of one cause.
CREATE INDEX dead_letters_by_user ON files (user_id, failed_at, id) WHERE failed_at IS NOT NULL;
CREATE INDEX dead_letters ON files (failed_at, id) WHERE failed_at IS NOT NULL;
CREATE INDEX dead_letters_by_cause ON files (user_id, error_fingerprint, failed_at, id)
    WHERE failed_at IS NOT NULL;

-- What happened, in order: the history of each file and the outbox of the event stream are the same rows.
CREATE TABLE events (
    id         {{identity}},
    at         TIMESTAMPTZ NOT NULL,
    kind       TEXT NOT NULL,
    tenant_id  TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    file_id    UUID,
    batch_id   UUID,
    from_state TEXT,
    to_state   TEXT,
    stage      TEXT,
    attempt    BIGINT,
    worker     TEXT,
    error_code TEXT,
    error_message TEXT,
    data       JSONB
);
CREATE INDEX events_of_file ON events (file_id, id) WHERE file_id IS NOT NULL;

-- What a stage produced, kept until the file goes, so that a later attempt starts where the last one ended.
CREATE TABLE artifacts (
    file_id      UUID NOT NULL REFERENCES files (id) ON DELETE CASCADE,
    name         TEXT NOT NULL,
    content_type TEXT NOT NULL,
    body         BYTEA NOT NULL,
    meta         JSONB,
    created_at   TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (file_id, name)
);

CREATE TABLE chunks (
    id         {{identity}},
    file_id    UUID NOT NULL REFERENCES files (id) ON DELETE CASCADE,
    ordinal    BIGINT NOT NULL,
    text       TEXT NOT NULL,
    -- Where in the document: a page, a heading, and always the range of characters in the extracted text.
    page       BIGINT,
    heading    TEXT,
    char_start BIGINT NOT NULL,
    char_end   BIGINT NOT NULL,
    tokens     BIGINT NOT NULL,
    UNIQUE (file_id, ordinal)
);

-- What is done to many files at a person's wish, a page of them in each transaction. The row is all that there is to
-- know: any process can take the next step.
CREATE TABLE operations (
    id            UUID PRIMARY KEY,
    user_id       TEXT NOT NULL,
    -- Which dead letters are to be retried; NULL leaves it open. Without `of_user` they are everybody's.
    of_user       TEXT,
    code          TEXT,
    stage         TEXT,
    batch_id      UUID,
    fingerprint   TEXT,

    status        TEXT NOT NULL CHECK (status IN ('canary', 'running', 'completed', 'stopped')),
    -- Why it was stopped.
    reason        TEXT,
    -- The files that were tried first, to see whether there is any use in trying the others.
    canaries      JSONB NOT NULL,
    retried_count BIGINT NOT NULL DEFAULT 0,
    skipped_count BIGINT NOT NULL DEFAULT 0,
    error_count   BIGINT NOT NULL DEFAULT 0,
    -- The first of those errors.
    errors        JSONB NOT NULL,
    -- The trace of the request that wanted it.
    trace_parent  TEXT,
    -- The last dead letter that was dealt with; the next is older.
    cursor_at     TIMESTAMPTZ NOT NULL,
    cursor_id     UUID NOT NULL,
    created_at    TIMESTAMPTZ NOT NULL,
    updated_at    TIMESTAMPTZ NOT NULL,
    ended_at      TIMESTAMPTZ,
    CONSTRAINT ended_exactly_when_over CHECK ((status IN ('completed', 'stopped')) = (ended_at IS NOT NULL)),
    CONSTRAINT stopped_has_a_reason CHECK (status <> 'stopped' OR reason IS NOT NULL)
);
CREATE INDEX operations_by_user ON operations (user_id, id);
CREATE INDEX operations_under_way ON operations (id) WHERE ended_at IS NULL;

CREATE TABLE workers (
    id           UUID PRIMARY KEY,
    name         TEXT NOT NULL,
    stages       TEXT NOT NULL,
    -- What its stages need, as stage:service.
    services     TEXT NOT NULL,
    -- What its operating-system or advisory lock is called; a lock nobody holds is a dead process.
    lock_key     BIGINT NOT NULL,
    -- Which start of the database server its lock was taken under. A server that was started anew knows no locks, and
    -- that says nothing about who lives.
    lock_epoch   TEXT NOT NULL DEFAULT '',
    started_at   TIMESTAMPTZ NOT NULL,
    heartbeat_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE idempotency_keys (
    user_id    TEXT NOT NULL,
    key        TEXT NOT NULL,
    -- What was asked: the same key with another request is a mistake of the caller's.
    request    TEXT NOT NULL,
    answer     JSONB,
    created_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (user_id, key)
);

-- How it stands with each service that was ever down.
CREATE TABLE circuits (
    service       TEXT PRIMARY KEY,
    state         TEXT NOT NULL CHECK (state IN ('closed', 'open', 'half-open')),
    failures      BIGINT NOT NULL DEFAULT 0,
    failing_since TIMESTAMPTZ,
    until         TIMESTAMPTZ,
    successes     BIGINT NOT NULL DEFAULT 0,
    last_up_at    TIMESTAMPTZ,
    changed_at    TIMESTAMPTZ,
    CONSTRAINT trouble_has_an_end CHECK (state <> 'open' OR until IS NOT NULL)
);

-- When the next file may begin, for each stage and user with a limit.
CREATE TABLE rate_buckets (
    name        TEXT PRIMARY KEY,
    next_at     TIMESTAMPTZ NOT NULL,
    reported_at TIMESTAMPTZ
);

CREATE TABLE paused_stages (
    stage     TEXT PRIMARY KEY CHECK (stage IN ('scan', 'extract', 'chunk', 'embed')),
    paused_at TIMESTAMPTZ NOT NULL,
    paused_by TEXT NOT NULL
);

-- Counters by hour, written with the transitions that they count.
CREATE TABLE hourly (
    hour  TIMESTAMPTZ NOT NULL,
    name  TEXT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (hour, name)
);

-- Secrets that every process of a cluster must agree on, made once.
CREATE TABLE secrets (
    name  TEXT PRIMARY KEY,
    value BYTEA NOT NULL
);

-- Sweeps: uploads by the moment at which they are given up, and batches by theirs.
CREATE INDEX files_awaiting_confirmation ON files (upload_until, id) WHERE upload_until IS NOT NULL;
CREATE INDEX batches_to_expire ON batches (expires_at, id) WHERE status = 'active';

-- When each sweep is due next. Whoever moves that on has the tick, so that it runs on one process alone.
CREATE TABLE job_schedules (
    name     TEXT PRIMARY KEY,
    schedule TEXT NOT NULL,
    -- NULL: never again.
    due_at   TIMESTAMPTZ
);

-- What became of each run.
CREATE TABLE job_runs (
    id          UUID PRIMARY KEY,
    name        TEXT NOT NULL REFERENCES job_schedules (name),
    -- Who wanted it, unless it was its schedule.
    started_by  TEXT,
    -- The process that runs it. Once that is not known any more, nobody does.
    worker      UUID NOT NULL,
    worker_name TEXT NOT NULL,
    started_at  TIMESTAMPTZ NOT NULL,
    ended_at    TIMESTAMPTZ,
    metrics     JSONB,
    errors      JSONB NOT NULL
);
CREATE INDEX job_runs_by_name ON job_runs (name, started_at, id);
CREATE UNIQUE INDEX job_runs_one_at_a_time ON job_runs (name) WHERE ended_at IS NULL;

-- Cleaning: what it looks for. Tombstones, events that are nobody's history, keys that nobody repeats any more.
CREATE INDEX tombstones ON files (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX events_beside_histories ON events (at) WHERE kind <> 'file:status-changed';
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

-- What a user is told of, whether or not they look at the time.
CREATE TABLE notifications (
    id         UUID PRIMARY KEY,
    tenant_id  TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('file-failure-notification', 'file-deletion-warning',
                   'webhook-disabled-notification')),
    -- The file that it is about, where it is about one.
    file_id    UUID,
    file_name  TEXT,
    message    TEXT NOT NULL,
    data       JSONB NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    read_at    TIMESTAMPTZ,
    CONSTRAINT of_a_file_with_its_name CHECK ((file_id IS NULL) = (file_name IS NULL))
);
CREATE INDEX notifications_by_user ON notifications (user_id, id);
CREATE INDEX notifications_unread ON notifications (user_id, id) WHERE read_at IS NULL;
CREATE INDEX notifications_by_age ON notifications (created_at);

-- Blobs that no row knows, as the last look at the storage found them: each user's, and under the empty name all.
CREATE TABLE orphan_scans (
    user_id    TEXT PRIMARY KEY,
    count      BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    samples    JSONB NOT NULL,
    scanned_at TIMESTAMPTZ NOT NULL
);

-- What the operator was last told of. One that was not taken by whoever it was sent to is not delivered.
CREATE TABLE alerts (
    name         TEXT PRIMARY KEY,
    message      TEXT NOT NULL,
    raised_at    TIMESTAMPTZ NOT NULL,
    attempts     BIGINT NOT NULL DEFAULT 0,
    delivered_at TIMESTAMPTZ
);

-- The dashboard: how many files each user has in each state, kept by the transactions that move them. `at_…` are those
-- that wait for the stage and those that are being worked on there. (No CHECK: what is added may be negative.)
CREATE TABLE user_totals (
    user_id    TEXT NOT NULL,
    tenant_id  TEXT NOT NULL,
    registered BIGINT NOT NULL DEFAULT 0,
    uploaded   BIGINT NOT NULL DEFAULT 0,
    at_scan    BIGINT NOT NULL DEFAULT 0,
    at_extract BIGINT NOT NULL DEFAULT 0,
    at_chunk   BIGINT NOT NULL DEFAULT 0,
    at_embed   BIGINT NOT NULL DEFAULT 0,
    ready      BIGINT NOT NULL DEFAULT 0,
    failed     BIGINT NOT NULL DEFAULT 0,
    cancelled  BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (user_id, tenant_id)
);

-- What came to its end within the last day: each user's, and under the empty name everybody's.
CREATE TABLE throughput (
    user_id       TEXT NOT NULL,
    slot          TIMESTAMPTZ NOT NULL,
    completed     BIGINT NOT NULL,
    failed        BIGINT NOT NULL,
    processing_ms BIGINT NOT NULL,
    PRIMARY KEY (user_id, slot)
);
CREATE INDEX throughput_by_age ON throughput (slot);

-- A user's files in one state: those at rest, those that are not confirmed, and, by times that change only at the end and
-- not with every step, those in between. (Those that are being worked on are few: `files_claimed`.)
CREATE INDEX files_at_rest ON files (user_id, status, id) WHERE status IN ('ready', 'failed', 'cancelled');
CREATE INDEX files_to_confirm ON files (user_id, status, id) WHERE upload_until IS NOT NULL;
CREATE INDEX files_under_way ON files (user_id, id)
    WHERE confirmed_at IS NOT NULL AND ready_at IS NULL AND failed_at IS NULL AND deleted_at IS NULL;
CREATE INDEX batches_active ON batches (user_id) WHERE status = 'active';

-- Which database this is, and how far it has come. Its storage has a copy, by which another database, or an older state
-- of this one, is told from the one that its blobs belong to.
CREATE TABLE database_identity (
    only_one   BOOLEAN PRIMARY KEY CHECK (only_one),
    id         UUID NOT NULL,
    generation BIGINT NOT NULL CHECK (generation >= 0)
);

-- Webhooks: where events are sent to, and at whose wish.
CREATE TABLE webhooks (
    id               UUID PRIMARY KEY,
    tenant_id        TEXT NOT NULL,
    user_id          TEXT NOT NULL,
    -- all: everybody's events and the system's own, at an administrator's wish.
    scope            TEXT NOT NULL CHECK (scope IN ('own', 'all')),
    url              TEXT NOT NULL,
    description      TEXT,
    -- NULL: every type.
    event_types      JSONB,
    secret           BYTEA NOT NULL,
    -- The one before, which goes on signing beside it for a while.
    old_secret       BYTEA,
    old_secret_until TIMESTAMPTZ,

    enabled          BOOLEAN NOT NULL DEFAULT TRUE,
    disabled_at      TIMESTAMPTZ,
    disabled_reason  TEXT,
    -- The last event that deliveries were written for, where it is one of those wanted.
    cursor_id        BIGINT NOT NULL,
    -- The process that sends to it. Once that is not known any more, nobody does.
    held_by          UUID,
    -- When it last had a turn: who waits longest is next.
    turn_at          TIMESTAMPTZ NOT NULL,
    -- How it went lately: failures in a row, since when, and until when it is left in peace.
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
CREATE INDEX webhooks_by_user ON webhooks (user_id, id);
CREATE INDEX webhooks_for_all ON webhooks (id) WHERE scope = 'all';

-- What is or was to be sent to each. The body is kept as it is signed, so that every attempt sends the same bytes.
CREATE TABLE webhook_deliveries (
    number           {{identity}},
    id               UUID NOT NULL UNIQUE,
    -- No foreign key: when a webhook goes, its deliveries follow in portions.
    webhook_id       UUID NOT NULL,
    -- What receivers know it by: the same at every attempt, and when it is sent once more at somebody's wish.
    message_id       UUID NOT NULL,
    -- NULL: a test, of which no event tells.
    event_id         BIGINT,
    event_type       TEXT NOT NULL,
    body             TEXT NOT NULL,
    status           TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'exhausted')),
    attempts         BIGINT NOT NULL DEFAULT 0,
    next_at          TIMESTAMPTZ,
    first_attempt_at TIMESTAMPTZ,
    last_attempt_at  TIMESTAMPTZ,
    -- How the last attempt went.
    response_status  BIGINT,
    response_excerpt TEXT,
    error            TEXT,
    duration_ms      BIGINT,
    created_at       TIMESTAMPTZ NOT NULL,
    ended_at         TIMESTAMPTZ,
    CONSTRAINT pending_exactly_when_due CHECK ((status = 'pending') = (next_at IS NOT NULL)),
    CONSTRAINT pending_exactly_without_an_end CHECK ((status = 'pending') = (ended_at IS NULL))
);
-- The line before each webhook, in the order of the events. What was delivered is not in it.
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (webhook_id, number) WHERE next_at IS NOT NULL;
CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook_id, number);
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (ended_at) WHERE ended_at IS NOT NULL;

-- The event stream: batches whose progress is owed, and how far the events have been removed. Whoever resumes from before
-- that has missed some.
CREATE INDEX batches_owing_progress ON batches (progress_due) WHERE progress_due IS NOT NULL;
CREATE TABLE removed_events (
    one   BIGINT PRIMARY KEY CHECK (one = 1),
    up_to BIGINT NOT NULL
);
