-- A job is about all subjects of its cause, and an implementation about one of them or all.
-- `subjects` is a list of the columns that name each, as JSON. The subject of an implementation is its number in that list,
-- from 1; null: all. An approved job is frozen, so what is found later is another job with its fingerprint.
ALTER TABLE jobs ADD COLUMN subjects TEXT NOT NULL DEFAULT '[]';
UPDATE jobs SET subjects = '[' || subject || ']' WHERE subject <> '{}';
ALTER TABLE jobs DROP COLUMN subject;
ALTER TABLE implementations ADD COLUMN subject INTEGER;
DROP INDEX open_fingerprints;
CREATE INDEX jobs_by_fingerprint ON jobs (organization, fingerprint);
CREATE TABLE rules (               -- redirects of implementations, until they are withdrawn
    organization TEXT NOT NULL,
    job_id TEXT NOT NULL REFERENCES jobs (id),
    number INTEGER NOT NULL,       -- of the implementation
    domain TEXT NOT NULL,          -- a host, or * for every host
    path TEXT NOT NULL,
    target TEXT NOT NULL,
    status INTEGER NOT NULL,       -- 301, 302, 307 or 308
    PRIMARY KEY (organization, job_id, number, domain, path)
) WITHOUT ROWID;
INSERT INTO rules SELECT * FROM redirect_rules;
DROP TABLE redirect_rules;
ALTER TABLE rules RENAME TO redirect_rules;
