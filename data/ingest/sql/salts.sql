CREATE TABLE salts (
    zone TEXT NOT NULL,         -- in which it is this day
    day TEXT NOT NULL,
    salt TEXT NOT NULL,
    created_at REAL NOT NULL,
    PRIMARY KEY (zone, day)
);
