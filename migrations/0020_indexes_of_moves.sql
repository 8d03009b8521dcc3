-- A file passes through its stages without a change in any index of its row: PostgreSQL then writes the row beside its old
-- version and no index at all. So no index has the status or the next stage, which change with each stage.

-- The stage that a file in the queue waits at.
ALTER TABLE files ADD COLUMN queue_stage TEXT
    GENERATED ALWAYS AS (CASE WHEN status = 'queued' THEN next_stage END) {{generated}};
-- The status of a file that no worker has and none may take.
ALTER TABLE files ADD COLUMN idle_status TEXT
    GENERATED ALWAYS AS (CASE WHEN status IN ('queued', 'scanning', 'extracting', 'chunking', 'embedding') THEN NULL
                              ELSE status END) {{generated}};

DROP INDEX files_claimable;
CREATE INDEX files_claimable ON files (queue_stage, tenant_id, user_id, priority, run_after) WHERE is_due;
DROP INDEX files_not_due;
CREATE INDEX files_not_due ON files (run_after) WHERE queue_stage IS NOT NULL AND NOT is_due;
DROP INDEX files_alone;
CREATE INDEX files_alone ON files (queue_stage, run_after) WHERE queue_stage IS NOT NULL AND is_alone;
DROP INDEX files_failed_before;
CREATE INDEX files_failed_before ON files (error_at) WHERE queue_stage IS NOT NULL AND error_code IS NOT NULL;
DROP INDEX files_at_rest;
CREATE INDEX files_at_rest ON files (tenant_id, user_id, idle_status, id)
    WHERE idle_status IN ('ready', 'failed', 'cancelled');
DROP INDEX files_to_confirm;
CREATE INDEX files_to_confirm ON files (tenant_id, user_id, idle_status, id) WHERE upload_until IS NOT NULL;
DROP INDEX files_by_batch;
CREATE INDEX files_by_batch ON files (batch_id, idle_status) WHERE batch_id IS NOT NULL;

-- [postgres]
-- Room for the new version of a row on the page of the old one.
ALTER TABLE files SET (fillfactor = 70);
-- [both]
