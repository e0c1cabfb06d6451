CREATE TABLE files_aside (          -- organizations whose answers leave out files
    organization TEXT PRIMARY KEY
) WITHOUT ROWID;
CREATE TABLE exclusions (           -- visits of its owner, which an organization does not count
    organization TEXT NOT NULL,
    kind TEXT NOT NULL,             -- address, agent, path
    value TEXT NOT NULL,
    added_at TEXT NOT NULL,
    PRIMARY KEY (organization, kind, value)
) WITHOUT ROWID;
