-- A wait is measured for each service apart: a moment without the database does not end the long wait for another service.

-- For how long the file has waited at its stage for each service, in microseconds, until its last failure. NULL: all of the
-- time since `waiting_since` was for the service that failed it last.
ALTER TABLE files ADD COLUMN waited_for JSONB;
