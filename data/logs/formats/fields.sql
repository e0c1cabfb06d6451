-- Words that the readers of formats share whose fields have names.

-- What a field says, NULL when it says nothing.
CREATE MACRO said(text) AS nullif(nullif(text, ''), '-');
CREATE MACRO host_of(text) AS lower(regexp_replace(text, ':\d*$', ''));
CREATE MACRO country_of(text) AS
    CASE WHEN regexp_full_match(upper(text), '[A-Z]{2}') AND upper(text) <> 'XX' THEN upper(text) ELSE '' END;
-- A log that has no status has logged what it served.
CREATE MACRO status_of(text) AS CASE WHEN text IS NULL THEN 200
    ELSE CAST(nullif(regexp_extract(text, '^([1-9][0-9][0-9])(?:\.0)?$', 1), '') AS SMALLINT) END;
CREATE MACRO request_line(method, target) AS coalesce(method, 'GET') || ' ' || target || ' HTTP/1.1';
-- Where a log keeps a user agent as it was sent, its backslashes are doubled, as a server that escapes would have.
CREATE MACRO as_logged(text) AS CASE WHEN contains(text, '\') THEN replace(text, '\', '\\') ELSE coalesce(text, '') END;

CREATE MACRO local_time(text) AS CAST(try_strptime(text, '%d/%b/%Y:%H:%M:%S %z') AS TIMESTAMP);
-- Seconds since 1970 reach 1e11 in the year 5138, so a larger number is one of milli-, micro- or nanoseconds.
-- What stands after the point is reckoned apart: both together are more than a double can hold.
CREATE MACRO microseconds_in(number) AS
    CASE WHEN number < 1e11 THEN 1e6 WHEN number < 1e14 THEN 1e3 WHEN number < 1e17 THEN 1 ELSE 1e-3 END;
CREATE MACRO since_1970(number) AS make_timestamp(try_cast(round(floor(number) * microseconds_in(number))
    + round((number - floor(number)) * microseconds_in(number)) AS BIGINT));
-- RFC 3339 or ISO 8601, without a zone in UTC, or a number.
CREATE MACRO moment(text) AS CASE WHEN regexp_matches(text, '^\d{4}-\d\d-\d\d')
    THEN CAST(try_cast(upper(text) AS TIMESTAMPTZ) AS TIMESTAMP) ELSE since_1970(try_cast(text AS DOUBLE)) END;

-- NUL is no text.
CREATE MACRO json_line(line) AS
    CASE WHEN contains(line, '\u0000') THEN replace(line, '\u0000', '\ufffd') ELSE line END;

-- A request as nginx's variables tell it; what is not among them is NULL or ''.
CREATE MACRO nginx_target(v) AS coalesce(said(v['request_uri']), said(v['uri']) || coalesce('?' || said(v['args']), ''));
CREATE MACRO nginx_request(v) AS
    coalesce(said(v['request']), request_line(said(v['request_method']), nginx_target(v)), '');
CREATE MACRO nginx_time(v) AS
    coalesce(moment(v['time_iso8601']), local_time(v['time_local']), moment(v['msec']));
CREATE MACRO nginx_domain(v) AS host_of(
    coalesce(said(v['host']), said(v['http_host']), nullif(said(v['server_name']), '_'), ''));
CREATE MACRO nginx_ip(v) AS
    coalesce(nullif(v['remote_addr'], ''), trim(split_part(said(v['http_x_forwarded_for']), ',', 1)), '');
CREATE MACRO nginx_country(v) AS country_of(
    coalesce(said(v['http_cf_ipcountry']), said(v['geoip_country_code']), said(v['geoip2_data_country_code'])));

-- A request as a file of one's own tells it, from a list of texts in the order of NAMES in columns.py.
CREATE MACRO own(v) AS {
    'visited_at': moment(said(v[1])),
    'ip': coalesce(said(v[2]), ''),
    'method': upper(said(v[3])),
    'address': regexp_extract(coalesce(said(v[4]), said(v[6])),
        '^(?i:https?)://(?:[^/?#]*@)?([^/?#]+)/?([^#]*)|^(/[^#]*)', ['host', 'rest', 'path']),
    'domain': coalesce(said(v[5]), ''),
    'status': status_of(said(v[7])),
    'user_agent': as_logged(said(v[8])),
    'referrer': coalesce(said(v[9]), ''),
    'country': country_of(said(v[10]))
};
CREATE MACRO unquoted(cell) AS
    CASE WHEN starts_with(cell, '"') THEN replace(cell[2:-2], '""', '"') ELSE cell END;
CREATE MACRO own_domain(told) AS
    host_of(CASE WHEN told['address']['host'] <> '' THEN told['address']['host'] ELSE told['domain'] END);
CREATE MACRO own_target(told) AS coalesce(CASE WHEN told['address']['host'] <> ''
    THEN '/' || told['address']['rest'] ELSE told['address']['path'] END, '');

-- Lines whose fields a #Fields directive names; it may come again, with other fields. Directives are no lines.
-- `source` names the relation of the lines, `before` is the last such directive before them.
CREATE MACRO fielded(source, before, separator) AS TABLE
WITH directives AS (
    SELECT 0 AS number, before AS line UNION ALL
    SELECT number, line FROM query_table(source) WHERE starts_with(line, '#Fields:')
), named AS (
    SELECT number, list_filter(regexp_split_to_array(lower(line), '\s+')[2:], lambda name : name <> '') AS names
    FROM directives
), layouts AS (
    SELECT number, len(names) AS width, list_position(names, 'date') AS date, list_position(names, 'time') AS time,
        list_position(names, 'c-ip') AS ip, list_position(names, 'cs-method') AS method,
        list_position(names, 'cs-uri-stem') AS stem, list_position(names, 'cs-uri-query') AS query,
        list_position(names, 'sc-status') AS status, list_position(names, 'x-host-header') AS host_header,
        coalesce(list_position(names, 'cs-host'), list_position(names, 'cs(host)')) AS host,
        list_position(names, 'cs(referer)') AS referrer, list_position(names, 'cs(user-agent)') AS user_agent,
        list_position(names, 'c-country') AS country
    FROM named
), split AS (
    SELECT number, line, string_split(line, separator) AS cells FROM query_table(source)
    WHERE NOT starts_with(line, '#')
)
SELECT
    split.number,
    strlen(line) AS bytes,
    cells[date] || ' ' || cells[time] AS logged_at,
    coalesce(said(cells[ip]), '') AS ip,
    request_line(said(cells[method]), said(cells[stem]) || coalesce('?' || said(cells[query]), '')) AS request,
    cells[status] AS status,
    host_of(coalesce(said(cells[host_header]), said(cells[host]), '')) AS domain,
    coalesce(said(cells[referrer]), '') AS referrer,
    said(cells[user_agent]) AS user_agent,
    country_of(cells[country]) AS country,
    len(cells) = width AND stem IS NOT NULL AS is_whole,
    CASE WHEN width = 0 THEN 'no #Fields line before it'
        WHEN len(cells) <> width THEN 'not as many fields as the #Fields line before it names' END AS flaw
FROM split ASOF JOIN layouts ON split.number >= layouts.number;
