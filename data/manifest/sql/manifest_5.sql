-- How many visits each rule has set aside as they landed.
ALTER TABLE exclusions ADD COLUMN visits INTEGER NOT NULL DEFAULT 0;
