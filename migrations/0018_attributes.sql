-- The attributes of files, for searches that are narrowed by them. The value is a text: numbers and booleans as JSON writes them.
CREATE TABLE file_attributes (
    tenant_id TEXT NOT NULL,
    user_id   TEXT NOT NULL,
    name      TEXT NOT NULL,
    value     TEXT NOT NULL,
    file_id   UUID NOT NULL REFERENCES files (id) ON DELETE CASCADE,
    PRIMARY KEY (tenant_id, user_id, name, value, file_id)
);
CREATE INDEX file_attributes_by_file ON file_attributes (file_id);

-- [sqlite]
INSERT INTO file_attributes (tenant_id, user_id, name, value, file_id)
SELECT f.tenant_id, f.user_id, a.key,
       CASE a.type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE CAST(a.value AS TEXT) END, f.id
FROM files f, json_each(f.attributes) AS a
WHERE f.deleted_at IS NULL AND json_type(f.attributes) = 'object' AND a.value IS NOT NULL;
-- [postgres]
INSERT INTO file_attributes (tenant_id, user_id, name, value, file_id)
SELECT f.tenant_id, f.user_id, a.key, a.value, f.id FROM files f, jsonb_each_text(f.attributes) AS a
WHERE f.deleted_at IS NULL AND jsonb_typeof(f.attributes) = 'object' AND a.value IS NOT NULL;
-- [both]
