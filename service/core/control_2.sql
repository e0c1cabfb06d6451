CREATE TABLE redirect_rules (      -- of implementations that are redirects, until they are withdrawn
    organization TEXT NOT NULL,
    job_id TEXT NOT NULL REFERENCES jobs (id),
    number INTEGER NOT NULL,       -- of the implementation
    domain TEXT NOT NULL,          -- a host, or * for every host
    path TEXT NOT NULL,
    target TEXT NOT NULL,
    status INTEGER NOT NULL,       -- 301, 302, 307 or 308
    PRIMARY KEY (organization, job_id, number)
) WITHOUT ROWID;
INSERT INTO redirect_rules
    WITH members AS (              -- of equal names, the last one counts
        SELECT organization, job_id, number, key, member.value, max(member.id)
        FROM jobs JOIN implementations ON job_id = jobs.id, json_each(CAST(content AS TEXT)) AS member
        WHERE content_type = 'application/json' AND implementations.status <> 'withdrawn' AND content IS NOT NULL
            AND json_valid(CAST(content AS TEXT))
        GROUP BY organization, job_id, number, key)
    SELECT organization, job_id, number, domain, path, target, status FROM (
        SELECT organization, job_id, number,
            max(value) FILTER (WHERE key = 'domain') AS domain, max(value) FILTER (WHERE key = 'from') AS path,
            max(value) FILTER (WHERE key = 'to') AS target, max(value) FILTER (WHERE key = 'status') AS status
        FROM members GROUP BY organization, job_id, number)
    WHERE domain IS NOT NULL AND path IS NOT NULL AND target IS NOT NULL AND status IS NOT NULL;
CREATE TABLE redirect_versions (   -- of what GET /implementations/active answers
    organization TEXT PRIMARY KEY,
    version TEXT NOT NULL          -- random, another one whenever a redirect is shipped or withdrawn
) WITHOUT ROWID;
CREATE TABLE wanted_links (        -- that attached redirects ask for, and that are not written yet
    id TEXT PRIMARY KEY,           -- of the implementation: its job and number
    organization TEXT NOT NULL,
    job_id TEXT NOT NULL REFERENCES jobs (id),
    short_code TEXT NOT NULL,
    domain TEXT NOT NULL,          -- empty: every domain
    target_url TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE INDEX wanted_links_of_organization ON wanted_links (organization);
CREATE INDEX stored_contents ON implementations (job_id, bytes) WHERE content IS NOT NULL;
