-- The bits of the facts of the request that some of its visits have.
ALTER TABLE files ADD COLUMN facts INTEGER NOT NULL DEFAULT 0;
