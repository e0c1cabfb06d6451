-- Why a copy was not published last time.
ALTER TABLE copies ADD COLUMN problem TEXT NOT NULL DEFAULT '';
-- Whether objects are put, or were when a program ended.
ALTER TABLE copies ADD COLUMN is_putting INTEGER NOT NULL DEFAULT 0;
-- Until when what was put then may appear; null: nothing may.
ALTER TABLE copies ADD COLUMN settles_at TEXT;
-- The SHA-256 of the names of its files of visits; '': unknown.
ALTER TABLE copies ADD COLUMN content TEXT NOT NULL DEFAULT '';
CREATE TABLE beginnings (          -- of contents of log objects, by which a shorter content of their keys is known
    batch INTEGER PRIMARY KEY REFERENCES batches (id),
    hashes BLOB NOT NULL           -- 4 bytes of the SHA-256 of each
);
