-- The names of the bits of the column signals; data/signals.py says what they mean.
CREATE TABLE signals AS SELECT * FROM (VALUES
    ('attacked', 1), ('probed', 2), ('outdated', 4), ('errors', 8), ('breadth', 16), ('no_assets', 32),
    ('stale', 64), ('sweep', 128)
) AS names(signal, bit);
