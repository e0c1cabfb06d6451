CREATE TABLE link_changes (       -- the Parquet files with changes that are laid over the links of organizations
    organization TEXT NOT NULL,
    path TEXT PRIMARY KEY,        -- relative to the lake
    bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    changed_ns INTEGER NOT NULL,  -- as of a visit file, like the three below
    inode INTEGER NOT NULL,
    checked_at TEXT NOT NULL,
    deletable_at TEXT,
    changes INTEGER NOT NULL,     -- how many it has
    since TEXT NOT NULL           -- when the first change since the file below was made
);
CREATE UNIQUE INDEX live_link_changes ON link_changes (organization) WHERE deletable_at IS NULL;
DROP VIEW registered_files;
CREATE VIEW registered_files AS
    SELECT path, deletable_at FROM files UNION ALL SELECT path, deletable_at FROM rollups
    UNION ALL SELECT path, deletable_at FROM links UNION ALL SELECT path, deletable_at FROM link_changes;
