CREATE TABLE made_edits (         -- of links, that wait in control.sqlite to be made once, and were
    organization TEXT NOT NULL,
    id TEXT NOT NULL,             -- of the one that waits
    PRIMARY KEY (organization, id)
) WITHOUT ROWID;
