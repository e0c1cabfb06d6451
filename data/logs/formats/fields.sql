-- Macros for the formats with named fields.

-- The value of a field; NULL if it is empty or a dash.
CREATE MACRO non_empty(text) AS nullif(nullif(text, ''), '-');
-- The address in address:port, where an IPv6 address is in brackets.
CREATE MACRO address_of(text) AS regexp_replace(regexp_replace(text, ':\d+$', ''), '[\[\]]', '', 'g');
-- The address in a text that may have a port.
CREATE MACRO without_port(text) AS
    regexp_replace(text, '^(?:(\d+\.\d+\.\d+\.\d+)|\[([0-9A-Fa-f:.]+)\])(?::\d+)?$', '\1\2');
CREATE MACRO country_of(text) AS
    CASE WHEN regexp_full_match(upper(text), '[A-Z]{2}') AND upper(text) <> 'XX' THEN upper(text) ELSE '' END;
-- The status as a number: 200 if the log has no status, 0 if no response was sent, NULL if it is invalid.
CREATE MACRO status_of(text) AS CASE WHEN text IS NULL THEN 200 WHEN is_unanswered(text) THEN 0
    ELSE CAST(nullif(regexp_extract(text, '^([1-9][0-9][0-9])(?:\.0)?$', 1), '') AS SMALLINT) END;
-- A request with method and target in separate fields. Both are '' if it is invalid, as in split_request.
CREATE MACRO checked_request(method, target, protocol) AS CASE
    WHEN regexp_full_match(coalesce(method, 'GET'), '[A-Z]{2,20}') AND NOT contains(target, chr(10)) THEN
        {'method': coalesce(method, 'GET'), 'target': target, 'protocol': protocol}
    ELSE {'method': '', 'target': '', 'protocol': ''} END;
-- Double the backslashes of a user agent that the log contains unescaped, since all user agents are unescaped later.
CREATE MACRO escape_backslashes(text) AS
    CASE WHEN contains(text, '\') THEN replace(text, '\', '\\') ELSE coalesce(text, '') END;

-- A request header of Caddy's log; '' if it was not sent, NULL if no headers are logged.
CREATE MACRO caddy_header(headers, name) AS CASE WHEN headers IS NOT NULL THEN coalesce(headers[name][1], '') END;

-- Text in which + stands for a space, and ++ for a space and a +, unless it has spaces.
CREATE MACRO plus_decoded(text) AS CASE WHEN contains(text, ' ') THEN text
    ELSE replace(replace(replace(text, '++', ' ' || chr(1)), '+', ' '), chr(1), '+') END;
-- The parts of an absolute URL or of a path: scheme and host are '' in a path; a target begins with a slash.
CREATE MACRO url_parts(url) AS regexp_extract(url, '^(?:(?i:(https?))://(?:[^/?#]*@)?([^/?#]+))?/?([^#]*)',
    ['scheme', 'host', 'rest']);
-- The entries of Azure's resource logs in the relation `source`: JSON lines, each an entry or an object with `records`.
-- Entries have hundreds of bytes: a line with more than one entry per 64 bytes is not split, so that a block
-- never has more than MAX_BLOCK_LINES entries (source.py).
-- Evidence: https://learn.microsoft.com/en-us/azure/azure-monitor/platform/resource-logs
CREATE MACRO azure_entries(source) AS TABLE
SELECT number, strlen(line) AS bytes,
    unnest(CASE WHEN len(records) BETWEEN 1 AND strlen(line) / 64 THEN records ELSE [line] END) AS entry
FROM (SELECT *, CASE WHEN contains(line, '"records"')
        THEN CAST(try(json_extract(line, '$.records[*]')) AS VARCHAR[]) END AS records
    FROM (SELECT number, json_line(line) AS line FROM query_table(source)));

-- The value of a header in lines of name:value; NULL if the list is truncated, '' if it is complete without the header.
-- The second macro is for lines of names.
CREATE MACRO listed_value(listed, name) AS
    nullif(regexp_extract(listed, '(?i)\n' || name || ':([^\n]*)\n', 1), '');
CREATE MACRO is_listed(listed, lists_all, name) AS CASE
    WHEN regexp_matches(listed, '(?i)\n' || name || '[:\n]') THEN 'listed' WHEN lists_all THEN '' END;

-- Text in which HAProxy wrote some characters as # and two hexadecimal digits.
CREATE MACRO hash_decoded(text) AS CASE WHEN contains(text, '#')
    THEN coalesce(try(url_decode(replace(replace(text, '%', '%25'), '#', '%'))), text) ELSE text END;

CREATE MACRO local_time(text) AS CAST(try_strptime(text, '%d/%b/%Y:%H:%M:%S %z') AS TIMESTAMP);
-- Seconds since 1970 reach 1e11 in the year 5138, so larger numbers are milli-, micro- or nanoseconds.
-- The fraction is converted separately, because a double is not precise enough for both parts.
CREATE MACRO microseconds_in(number) AS
    CASE WHEN number < 1e11 THEN 1e6 WHEN number < 1e14 THEN 1e3 WHEN number < 1e17 THEN 1 ELSE 1e-3 END;
CREATE MACRO since_1970(number) AS make_timestamp(try_cast(round(floor(number) * microseconds_in(number))
    + round((number - floor(number)) * microseconds_in(number)) AS BIGINT));
-- A time in RFC 3339 or ISO 8601 (in UTC if it has no time zone), or a number since 1970.
CREATE MACRO parse_time(text) AS CASE WHEN regexp_matches(text, '^\d{4}-\d\d-\d\d')
    THEN CAST(try_cast(upper(text) AS TIMESTAMPTZ) AS TIMESTAMP) ELSE since_1970(try_cast(text AS DOUBLE)) END;

-- Replace escaped NULs, which DuckDB does not accept in JSON strings.
CREATE MACRO json_line(line) AS
    CASE WHEN contains(line, '\u0000') THEN replace(line, '\u0000', '\ufffd') ELSE line END;

-- The parts of a request from nginx's variables; a missing variable is NULL or ''.
CREATE MACRO nginx_target(v) AS
    coalesce(non_empty(v['request_uri']), non_empty(v['uri']) || coalesce('?' || non_empty(v['args']), ''));
CREATE MACRO nginx_request(v) AS CASE WHEN non_empty(v['request']) IS NOT NULL THEN split_request(v['request'])
    ELSE checked_request(non_empty(v['request_method']), nginx_target(v), v['server_protocol']) END;
CREATE MACRO nginx_time(v) AS
    coalesce(parse_time(v['time_iso8601']), local_time(v['time_local']), parse_time(v['msec']));
CREATE MACRO nginx_domain(v) AS
    coalesce(non_empty(v['host']), non_empty(v['http_host']), nullif(non_empty(v['server_name']), '_'), '');
-- Headers with one address are read only if no chain is logged, since clients may send them, too.
CREATE MACRO nginx_forwarded(v) AS coalesce(
    non_empty(v['http_x_forwarded_for']), non_empty(v['proxy_add_x_forwarded_for']), non_empty(v['http_forwarded']),
    non_empty(v['http_x_real_ip']), non_empty(v['http_cf_connecting_ip']), non_empty(v['http_true_client_ip']), '');
CREATE MACRO nginx_purpose(v) AS coalesce(non_empty(v['http_sec_purpose']), non_empty(v['http_purpose']),
    non_empty(v['http_x_purpose']), dash_as_empty(v['http_x_moz']));
CREATE MACRO nginx_country(v) AS country_of(
    coalesce(non_empty(v['http_cf_ipcountry']), non_empty(v['geoip_country_code']),
        non_empty(v['geoip2_data_country_code'])));
-- Without TLS, $https is '' and Apache's %{HTTPS}x is off; the protocol of TLS is '' or a dash.
CREATE MACRO nginx_scheme(v) AS coalesce(non_empty(v['scheme']),
    CASE WHEN v['https'] = 'on' THEN 'https' WHEN v['https'] IN ('', 'off') THEN 'http' END,
    CASE WHEN v['ssl_protocol'] IN ('', '-') THEN 'http' WHEN v['ssl_protocol'] IS NOT NULL THEN 'https' END);
-- The requests in lines whose parsed variables are in `v`; `source` is the name of their relation.
CREATE MACRO nginx_requests(source) AS TABLE
SELECT
    number,
    bytes,
    nginx_domain(v) AS domain,
    coalesce(v.remote_addr, v.realip_remote_addr, '') AS ip,
    nginx_forwarded(v) AS forwarded,
    nginx_time(v) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(nullif(v.status, '')) AS status,
    coalesce(non_empty(v.body_bytes_sent), v.bytes_sent) AS bytes_sent,
    coalesce(non_empty(v.http_referer), '') AS referrer,
    coalesce(non_empty(v.http_user_agent), '') AS user_agent,
    nginx_country(v) AS country,
    nginx_scheme(v) AS scheme,
    non_empty(v.http_x_forwarded_proto) AS forwarded_proto,
    dash_as_empty(v.http_sec_fetch_mode) AS fetch_mode,
    dash_as_empty(v.http_sec_fetch_dest) AS fetch_dest,
    dash_as_empty(v.http_sec_fetch_site) AS fetch_site,
    nginx_purpose(v) AS purpose,
    dash_as_empty(v.http_x_firefox_ai) AS firefox_ai,
    dash_as_empty(v.http_accept) AS accept,
    dash_as_empty(v.http_accept_language) AS accept_language,
    dash_as_empty(v.http_signature_agent) AS signature_agent,
    dash_as_empty(v.http_signature_input) AS signature_input,
    is_complete,
    '' AS reject_reason,
    FALSE AS is_repaired
FROM (SELECT *, nginx_request(v) AS request FROM query_table(source));

CREATE MACRO unquoted(cell) AS
    CASE WHEN starts_with(cell, '"') THEN replace(cell[2:-2], '""', '"') ELSE cell END;
-- A request from a custom file: `texts` are its values, `names` their fields (FIELD_NAMES in columns.py).
CREATE MACRO named(texts, names, name) AS non_empty(texts[list_position(names, name)]);
CREATE MACRO header_named(texts, names, name) AS dash_as_empty(texts[list_position(names, name)]);
CREATE MACRO parse_reported(texts, names) AS {
    'visited_at': parse_time(named(texts, names, 'time')),
    'ip': coalesce(named(texts, names, 'ip'), ''),
    'method': upper(named(texts, names, 'method')),
    'address': regexp_extract(coalesce(named(texts, names, 'url'), named(texts, names, 'path')),
        '^(?i:https?)://(?:[^/?#]*@)?([^/?#]+)/?([^#]*)|^(/[^#]*)', ['host', 'rest', 'path']),
    'domain': coalesce(named(texts, names, 'domain'), ''),
    'protocol': named(texts, names, 'protocol'),
    'status': status_of(named(texts, names, 'status')),
    'bytes_sent': named(texts, names, 'bytes_sent'),
    'user_agent': escape_backslashes(named(texts, names, 'user_agent')),
    'referrer': coalesce(named(texts, names, 'referrer'), ''),
    'country': country_of(named(texts, names, 'country')),
    'scheme': named(texts, names, 'scheme'),
    'fetch_mode': header_named(texts, names, 'sec_fetch_mode'),
    'fetch_dest': header_named(texts, names, 'sec_fetch_dest'),
    'fetch_site': header_named(texts, names, 'sec_fetch_site'),
    'purpose': header_named(texts, names, 'sec_purpose'),
    'accept': header_named(texts, names, 'accept'),
    'accept_language': header_named(texts, names, 'accept_language'),
    'signature_agent': header_named(texts, names, 'signature_agent')
};
CREATE MACRO reported_domain(parsed) AS
    CASE WHEN parsed['address']['host'] <> '' THEN parsed['address']['host'] ELSE parsed['domain'] END;
CREATE MACRO reported_target(parsed) AS coalesce(CASE WHEN parsed['address']['host'] <> ''
    THEN '/' || parsed['address']['rest'] ELSE parsed['address']['path'] END, '');

-- The cells of a line. IIS's Advanced Logging quotes texts, which may contain spaces: such a line has quotes around an
-- address or a text with a space. Other lines write + for a space, and quotes belong to the text.
CREATE MACRO w3c_cells(line, separator) AS CASE
    WHEN separator = ' ' AND contains(line, ' "')
            AND regexp_matches(line || ' ', ' "(?:[0-9A-Fa-f:.]+|(?:[^" ]|"")+ (?:[^"]|"")*)" ')
        THEN list_transform(regexp_extract_all(line || ' ', '("(?:[^"]|"")*"|[^ ]*) ', 1), lambda cell : unquoted(cell))
    ELSE string_split(line, separator) END;
-- Lines whose fields are named by the last preceding #Fields directive; later directives may name other fields.
-- `source` is the name of the relation of lines, `before` the last #Fields directive before these lines.
CREATE MACRO w3c_fields(source, before, separator) AS TABLE
WITH directives AS (
    SELECT 0 AS number, before AS line UNION ALL
    SELECT number, line FROM query_table(source) WHERE starts_with(line, '#Fields:')
), named AS (
    SELECT number, list_filter(regexp_split_to_array(lower(line), '\s+')[2:], lambda name : name <> '') AS names
    FROM directives
), layouts AS (
    SELECT number, len(names) AS width,
        coalesce(list_position(names, 'date'), list_position(names, 'date-local')) AS date,
        coalesce(list_position(names, 'time'), list_position(names, 'time-local')) AS time,
        coalesce(list_position(names, 'timestamp'), list_position(names, 'timestamp(ms)')) AS timestamp,
        list_position(names, 'c-ip') AS ip, list_position(names, 'cs-method') AS method,
        list_position(names, 'cs-uri-stem') AS stem, list_position(names, 'cs-uri-query') AS query,
        list_position(names, 'sc-status') AS status, list_position(names, 'sc-bytes') AS bytes_sent,
        coalesce(list_position(names, 'cs-host'), list_position(names, 'x-host-header')) AS host,
        list_position(names, 'cs(host)') AS edge_host,
        coalesce(list_position(names, 'cs(referer)'), list_position(names, 'cs-referer')) AS referrer,
        coalesce(list_position(names, 'cs(user-agent)'), list_position(names, 'cs-user-agent')) AS user_agent,
        list_position(names, 'cs-headers') AS headers, list_position(names, 'cs-header-names') AS header_names,
        list_position(names, 'cs-headers-count') AS headers_count,
        list_position(names, 'c-country') AS country,
        coalesce(list_position(names, 'x-forwarded-for'), list_position(names, 'cs(x-forwarded-for)')) AS forwarded,
        coalesce(list_position(names, 'x-forwarded-proto'), list_position(names, 'cs(x-forwarded-proto)'))
            AS forwarded_proto,
        list_position(names, 'cs-protocol') AS scheme, list_position(names, 'cs(sec-fetch-mode)') AS fetch_mode,
        list_position(names, 'cs(sec-fetch-dest)') AS fetch_dest,
        list_position(names, 'cs(sec-fetch-site)') AS fetch_site, list_position(names, 'cs(sec-purpose)') AS purpose,
        list_position(names, 'cs(accept)') AS accept, list_position(names, 'cs(accept-language)') AS accept_language,
        list_position(names, 'cs(signature-agent)') AS signature_agent,
        coalesce(list_position(names, 'cs-version'), list_position(names, 'cs-protocol-version')) AS protocol
    FROM named
), split AS (
    SELECT number, line, w3c_cells(line, separator) AS cells FROM query_table(source)
    WHERE NOT starts_with(line, '#')
)
SELECT
    split.number,
    strlen(line) AS bytes,
    coalesce(cells[date] || ' ' || cells[time], cells[timestamp]) AS logged_at,
    coalesce(non_empty(cells[ip]), '') AS ip,
    coalesce(non_empty(cells[forwarded]), '') AS forwarded,
    checked_request(non_empty(cells[method]), non_empty(cells[stem])
        || CASE WHEN contains(cells[stem], '?') THEN '' ELSE coalesce('?' || non_empty(cells[query]), '') END,
        cells[protocol]) AS request,
    cells[status] AS status,
    cells[bytes_sent] AS bytes_sent,
    coalesce(non_empty(cells[host]), non_empty(cells[edge_host]), '') AS domain,
    coalesce(non_empty(cells[referrer]), '') AS referrer,
    non_empty(cells[user_agent]) AS user_agent,
    country_of(cells[country]) AS country,
    cells[scheme] AS scheme,
    non_empty(cells[forwarded_proto]) AS forwarded_proto,
    dash_as_empty(cells[fetch_mode]) AS fetch_mode,
    dash_as_empty(cells[fetch_dest]) AS fetch_dest,
    dash_as_empty(cells[fetch_site]) AS fetch_site,
    dash_as_empty(cells[purpose]) AS purpose,
    dash_as_empty(cells[accept]) AS accept,
    dash_as_empty(cells[accept_language]) AS accept_language,
    dash_as_empty(cells[signature_agent]) AS signature_agent,
    non_empty(cells[headers]) AS headers,
    non_empty(cells[header_names]) AS header_names,
    cells[headers_count] AS headers_count,
    len(cells) = width AND stem IS NOT NULL AS is_complete,
    CASE WHEN width = 0 THEN 'no #Fields line before this line'
        WHEN len(cells) <> width THEN 'number of fields differs from the #Fields line' END AS reject_reason
FROM split ASOF JOIN layouts ON split.number >= layouts.number;

-- CloudFront's requests in the relation `source`, which has the columns of w3c_fields, percent-encoded.
CREATE MACRO cloudfront_requests(source) AS TABLE
WITH requests AS (
    SELECT *,
        chr(10) || replace(coalesce(header_names || headers, header_names, headers), '%0A', chr(10)) AS listed,
        headers_count = CAST(len(string_split(coalesce(header_names, headers), '%0A')) - 1 AS VARCHAR) AS lists_all
    FROM query_table(source)
)
SELECT
    number,
    bytes,
    domain,
    ip,
    coalesce(try(url_decode(forwarded)), forwarded) AS forwarded,
    parse_time(logged_at) AS visited_at,
    request.method,
    request.target,
    request.protocol,
    status_of(status) AS status,
    bytes_sent,
    referrer,
    escape_backslashes(coalesce(try(url_decode(user_agent)), user_agent)) AS user_agent,
    country,
    scheme,
    listed_value(listed, 'sec-fetch-mode') AS fetch_mode,
    listed_value(listed, 'sec-fetch-dest') AS fetch_dest,
    is_listed(listed, lists_all, 'sec-fetch-[a-z]+') AS fetch_site,
    listed_value(listed, '(?:(?:sec-|x-)?purpose|x-moz)') AS purpose,
    is_listed(listed, lists_all, 'x-firefox-ai') AS firefox_ai,
    listed_value(listed, 'accept') AS accept,
    is_listed(listed, lists_all, 'accept-language') AS accept_language,
    coalesce(try(url_decode(listed_value(listed, 'signature-agent'))),
        is_listed(listed, lists_all, 'signature-(?:agent|input)')) AS signature_agent,
    is_complete,
    reject_reason,
    FALSE AS is_repaired
FROM requests;
