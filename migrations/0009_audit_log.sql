-- What administrators and operators did, and which requests were refused for lack of permission.
CREATE TABLE audit_log (
    id            {{identity}},
    at            TIMESTAMPTZ NOT NULL,
    -- Who it was. Empty if that is not known, because the request had no valid credential.
    actor_tenant  TEXT NOT NULL,
    actor_user    TEXT NOT NULL,
    actor_role    TEXT,
    -- How they were known: token, session, ticket, or the id of an API key.
    credential    TEXT,
    address       TEXT,
    request_id    TEXT,
    -- The operation of the API, its method and path.
    action        TEXT NOT NULL,
    method        TEXT NOT NULL,
    path          TEXT NOT NULL,
    -- Whose it was, where that is known.
    target_tenant TEXT,
    target_user   TEXT,
    -- started: written before the action. If it stays so, the process ended during the action.
    outcome       TEXT NOT NULL CHECK (outcome IN ('started', 'done', 'failed', 'refused')),
    status        BIGINT,
    code          TEXT
);
CREATE INDEX audit_log_by_age ON audit_log (at);
CREATE INDEX audit_log_of_actor ON audit_log (actor_tenant, id);
CREATE INDEX audit_log_of_target ON audit_log (target_tenant, id) WHERE target_tenant IS NOT NULL;
