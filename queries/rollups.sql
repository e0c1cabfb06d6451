-- The columns of a rollup file, with no rows. A rollup stores the rows of all relations.
SELECT unnest(CAST(NULL AS STRUCT(
    relation VARCHAR,  -- relation that the row belongs to; columns that it does not have are NULL
    for_domain VARCHAR,
    days INTEGER,  -- days of the month, one bit each
    day DATE,  -- daily relations only
    hour BIGINT,
    domain VARCHAR,
    short_code VARCHAR,
    path VARCHAR,
    bot_category VARCHAR,
    agent_kind VARCHAR,
    ai_source VARCHAR,
    tool VARCHAR,
    agent VARCHAR,
    operator VARCHAR,
    confidence VARCHAR,
    detection_method VARCHAR,
    device_type VARCHAR,
    operating_system VARCHAR,
    browser VARCHAR,
    country VARCHAR,
    protocol VARCHAR,
    referrer VARCHAR,
    referrer_type VARCHAR,
    utm_source VARCHAR,
    utm_medium VARCHAR,
    utm_campaign VARCHAR,
    signals BIGINT,
    visits BIGINT,
    human_clicks BIGINT,
    ai_visits BIGINT,
    ai_referrals BIGINT,
    other_visits BIGINT,
    unique_visitors BIGINT,
    unidentified_visits BIGINT,  -- of which no visitor is known
    errors_4xx BIGINT,
    errors_5xx BIGINT,
    bytes_sent BIGINT,
    first_seen TIMESTAMP,
    last_seen TIMESTAMP,
    last_visit TIMESTAMP,
    is_answered BOOLEAN  -- at least one of these visits
))) WHERE FALSE;
