-- Keys of programs. A key is shown once, when it is created; here is only its hash.
CREATE TABLE api_keys (
    id           UUID PRIMARY KEY,
    tenant_id    TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    role         TEXT NOT NULL CHECK (role IN ('member', 'tenant_admin', 'operator')),
    -- What it may be used for: a list of read, upload, manage, admin.
    scopes       JSONB NOT NULL,
    name         TEXT NOT NULL,
    -- SHA-256 of the key, in hexadecimal.
    hash         TEXT NOT NULL UNIQUE,
    -- Its first characters, by which people recognise it.
    hint         TEXT NOT NULL,
    -- Who created it: a user of a tenant.
    creator_tenant TEXT NOT NULL,
    creator_user   TEXT NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL,
    -- NULL: never.
    expires_at   TIMESTAMPTZ,
    -- To the minute.
    last_used_at TIMESTAMPTZ,
    last_used_from TEXT,
    revoked_at   TIMESTAMPTZ,
    revoked_by   TEXT,
    CONSTRAINT revoked_by_a_user CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
);
CREATE INDEX api_keys_by_user ON api_keys (tenant_id, user_id, id);
CREATE INDEX api_keys_revoked ON api_keys (revoked_at) WHERE revoked_at IS NOT NULL;
