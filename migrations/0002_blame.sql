-- Who is to blame for a failure: a service that is down, a document that a service cannot process, or a document that
-- ends the process that works on it.

-- Counts the changes of state. A call reports with the round that it began in.
ALTER TABLE circuits ADD COLUMN round BIGINT NOT NULL DEFAULT 0;
-- The files whose failures are counted: each counts once.
ALTER TABLE circuits ADD COLUMN failing_files JSONB NOT NULL DEFAULT '[]';
ALTER TABLE circuits ADD COLUMN last_error TEXT;

-- Since when a file waits for a service that fails it at no cost, and how many calls that were.
ALTER TABLE files ADD COLUMN waiting_since TIMESTAMPTZ;
ALTER TABLE files ADD COLUMN waits BIGINT NOT NULL DEFAULT 0;
-- Tells the calls of one attempt from those after a retry by a person or after an outage.
ALTER TABLE files ADD COLUMN generation BIGINT NOT NULL DEFAULT 0;

-- Whether the holder has noted that it works on the file. It does so only for a file that a worker died with.
ALTER TABLE files ADD COLUMN begun BOOLEAN NOT NULL DEFAULT FALSE;
-- How many workers died while they worked on it, and how many of them worked on nothing else.
ALTER TABLE files ADD COLUMN deaths BIGINT NOT NULL DEFAULT 0;
ALTER TABLE files ADD COLUMN deaths_alone BIGINT NOT NULL DEFAULT 0;
-- Claimed only by a worker that holds nothing else. Such a file is never marked as due.
ALTER TABLE files ADD COLUMN is_alone BOOLEAN NOT NULL DEFAULT FALSE;

CREATE INDEX files_alone ON files (next_stage, run_after) WHERE status = 'queued' AND is_alone;
