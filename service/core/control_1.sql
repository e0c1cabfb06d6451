CREATE TABLE keys (
    id TEXT PRIMARY KEY,           -- the first characters of the key, to tell keys apart
    sha256 TEXT NOT NULL UNIQUE,   -- of the whole key, which is nowhere kept
    organization TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at TEXT NOT NULL,      -- as service/clock.py writes it, as are all times
    created_by TEXT,               -- the identity provider's name of who made it by HTTP, null for the command line
    last_used_at TEXT,             -- to the hour
    expires_at TEXT,               -- null: never
    revoked_at TEXT
);
CREATE TABLE sessions (            -- of browsers that are signed in to the pages
    id TEXT PRIMARY KEY,           -- to tell sessions apart; not what the cookie contains
    sha256 TEXT NOT NULL UNIQUE,   -- of the cookie's value, which is nowhere kept
    organization TEXT NOT NULL,
    role TEXT NOT NULL,
    kind TEXT NOT NULL,            -- link, key or oidc
    key_id TEXT,                   -- of the key that it was made with, and ends with
    subject TEXT,                  -- `sub` of the identity provider's user who signed in, null for links and keys
    created_at TEXT NOT NULL,
    last_seen_at TEXT NOT NULL,    -- to the hour
    expires_at TEXT NOT NULL,
    revoked_at TEXT
);
CREATE INDEX sessions_of_organization ON sessions (organization, created_at);
CREATE TABLE sign_in_links (
    sha256 TEXT PRIMARY KEY,       -- of the link's code, which is nowhere kept
    organization TEXT NOT NULL,
    role TEXT NOT NULL,
    days INTEGER NOT NULL,         -- how long its session is valid
    is_reusable INTEGER NOT NULL,  -- 1: of the demo, valid until it ends
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    used_at TEXT
);
CREATE TABLE sign_ins (            -- that browsers began at the identity provider and have not finished
    sha256 TEXT PRIMARY KEY,       -- of the state and the browser's cookie together, which are nowhere kept
    target TEXT NOT NULL,          -- the page to go to afterwards
    expires_at TEXT NOT NULL
);
CREATE TABLE shares (              -- links that show an organization's numbers to whoever has them
    id TEXT PRIMARY KEY,           -- to tell shares apart; not what the link contains
    sha256 TEXT NOT NULL UNIQUE,   -- of the link's secret, which is nowhere kept
    organization TEXT NOT NULL,
    name TEXT NOT NULL,
    filters TEXT NOT NULL,         -- that it is fixed to, as a query string of the API: range=30d&domain=go.example
    embedders TEXT NOT NULL,       -- the origins whose pages may embed it, separated by spaces
    created_at TEXT NOT NULL,
    created_by TEXT NOT NULL,
    last_used_at TEXT,             -- to the hour
    expires_at TEXT,               -- null: never
    revoked_at TEXT
);
CREATE INDEX shares_of_organization ON shares (organization, created_at);
CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    organization TEXT NOT NULL,
    type TEXT NOT NULL,
    status TEXT NOT NULL,
    title TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    priority TEXT NOT NULL DEFAULT 'low',  -- the defaults are for jobs that other programs insert
    domain TEXT,                   -- of the request that it is about: strangers' text, as are the two below
    short_code TEXT,
    path TEXT,
    summary TEXT NOT NULL DEFAULT '',
    action_id TEXT,
    action_label TEXT,
    evidence_rows INTEGER NOT NULL DEFAULT 0,
    implementation_type TEXT,
    implementation_number INTEGER, -- of the implementation in force
    outcome_status TEXT NOT NULL DEFAULT 'none',
    outcome TEXT,                  -- JSON
    last_detected_at TEXT,
    version INTEGER NOT NULL DEFAULT 1,  -- one more with every write
    fingerprint TEXT,              -- SHA-256 of what a detector found; null: written by somebody
    weight REAL NOT NULL DEFAULT 0,
    subject TEXT NOT NULL DEFAULT '{}',  -- the columns that name what was found, as JSON
    evidence TEXT,                 -- JSON of at most 64 KiB
    written_by TEXT
);
CREATE INDEX jobs_newest_first ON jobs (organization, created_at DESC, id DESC);
CREATE UNIQUE INDEX open_fingerprints ON jobs (organization, fingerprint)
    WHERE status IN ('new', 'reviewed', 'approved', 'sent');
CREATE TABLE job_history (         -- the lines that MAX_STORED_HISTORY tells of
    id INTEGER PRIMARY KEY,
    job_id TEXT NOT NULL REFERENCES jobs (id),
    at TEXT NOT NULL,
    actor TEXT NOT NULL,
    actor_kind TEXT NOT NULL,      -- user, key, command_line or system
    action TEXT NOT NULL,
    from_status TEXT,
    to_status TEXT NOT NULL,
    note TEXT,
    version INTEGER NOT NULL       -- of the job afterwards
);
CREATE INDEX history_of_job ON job_history (job_id, id);
CREATE TABLE implementations (
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
) WITHOUT ROWID;
CREATE TABLE detection_runs (      -- of all detectors over the 28 days before `day`
    organization TEXT NOT NULL,
    day TEXT NOT NULL,
    rules_version TEXT NOT NULL,
    findings INTEGER NOT NULL,
    ms INTEGER NOT NULL,
    ended_at TEXT NOT NULL,
    PRIMARY KEY (organization, day)
) WITHOUT ROWID;
CREATE TABLE hooks (
    id TEXT PRIMARY KEY,           -- hook_ and 20 hexadecimal digits
    organization TEXT NOT NULL,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    events TEXT NOT NULL,          -- the names of those that are sent to it, as JSON
    active INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    created_by TEXT,               -- key id or `sub` of who made it by HTTP, null for the command line
    secret TEXT NOT NULL,          -- as it is, since messages are signed with it
    secret_rotated_at TEXT,
    previous_secret TEXT,          -- with which messages are also signed until previous_secret_until
    previous_secret_until TEXT,
    last_success_at TEXT,
    last_failure_at TEXT,
    failing_since TEXT,            -- of the first failure after the last success
    consecutive_failures INTEGER NOT NULL DEFAULT 0,
    paused_until TEXT,             -- nothing is sent before: its receiver failed, or asked for a pause
    turn INTEGER NOT NULL DEFAULT 0,  -- rises with each attempt: the organization with the lowest is next
    disabled_reason TEXT           -- null unless the service made it inactive
);
CREATE INDEX hooks_of_organization ON hooks (organization, created_at);
CREATE TABLE deliveries (          -- the outbox: one row for each message to each hook
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,       -- evt_ and 20 hexadecimal digits: the header webhook-id
    hook_id TEXT NOT NULL,
    organization TEXT NOT NULL,
    event TEXT NOT NULL,
    job_id TEXT,                   -- null for hook.test
    body BLOB NOT NULL,            -- sent as it is
    is_replaceable INTEGER NOT NULL,  -- 1: what the service found; while it waits, what it finds next replaces it
    status TEXT NOT NULL,          -- pending, delivered or dead
    attempts INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    due_at TEXT NOT NULL,          -- of the next attempt
    claimed_until TEXT,            -- a sender is at it until then; if it dies, the row is due again
    attempted_at TEXT,             -- the last time, as are the three below
    status_code INTEGER,
    error TEXT,
    ms INTEGER,
    finished_at TEXT               -- null while pending
);
CREATE INDEX deliveries_pending ON deliveries (hook_id, due_at, number, is_replaceable) WHERE status = 'pending';
CREATE INDEX deliveries_touched ON deliveries (hook_id, coalesce(attempted_at, created_at))
    WHERE status = 'pending';
CREATE INDEX deliveries_claimed ON deliveries (hook_id, claimed_until) WHERE claimed_until IS NOT NULL;
CREATE INDEX deliveries_finished ON deliveries (status, finished_at);
CREATE INDEX deliveries_of_hook ON deliveries (hook_id, number);
CREATE INDEX deliveries_of_job ON deliveries (job_id, number);
CREATE TABLE server_address (      -- at most one row: where the links of messages begin, whoever writes them
    url TEXT NOT NULL
);
CREATE TABLE weekly_mails (        -- reports that were mailed, noted before each is sent
    organization TEXT NOT NULL,
    first_day TEXT NOT NULL,       -- of the week: a Monday
    noted_at TEXT NOT NULL,
    PRIMARY KEY (organization, first_day)
) WITHOUT ROWID;
