-- Paths, with ids in them as *, on which people or AI products get 500 to 599: at least 20 times, on at least 2 days,
-- in at least 5 % of their visits, and still in the last 7 days if they came then. The requests of a single browser or
-- visitor are a flood. Files that programs request from every host are left out.
SELECT
    domain, path, short_code, visits, failures AS errors, share(failures, visits) AS percentage, people, audience, visitors,
    top_agent, top_share, top_paths, days, first_seen, last_seen
FROM erring_paths WHERE is_erring
ORDER BY errors DESC, domain, path
LIMIT 100;
