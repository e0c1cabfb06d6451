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
    first_at TEXT NOT NULL,       -- the time of its first visit, and of its last; '' without any
    last_at TEXT NOT NULL,
    UNIQUE (organization, domain, sha256)
);
CREATE TABLE received (           -- when visits were reported: without a pause of hours between first and last
    organization TEXT NOT NULL,
    first_at TEXT NOT NULL,
    last_at TEXT NOT NULL
);
CREATE TABLE files (
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
    schema_version INTEGER NOT NULL,  -- of its visits
    behaviour_version INTEGER NOT NULL,  -- of what they were judged by, with all visits of their day; 0: not yet
    deletable_at TEXT             -- null: live; otherwise when nobody can be reading it any more
);
CREATE INDEX live_files ON files (organization, day) WHERE deletable_at IS NULL;
CREATE TABLE pending (            -- acknowledged, not yet in a Parquet file
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never twice: whoever moved it would take another for it
    organization TEXT NOT NULL,
    visits INTEGER NOT NULL,
    received_at TEXT NOT NULL,
    body BLOB NOT NULL,           -- packed column by column, as packing.py says
    zone TEXT NOT NULL            -- in which the visits are dated
);
CREATE TABLE zones (              -- of organizations that do not use UTC
    organization TEXT PRIMARY KEY,
    zone TEXT NOT NULL            -- a name of the tz database
) WITHOUT ROWID;
CREATE TABLE epochs (
    organization TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL        -- how often what had landed was changed afterwards
) WITHOUT ROWID;
CREATE TABLE behaviour_off (      -- answers of these organizations take visits as they landed
    organization TEXT PRIMARY KEY
) WITHOUT ROWID;
CREATE TABLE erasures (           -- which could be undone by importing a log again
    organization TEXT NOT NULL,
    erased_at TEXT NOT NULL,
    short_code TEXT,              -- null: visits of any link, of one visitor
    first_day TEXT NOT NULL,      -- of the days that were searched
    last_day TEXT NOT NULL
);
CREATE TABLE rollups (
    id INTEGER PRIMARY KEY,
    organization TEXT NOT NULL,
    month TEXT NOT NULL,          -- its first day
    version TEXT NOT NULL,        -- of how it was counted
    path TEXT NOT NULL UNIQUE,    -- relative to the lake
    bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    changed_ns INTEGER NOT NULL,  -- as of a visit file, like the three below
    inode INTEGER NOT NULL,
    checked_at TEXT NOT NULL,
    deletable_at TEXT,
    sources TEXT NOT NULL,        -- the paths of the visit files of each day, as JSON
    days_without_domains TEXT NOT NULL  -- days that have no rows for single domains, as JSON
);
CREATE UNIQUE INDEX live_rollups ON rollups (organization, month) WHERE deletable_at IS NULL;
CREATE TABLE links (              -- the Parquet files with the links of organizations
    organization TEXT NOT NULL,
    path TEXT PRIMARY KEY,        -- relative to the lake
    bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    changed_ns INTEGER NOT NULL,  -- as of a visit file, like the three below
    inode INTEGER NOT NULL,
    checked_at TEXT NOT NULL,
    deletable_at TEXT
);
CREATE UNIQUE INDEX live_links ON links (organization) WHERE deletable_at IS NULL;
CREATE VIEW registered_files AS
    SELECT path, deletable_at FROM files UNION ALL SELECT path, deletable_at FROM rollups
    UNION ALL SELECT path, deletable_at FROM links;
CREATE TABLE copies (             -- where visits were published: erasures must reach them
    target TEXT NOT NULL,         -- a folder or s3://bucket/prefix
    organization TEXT NOT NULL,
    version INTEGER NOT NULL,     -- of the log of its visits, -1 before the first
    published_at TEXT,            -- when it was last what the manifest says
    erasures INTEGER NOT NULL,    -- how often visits were erased since it was begun
    followed INTEGER NOT NULL,    -- and how many of these it follows
    due_since TEXT,               -- when the first one was that it does not follow; null: it follows all
    PRIMARY KEY (target, organization)
) WITHOUT ROWID;
CREATE TABLE marks (              -- one row: the random name of this lake where it is published
    id INTEGER PRIMARY KEY CHECK (id = 1),
    mark TEXT NOT NULL
);
CREATE TABLE last_runs (          -- when tasks that depend on the clock were last run
    task TEXT PRIMARY KEY,
    at TEXT NOT NULL
);
CREATE TABLE generation (         -- one row
    number INTEGER NOT NULL,      -- of changes that were committed
    files INTEGER NOT NULL,       -- how many rows the table has, and batches likewise
    batches INTEGER NOT NULL
);
INSERT INTO generation VALUES (0, 0, 0);
CREATE TRIGGER file_added AFTER INSERT ON files BEGIN UPDATE generation SET files = files + 1; END;
CREATE TRIGGER file_removed AFTER DELETE ON files BEGIN UPDATE generation SET files = files - 1; END;
CREATE TRIGGER batch_added AFTER INSERT ON batches BEGIN UPDATE generation SET batches = batches + 1; END;
CREATE TRIGGER batch_removed AFTER DELETE ON batches BEGIN UPDATE generation SET batches = batches - 1; END;
CREATE TABLE arrivals (           -- visits by the hour from what goes on: a log that is followed, or reports
    organization TEXT NOT NULL,
    source TEXT NOT NULL,         -- follow or report
    domain TEXT NOT NULL,         -- what --domain said of a followed log, otherwise ''
    hour INTEGER NOT NULL,        -- since 1970, UTC
    visits INTEGER NOT NULL,
    PRIMARY KEY (organization, source, domain, hour)
) WITHOUT ROWID;
CREATE TABLE objects (            -- versions of log objects in buckets and drop folders that were read
    organization TEXT NOT NULL,
    bucket TEXT NOT NULL,         -- s3://bucket, or file:// for files
    key TEXT NOT NULL,
    etag TEXT NOT NULL,
    batch INTEGER NOT NULL REFERENCES batches (id),  -- that landed this content, maybe of another object
    PRIMARY KEY (organization, bucket, key, etag)
) WITHOUT ROWID;
CREATE INDEX objects_of_batches ON objects (batch);
CREATE INDEX contents ON batches (organization, sha256);
