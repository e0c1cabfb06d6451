-- Compiled from queries/jobs/referral_drop.sql by `python -m queries.compiler`; do not edit.
-- Run it with spark.sql(text, args); queries/README.md says how, also in spark-sql.
WITH visits_in_days AS (
    SELECT
        *
    FROM visits
    WHERE
        organization = CAST(:organization AS STRING)
        AND day BETWEEN CAST(:start_date AS DATE) AND CAST(:end_date AS DATE)
), visits_in_scope AS (
    SELECT
        *
    FROM visits_in_days
    WHERE
        (
            CAST(:short_code AS STRING) IS NULL OR short_code = CAST(:short_code AS STRING)
        )
        AND (
            CAST(:domain AS STRING) IS NULL OR domain = CAST(:domain AS STRING)
        )
        AND (
            CAST(:no_domain AS BOOLEAN) IS NULL OR domain IS NULL
        )
        AND (
            CAST(:traffic_type AS STRING) IS NULL
            OR bot_category = CAST(:traffic_type AS STRING)
            OR CAST(:traffic_type AS STRING) = 'ai'
            AND bot_category IN ('ai_assistant', 'ai_training', 'ai_coding_agent', 'ai_referral')
            OR CAST(:traffic_type AS STRING) = 'other'
            AND bot_category IN ('search_crawler', 'other_bot')
        )
), sent AS (
    SELECT
        domain,
        short_code,
        ai_source,
        COUNT(*) AS n,
        COALESCE(CAST(SUM(1) FILTER(WHERE
            NOT is_late) AS BIGINT), 0) AS referrals_before,
        COALESCE(CAST(SUM(1) FILTER(WHERE
            is_late) AS BIGINT), 0) AS ai_referrals,
        COUNT(DISTINCT day) FILTER(WHERE
            NOT is_late) AS days,
        MAX(visited_at) AS last_seen
    FROM (
        SELECT
            *,
            day > CAST(:end_date AS DATE) - 14 AS is_late
        FROM visits_in_scope
    )
    WHERE
        bot_category = 'ai_referral' AND NOT short_code IS NULL AND NOT ai_source IS NULL
    GROUP BY
        domain,
        short_code,
        ai_source
), tested AS (
    SELECT
        *,
        AGGREGATE(
            TRANSFORM(
                SEQUENCE(0, ai_referrals),
                k -> EXP(
                    (
                        (
                            CAST(n + 1 AS DOUBLE) - 0.5
                        ) * LN(CAST(n + 1 AS DOUBLE) + 7) + 7 * LN(CAST(n + 1 AS DOUBLE) + 7) - CAST(n + 1 AS DOUBLE) - 7 + 0.9189385332046727 + 1 / (
                            12 * (
                                CAST(n + 1 AS DOUBLE) + 7
                            )
                        ) - 1 / (
                            360 * POWER(CAST(n + 1 AS DOUBLE) + 7, 3)
                        ) + 1 / (
                            1260 * POWER(CAST(n + 1 AS DOUBLE) + 7, 5)
                        ) - LN(
                            CAST(n + 1 AS DOUBLE) * (
                                CAST(n + 1 AS DOUBLE) + 1
                            ) * (
                                CAST(n + 1 AS DOUBLE) + 2
                            ) * (
                                CAST(n + 1 AS DOUBLE) + 3
                            ) * (
                                CAST(n + 1 AS DOUBLE) + 4
                            ) * (
                                CAST(n + 1 AS DOUBLE) + 5
                            ) * (
                                CAST(n + 1 AS DOUBLE) + 6
                            )
                        )
                    ) - (
                        (
                            CAST(k + 1 AS DOUBLE) - 0.5
                        ) * LN(CAST(k + 1 AS DOUBLE) + 7) + 7 * LN(CAST(k + 1 AS DOUBLE) + 7) - CAST(k + 1 AS DOUBLE) - 7 + 0.9189385332046727 + 1 / (
                            12 * (
                                CAST(k + 1 AS DOUBLE) + 7
                            )
                        ) - 1 / (
                            360 * POWER(CAST(k + 1 AS DOUBLE) + 7, 3)
                        ) + 1 / (
                            1260 * POWER(CAST(k + 1 AS DOUBLE) + 7, 5)
                        ) - LN(
                            CAST(k + 1 AS DOUBLE) * (
                                CAST(k + 1 AS DOUBLE) + 1
                            ) * (
                                CAST(k + 1 AS DOUBLE) + 2
                            ) * (
                                CAST(k + 1 AS DOUBLE) + 3
                            ) * (
                                CAST(k + 1 AS DOUBLE) + 4
                            ) * (
                                CAST(k + 1 AS DOUBLE) + 5
                            ) * (
                                CAST(k + 1 AS DOUBLE) + 6
                            )
                        )
                    ) - (
                        (
                            CAST(n - k + 1 AS DOUBLE) - 0.5
                        ) * LN(CAST(n - k + 1 AS DOUBLE) + 7) + 7 * LN(CAST(n - k + 1 AS DOUBLE) + 7) - CAST(n - k + 1 AS DOUBLE) - 7 + 0.9189385332046727 + 1 / (
                            12 * (
                                CAST(n - k + 1 AS DOUBLE) + 7
                            )
                        ) - 1 / (
                            360 * POWER(CAST(n - k + 1 AS DOUBLE) + 7, 3)
                        ) + 1 / (
                            1260 * POWER(CAST(n - k + 1 AS DOUBLE) + 7, 5)
                        ) - LN(
                            CAST(n - k + 1 AS DOUBLE) * (
                                CAST(n - k + 1 AS DOUBLE) + 1
                            ) * (
                                CAST(n - k + 1 AS DOUBLE) + 2
                            ) * (
                                CAST(n - k + 1 AS DOUBLE) + 3
                            ) * (
                                CAST(n - k + 1 AS DOUBLE) + 4
                            ) * (
                                CAST(n - k + 1 AS DOUBLE) + 5
                            ) * (
                                CAST(n - k + 1 AS DOUBLE) + 6
                            )
                        )
                    ) - n * LN(2)
                )
            ),
            CAST(0 AS DOUBLE),
            (total, term) -> total + term
        ) AS probability
    FROM sent
    WHERE
        2 * ai_referrals < referrals_before AND referrals_before >= 20 AND days >= 7
)
SELECT
    domain,
    short_code,
    ai_source,
    referrals_before,
    ai_referrals,
    referrals_before - ai_referrals AS lost_referrals,
    ROUND(probability, 6) AS probability,
    last_seen
FROM tested
WHERE
    probability < 0.01
ORDER BY
    lost_referrals DESC,
    domain NULLS LAST,
    short_code NULLS LAST,
    ai_source NULLS LAST
LIMIT 100;
