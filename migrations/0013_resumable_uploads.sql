-- Uploads that come in several requests and go on where they were. A row is also the note of bytes that are not a blob yet, so it
-- goes after them.
CREATE TABLE resumable_uploads (
    -- The id of its file. A part of a file that is still to be joined has an id of its own.
    id            UUID PRIMARY KEY,
    tenant_id     TEXT NOT NULL,
    user_id       TEXT NOT NULL,
    kind          TEXT NOT NULL,
    -- What its bytes are called in the storage.
    blob_key      TEXT NOT NULL,
    length        BIGINT NOT NULL,
    -- How many bytes are durable, and the states of the checksums over them.
    offset_bytes  BIGINT NOT NULL,
    hashes        TEXT NOT NULL,
    -- What else the storage needs to go on.
    stored        JSONB,
    -- As the client sent it.
    metadata      TEXT,
    concat        TEXT,
    -- The request that may write, and its process. Both count while that process is known.
    turn          UUID,
    worker_id     UUID,
    -- The newer request that waits for its end.
    wanted        UUID,
    -- The start of the machine that wrote last. Bytes that it wrote and did not sync are right as long as it runs.
    boot          TEXT NOT NULL,
    -- Whether bytes behind the offset were not compared with the checksum of their request.
    is_unverified BOOLEAN NOT NULL,
    -- When a part is given up. A file has its own deadline.
    expires_at    TIMESTAMPTZ,
    -- The upload that a part was joined into, and where it begins there.
    joined_into   UUID,
    joined_at     BIGINT,
    -- Only its bytes are left to be removed.
    is_over       BOOLEAN NOT NULL,
    created_at    TIMESTAMPTZ NOT NULL,
    updated_at    TIMESTAMPTZ NOT NULL,
    CONSTRAINT resumable_kind CHECK (kind IN ('whole', 'part', 'joined')),
    CONSTRAINT resumable_offset CHECK (offset_bytes >= 0 AND offset_bytes <= length),
    CONSTRAINT resumable_turn CHECK ((turn IS NULL) = (worker_id IS NULL)),
    CONSTRAINT resumable_part CHECK ((kind = 'part') = (expires_at IS NOT NULL)),
    CONSTRAINT resumable_joined CHECK ((joined_into IS NULL) = (joined_at IS NULL) AND (joined_into IS NULL OR kind = 'part'))
);
CREATE INDEX resumable_uploads_by_tenant ON resumable_uploads (tenant_id) WHERE kind = 'part';
CREATE INDEX resumable_uploads_joined ON resumable_uploads (joined_into, joined_at) WHERE joined_into IS NOT NULL;
