-- One bit for each dimension of each vector, packed. A search by meaning scans these codes and reads only the vectors that
-- they find.

-- The codes of one owner and model, up to a few thousand in a row.
CREATE TABLE code_segments (
    id        {{identity}},
    tenant_id TEXT NOT NULL,
    user_id   TEXT NOT NULL,
    model     TEXT NOT NULL,
    -- How many codes there are.
    entries   BIGINT NOT NULL CONSTRAINT no_empty_segment CHECK (entries > 0),
    -- Random, and another after every change: a copy in memory is right exactly if its stamp is this one.
    stamp     BIGINT NOT NULL,
    -- The ids of the chunks, eight bytes each, and their codes in the same order.
    chunks    BYTEA NOT NULL,
    codes     BYTEA NOT NULL
);
CREATE INDEX code_segments_of_owner ON code_segments (tenant_id, user_id, model, entries, id, stamp);

-- The segments that the codes of a file are in, and how many of them.
CREATE TABLE coded_files (
    file_id UUID NOT NULL,
    segment BIGINT NOT NULL,
    entries BIGINT NOT NULL,
    PRIMARY KEY (file_id, segment)
);
CREATE INDEX coded_files_by_segment ON coded_files (segment, file_id, entries);

-- Files with vectors that have no codes yet: those from before there were codes. A search compares all of their vectors.
CREATE TABLE uncoded_files (
    file_id   UUID PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    user_id   TEXT NOT NULL
);
CREATE INDEX uncoded_files_by_owner ON uncoded_files (tenant_id, user_id);
INSERT INTO uncoded_files (file_id, tenant_id, user_id) SELECT id, tenant_id, user_id FROM files WHERE status = 'ready';
