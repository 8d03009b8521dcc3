-- Files by what their bytes are, for clients that ask before they send: those that arrived, and those that were declared.
CREATE INDEX files_by_md5 ON files (COALESCE(md5, declared_md5), tenant_id, user_id) WHERE deleted_at IS NULL;
