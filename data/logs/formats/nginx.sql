-- A log in a notation of nginx's log_format. Parameters, made by nginx_log_format.py: pattern, and the names of its groups.
SELECT
    number,
    bytes,
    nginx_domain(v) AS domain,
    nginx_ip(v) AS ip,
    nginx_time(v) AS visited_at,
    nginx_request(v) AS request,
    status_of(nullif(v.status, '')) AS status,
    coalesce(said(v.http_referer), '') AS referrer,
    coalesce(said(v.http_user_agent), '') AS user_agent,
    nginx_country(v) AS country,
    fits AS is_whole,
    '' AS flaw,
    FALSE AS is_mended
FROM (
    SELECT number, strlen(line) AS bytes, regexp_extract(line, $pattern, $names) AS v, regexp_matches(line, $pattern) AS fits
    FROM lines
)
