-- What operators see of the server's own work.

-- How each run of a maintenance job ended. NULL while it has not.
ALTER TABLE job_runs ADD COLUMN outcome TEXT
    CONSTRAINT known_outcome CHECK (outcome IN ('completed', 'failed', 'interrupted'));
-- A run that another process ended has no metrics, and one that did not come to its end has none in them.
UPDATE job_runs SET outcome = CASE
        WHEN metrics IS NULL OR CAST(errors AS TEXT) LIKE '%the process was stopped before the end%' THEN 'interrupted'
        WHEN CAST(metrics AS TEXT) = '{}' AND CAST(errors AS TEXT) <> '[]' THEN 'failed'
        ELSE 'completed'
    END
    WHERE ended_at IS NOT NULL;

-- Re-embedding the files of another model: the one that is under way, or the last.
CREATE TABLE reindexing (
    only_one   BOOLEAN PRIMARY KEY CHECK (only_one),
    id         UUID NOT NULL,
    -- The model, without its dimensions, that files get vectors of. A process with another model leaves the work alone.
    model      TEXT NOT NULL,
    total      BIGINT NOT NULL CHECK (total >= 0),
    done       BIGINT NOT NULL DEFAULT 0 CHECK (done >= 0),
    failed     BIGINT NOT NULL DEFAULT 0 CHECK (failed >= 0),
    started_by TEXT NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    -- The process that does it. Once that is not known any more, another takes it.
    worker     UUID,
    ended_at   TIMESTAMPTZ,
    -- How it ended, or what it waits for.
    message    TEXT
);
