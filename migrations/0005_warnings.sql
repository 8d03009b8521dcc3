-- What is missing of a file that could be read otherwise: a list of {code, message, page}, in the order of the reader.
-- The extraction replaces it. NULL where nothing is missing.
ALTER TABLE files ADD COLUMN warnings JSONB;
-- How many these are, so that a list of files need not read them.
ALTER TABLE files ADD COLUMN warning_count BIGINT NOT NULL DEFAULT 0
    CONSTRAINT warnings_exactly_when_counted
        CHECK (warning_count >= 0 AND (warning_count > 0) = (warnings IS NOT NULL));
