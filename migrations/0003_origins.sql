-- Where the data comes from: which programs wrote it, and whether it is a restored copy.

-- The versions of Landfall that have opened this database, in their order. A program that cannot use the database tells
-- its reader which one can.
CREATE TABLE program_versions (
    number         {{identity}},
    version        TEXT NOT NULL,
    schema_version BIGINT NOT NULL,
    since          TIMESTAMPTZ NOT NULL
);

-- The epochs of the events. A database that finds itself restored from a backup begins a new one, because the events after
-- the backup are lost, and clients may have seen them.
CREATE TABLE event_epochs (
    -- The first id that an event of this epoch can have. Ids of two epochs never meet, also if one of them is lost.
    first_id        BIGINT PRIMARY KEY,
    epoch           UUID NOT NULL,
    -- The last id that had been taken when it began.
    last_id_before  BIGINT NOT NULL,
    -- Where the database was then, and the generation of the storage's mark. If either does not fit any more, it was
    -- restored.
    place           TEXT NOT NULL,
    mark_generation BIGINT NOT NULL,
    reason          TEXT NOT NULL CHECK (reason IN ('created', 'restored')),
    began_at        TIMESTAMPTZ NOT NULL,
    CONSTRAINT epochs_do_not_overlap CHECK (first_id > last_id_before OR reason = 'created')
);
