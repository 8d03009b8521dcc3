-- A file's row is checked with comparisons and not with lists. SQLite builds a temporary table from each list, once for every
-- row that it changes: several for one step of a file, which took nearly as long as the rest of the step. The conditions are
-- the same ones in other words, so nothing that is stored changes; PostgreSQL reads a list as an array and stays as it is.

-- [sqlite]
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(sql,
        'status IN (''registered'', ''uploaded'', ''queued'', ''scanning'', ''extracting'',
                      ''chunking'', ''embedding'', ''ready'', ''failed'', ''cancelled'', ''deleted'')',
        'status = ''ready'' OR status = ''queued'' OR status = ''extracting'' OR status = ''chunking''
            OR status = ''embedding'' OR status = ''scanning'' OR status = ''registered'' OR status = ''uploaded''
            OR status = ''failed'' OR status = ''cancelled'' OR status = ''deleted'''),
        'next_stage IN (''scan'', ''extract'', ''chunk'', ''embed'')',
        'next_stage = ''extract'' OR next_stage = ''chunk'' OR next_stage = ''embed'' OR next_stage = ''scan'''),
        'status IN (''scanning'', ''extracting'', ''chunking'', ''embedding'')',
        'status = ''extracting'' OR status = ''chunking'' OR status = ''embedding'' OR status = ''scanning'''),
        'status IN (''registered'', ''uploaded'', ''deleted'')',
        'status = ''registered'' OR status = ''uploaded'' OR status = ''deleted'''),
        'status IN (''queued'', ''scanning'', ''extracting'', ''chunking'', ''embedding'')',
        'status = ''queued'' OR status = ''extracting'' OR status = ''chunking'' OR status = ''embedding''
            OR status = ''scanning''')
    WHERE type = 'table' AND name = 'files';
DROP INDEX files_at_rest;
-- Reads the changed text.
PRAGMA writable_schema = RESET;
CREATE INDEX files_at_rest ON files (tenant_id, user_id, idle_status, id)
    WHERE idle_status = 'ready' OR idle_status = 'failed' OR idle_status = 'cancelled';
-- [both]
