-- The only place where a caller's filter narrows the visits. It reads three session variables: scope (whose visits
-- and which), files and links (where they lie; each list begins with an empty seed file). Unset, nothing is seen.

CREATE TYPE scope AS STRUCT(
    organization VARCHAR, start_date DATE, end_date DATE, short_code VARCHAR, domain VARCHAR, traffic_type VARCHAR
);

CREATE VIEW scope AS SELECT unnest(CAST(getvariable('scope') AS scope)) WHERE getvariable('scope') IS NOT NULL;

CREATE VIEW visits_in_days AS
SELECT * FROM read_parquet(
    getvariable('files'), hive_partitioning = TRUE, hive_types = {'organization': VARCHAR, 'day': DATE}
)
WHERE organization = getvariable('scope').organization
    AND day BETWEEN getvariable('scope').start_date AND getvariable('scope').end_date;

CREATE VIEW visits_in_scope AS
SELECT * FROM visits_in_days
WHERE (getvariable('scope').short_code IS NULL OR short_code = getvariable('scope').short_code)
    AND (getvariable('scope').domain IS NULL OR domain = getvariable('scope').domain)
    AND CASE getvariable('scope').traffic_type
        WHEN 'ai' THEN is_ai(bot_category)
        WHEN 'other' THEN is_other(bot_category)
        ELSE coalesce(getvariable('scope').traffic_type, bot_category) = bot_category
    END;

CREATE VIEW people_in_scope AS SELECT * FROM visits_in_scope WHERE is_person(bot_category);

-- People whom an AI product referred are no automata; they are seen here only when the caller asks for them.
CREATE VIEW automated_in_scope AS
SELECT * FROM visits_in_scope
WHERE NOT is_human(bot_category)
    AND (NOT is_referral(bot_category) OR getvariable('scope').traffic_type IS NOT NULL);

CREATE VIEW links_in_scope AS
SELECT * FROM read_parquet(getvariable('links'), hive_partitioning = FALSE)
WHERE organization = getvariable('scope').organization;

CREATE VIEW traffic_values AS SELECT unnest(getvariable('traffic_values'), recursive := TRUE);
