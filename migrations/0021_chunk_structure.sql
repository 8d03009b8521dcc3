-- The headings that a chunk is under, from the top of the document down: a list of texts. NULL in chunks of earlier versions.
ALTER TABLE chunks ADD COLUMN headings JSONB;
-- Where a chunk is on its pages: a list of {page, area}. NULL where the reader does not know that.
ALTER TABLE chunks ADD COLUMN places JSONB;
