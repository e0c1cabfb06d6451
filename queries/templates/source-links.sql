-- For each AI source, the 20 links with the most AI-related requests. Percentages are of the source's requests to links.
WITH by_link AS (
    SELECT
        coalesce(ai_source, 'unknown') AS ai_source,
        short_code,
        coalesce(domain, 'unknown') AS domain,
        total(visits) AS visits,
        total(ai_referrals) AS ai_referrals,
        total(errors_4xx) AS errors_4xx,
        total(errors_5xx) AS errors_5xx,
        max(last_visit) AS last_visit
    FROM daily_link_sources GROUP BY coalesce(ai_source, 'unknown'), short_code, coalesce(domain, 'unknown')
), ranked AS (
    SELECT *, share(visits, sum(visits) OVER (PARTITION BY ai_source)) AS percentage
    FROM by_link
    QUALIFY row_number() OVER (PARTITION BY ai_source ORDER BY visits DESC, short_code, domain) <= 20
)
SELECT
    ai_source, ranked.short_code, ranked.domain,
    coalesce(own.target_url, anywhere.target_url, 'unknown') AS target_url,
    visits, percentage, visits - ai_referrals AS agent_fetches, ai_referrals, errors_4xx, errors_5xx, last_visit
FROM ranked
LEFT JOIN links_in_scope AS own ON own.short_code = ranked.short_code AND own.domain = ranked.domain
LEFT JOIN links_in_scope AS anywhere ON anywhere.short_code = ranked.short_code AND anywhere.domain = ''
ORDER BY ai_source, visits DESC, short_code, domain;
