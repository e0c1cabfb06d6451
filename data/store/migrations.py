"""The tables of the manifest, version by version. What is done with them is in manifest.py and pending.py."""

from typing import Final

MIGRATIONS: Final = (
    """
    CREATE TABLE batches (
        id INTEGER PRIMARY KEY,
        organization TEXT NOT NULL,
        domain TEXT NOT NULL,         -- what --domain said, '' when it said nothing
        sha256 TEXT NOT NULL,         -- of the log's decompressed content
        bytes INTEGER NOT NULL,       -- its length
        whole_bytes INTEGER NOT NULL, -- up to the end of its last finished line
        visits INTEGER NOT NULL,      -- landed by this batch
        log_format TEXT NOT NULL,     -- of its finished lines, auto without any; a grown log keeps it
        imported_at TEXT NOT NULL,
        UNIQUE (organization, domain, sha256)
    );
    CREATE TABLE files (
        id INTEGER PRIMARY KEY,
        batch INTEGER NOT NULL REFERENCES batches (id),
        organization TEXT NOT NULL,
        day TEXT NOT NULL,
        path TEXT NOT NULL UNIQUE,    -- relative to the lake
        visits INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        mtime_ns INTEGER NOT NULL,
        inode INTEGER NOT NULL,
        unfinished INTEGER NOT NULL,  -- 1: holds the visit of a last line without its newline
        dead_at TEXT
    );
    CREATE INDEX live_files ON files (organization, day) WHERE dead_at IS NULL;
    """,
    """
    CREATE TABLE epochs (
        organization TEXT PRIMARY KEY,
        epoch INTEGER NOT NULL        -- how often what had landed was changed afterwards
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE landed_files (
        id INTEGER PRIMARY KEY,
        organization TEXT NOT NULL,
        day TEXT NOT NULL,
        path TEXT NOT NULL UNIQUE,    -- relative to the lake
        visits INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        changed_ns INTEGER NOT NULL,  -- st_ctime_ns when the bytes were last found to be what was written
        inode INTEGER NOT NULL,
        checked_at TEXT NOT NULL,     -- and when that was
        unfinished_of INTEGER REFERENCES batches (id),  -- holds the visit of that log's last line, without a newline
        deletable_at TEXT             -- null: live; otherwise when nobody can be reading it any more
    );
    INSERT INTO landed_files
        SELECT id, organization, day, path, visits, bytes, sha256, 0, inode, '', iif(unfinished, batch, NULL), dead_at
        FROM files;
    DROP TABLE files;
    ALTER TABLE landed_files RENAME TO files;
    CREATE INDEX live_files ON files (organization, day) WHERE deletable_at IS NULL;
    CREATE TABLE pending (            -- acknowledged, not yet in a Parquet file
        id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never twice: whoever moved it would take another for it
        organization TEXT NOT NULL,
        visits INTEGER NOT NULL,
        received_at TEXT NOT NULL,
        body BLOB NOT NULL            -- an Arrow stream of `day` and the columns of VISITS
    );
    """,
    """
    CREATE TABLE cubes (
        id INTEGER PRIMARY KEY,
        organization TEXT NOT NULL,
        month TEXT NOT NULL,          -- its first day
        version TEXT NOT NULL,        -- of how it was counted
        path TEXT NOT NULL UNIQUE,    -- relative to the lake
        bytes INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        changed_ns INTEGER NOT NULL,  -- st_ctime_ns when the bytes were last found to be what was written
        inode INTEGER NOT NULL,
        checked_at TEXT NOT NULL,     -- and when that was
        sources TEXT NOT NULL,        -- the paths of the visit files of each day, as JSON
        deletable_at TEXT             -- null: live; otherwise when nobody can be reading it any more
    );
    CREATE UNIQUE INDEX live_cubes ON cubes (organization, month) WHERE deletable_at IS NULL;
    """,
)
"""Entry n takes a manifest from version n to n + 1. Entries are only ever added."""
