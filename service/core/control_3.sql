-- With a rowid, as a search in a table without one reads the whole content of every row that it compares.
CREATE TABLE stored_implementations (
    job_id TEXT NOT NULL REFERENCES jobs (id),
    number INTEGER NOT NULL,       -- from 1
    implementation_type TEXT NOT NULL,
    content_type TEXT,
    sha256 TEXT,
    bytes INTEGER,
    url TEXT,
    status TEXT NOT NULL,
    note TEXT,
    attached_by TEXT NOT NULL,
    attached_at TEXT NOT NULL,
    shipped_at TEXT,
    content BLOB,                  -- null: elsewhere, or deleted with the evidence
    PRIMARY KEY (job_id, number)
);
INSERT INTO stored_implementations SELECT * FROM implementations;
DROP TABLE implementations;
ALTER TABLE stored_implementations RENAME TO implementations;
CREATE INDEX stored_contents ON implementations (job_id, bytes) WHERE content IS NOT NULL;
