CREATE TABLE salts (
    zone TEXT NOT NULL,         -- the time zone of the day
    day TEXT NOT NULL,
    salt TEXT NOT NULL,
    created_at REAL NOT NULL,
    PRIMARY KEY (zone, day)
);
