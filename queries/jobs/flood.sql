-- Agents, or browsers by their whole user agent, that make at least 1,000 requests on one day, half of the domain's
-- requests on that day, and three times as many as all visitors on an average other day. Refused requests and requests
-- for missing pages (400 to 499) are not among the 1,000: they get nothing. Someone who builds the site is not a flood:
-- the site is the referrer of at least half of the requests, or other sites are and at least a tenth are for files. The
-- owner's visits are not a flood, either.
WITH daily AS (
    SELECT
        domain, name_of(agent, user_agent) AS agent, day, count(*) AS visits, count(DISTINCT visitor) AS visitors,
        total_if(1, status >= 400) AS errors, total_if(1, status BETWEEN 400 AND 499) AS denied, min(visited_at) AS first_seen, max(visited_at) AS last_seen,
        total_if(1, referrer IS NOT NULL) AS referred,
        2 * total_if(1, referrer IS NOT NULL) >= count(*) AND 10 * total_if(1, is_file) >= count(*)
            OR 2 * total_if(1, referrer = domain) >= count(*) OR 2 * total_if(1, aside = 'own') >= count(*) AS is_work
    FROM detected_visits() GROUP BY domain, name_of(agent, user_agent), day
), whole AS (
    SELECT domain, day, total(visits) AS of_day FROM daily GROUP BY domain, day
), usual AS (
    SELECT domain, total(of_day) AS of_all, count(*) - 1 AS others FROM whole GROUP BY domain
), floods AS (
    SELECT daily.*, whole.of_day
    FROM daily
    JOIN whole ON whole.domain IS NOT DISTINCT FROM daily.domain AND whole.day = daily.day
    JOIN usual ON usual.domain IS NOT DISTINCT FROM daily.domain
    WHERE meets('fewer than 1,000 requests a day that were not refused or missing', daily.visits - daily.denied >= 1000)
        AND meets('less than half of the requests on a day', 2 * daily.visits >= whole.of_day)
        AND meets('no other day to compare with', usual.others > 0)
        AND meets('less than three times an average day', daily.visits * usual.others >= 3 * (usual.of_all - whole.of_day))
        AND meets('someone who builds the site, or the owner', NOT daily.is_work)
)
SELECT
    domain, agent, total(visits) AS visits, total(of_day) AS whole, share(total(visits), total(of_day)) AS percentage,
    total(errors) AS refused_or_failed, total(referred) AS referred, max(visitors) AS visitors, count(*) AS days,
    min(first_seen) AS first_seen, max(last_seen) AS last_seen
FROM floods GROUP BY domain, agent
ORDER BY visits DESC, domain, agent
LIMIT 100;
