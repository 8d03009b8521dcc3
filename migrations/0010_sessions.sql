-- People who are signed in on the page. A browser keeps the id in a cookie, and only its hash is here: a copy of the
-- database lets no person in.
CREATE TABLE sessions (
    -- The SHA-256 of the id, in hexadecimal.
    id         TEXT PRIMARY KEY,
    tenant_id  TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    role       TEXT NOT NULL,
    -- How the person signed in: with the identity provider, a one-time link or a token.
    origin     TEXT NOT NULL CHECK (origin IN ('provider', 'link', 'token')),
    created_at TIMESTAMPTZ NOT NULL,
    -- When the person last did something.
    seen_at    TIMESTAMPTZ NOT NULL,
    -- When the session ends, whatever the person does.
    expires_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX sessions_by_user ON sessions (tenant_id, user_id, seen_at);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

-- Links that sign a person in once. A used one has no row any more.
CREATE TABLE sign_in_links (
    -- The SHA-256 of the code in the link, in hexadecimal.
    code       TEXT PRIMARY KEY,
    tenant_id  TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    role       TEXT NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX sign_in_links_by_expiry ON sign_in_links (expires_at);
