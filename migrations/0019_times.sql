-- On SQLite, times become integers, the microseconds since 1970. They were texts, which cost more to write, to read and to
-- compare than all else in a row. PostgreSQL has a type for them.

-- [sqlite]
UPDATE batches SET created_at = landfall_microseconds(created_at), updated_at = landfall_microseconds(updated_at),
    expires_at = landfall_microseconds(expires_at), completed_at = landfall_microseconds(completed_at),
    progress_at = landfall_microseconds(progress_at), progress_due = landfall_microseconds(progress_due),
    receiving_until = landfall_microseconds(receiving_until);
UPDATE files SET run_after = landfall_microseconds(run_after), due_at = landfall_microseconds(due_at),
    claimed_at = landfall_microseconds(claimed_at), error_at = landfall_microseconds(error_at),
    retried_at = landfall_microseconds(retried_at), deletion_warned_at = landfall_microseconds(deletion_warned_at),
    upload_until = landfall_microseconds(upload_until), created_at = landfall_microseconds(created_at),
    updated_at = landfall_microseconds(updated_at), confirmed_at = landfall_microseconds(confirmed_at),
    ready_at = landfall_microseconds(ready_at), failed_at = landfall_microseconds(failed_at),
    deleted_at = landfall_microseconds(deleted_at), waiting_since = landfall_microseconds(waiting_since),
    blob_checked_at = landfall_microseconds(blob_checked_at),
    blob_damaged_at = landfall_microseconds(blob_damaged_at);
UPDATE events SET at = landfall_microseconds(at);
UPDATE artifacts SET created_at = landfall_microseconds(created_at);
UPDATE operations SET cursor_at = landfall_microseconds(cursor_at), created_at = landfall_microseconds(created_at),
    updated_at = landfall_microseconds(updated_at), ended_at = landfall_microseconds(ended_at);
UPDATE workers SET started_at = landfall_microseconds(started_at), heartbeat_at = landfall_microseconds(heartbeat_at);
UPDATE circuits SET failing_since = landfall_microseconds(failing_since), until = landfall_microseconds(until),
    last_up_at = landfall_microseconds(last_up_at), changed_at = landfall_microseconds(changed_at);
UPDATE rate_buckets SET next_at = landfall_microseconds(next_at), reported_at = landfall_microseconds(reported_at);
UPDATE paused_stages SET paused_at = landfall_microseconds(paused_at);
UPDATE hourly SET hour = landfall_microseconds(hour);
UPDATE job_schedules SET due_at = landfall_microseconds(due_at);
UPDATE job_runs SET started_at = landfall_microseconds(started_at), ended_at = landfall_microseconds(ended_at);
UPDATE alerts SET raised_at = landfall_microseconds(raised_at), delivered_at = landfall_microseconds(delivered_at);
UPDATE webhook_deliveries SET next_at = landfall_microseconds(next_at),
    first_attempt_at = landfall_microseconds(first_attempt_at),
    last_attempt_at = landfall_microseconds(last_attempt_at), created_at = landfall_microseconds(created_at),
    ended_at = landfall_microseconds(ended_at);
UPDATE program_versions SET since = landfall_microseconds(since);
UPDATE event_epochs SET began_at = landfall_microseconds(began_at);
UPDATE notifications SET created_at = landfall_microseconds(created_at), read_at = landfall_microseconds(read_at),
    resolved_at = landfall_microseconds(resolved_at);
UPDATE cleanup_failures SET first_at = landfall_microseconds(first_at), last_at = landfall_microseconds(last_at);
UPDATE idempotency_keys SET created_at = landfall_microseconds(created_at);
UPDATE throughput SET slot = landfall_microseconds(slot);
UPDATE orphan_scans SET scanned_at = landfall_microseconds(scanned_at);
UPDATE webhooks SET old_secret_until = landfall_microseconds(old_secret_until),
    disabled_at = landfall_microseconds(disabled_at), turn_at = landfall_microseconds(turn_at),
    failing_since = landfall_microseconds(failing_since), rest_until = landfall_microseconds(rest_until),
    created_at = landfall_microseconds(created_at), updated_at = landfall_microseconds(updated_at);
UPDATE api_keys SET created_at = landfall_microseconds(created_at), expires_at = landfall_microseconds(expires_at),
    last_used_at = landfall_microseconds(last_used_at), revoked_at = landfall_microseconds(revoked_at);
UPDATE audit_log SET at = landfall_microseconds(at);
UPDATE sessions SET created_at = landfall_microseconds(created_at), seen_at = landfall_microseconds(seen_at),
    expires_at = landfall_microseconds(expires_at);
UPDATE sign_in_links SET expires_at = landfall_microseconds(expires_at);
UPDATE arriving_uploads SET started_at = landfall_microseconds(started_at);
UPDATE resumable_uploads SET expires_at = landfall_microseconds(expires_at),
    created_at = landfall_microseconds(created_at), updated_at = landfall_microseconds(updated_at);
UPDATE reindexing SET started_at = landfall_microseconds(started_at), ended_at = landfall_microseconds(ended_at);
-- [both]
