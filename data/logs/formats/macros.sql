-- Macros for all formats. Macros that only formats with named fields need are in fields.sql.

-- \\ and \" are replaced by control characters before a line is split at its quotes, and restored afterwards.
-- Apache writes an empty user as "", the only quotes that can occur before the request.
-- Most lines contain neither, and checking is cheaper than replacing (and quicker for a quote than for a space).
CREATE MACRO hide_escapes(line) AS CASE WHEN contains(line, '\') OR contains(line, '"" [')
    THEN replace(replace(replace(line, '\\', chr(1)), '\"', chr(2)), ' "" [', ' - [') ELSE line END;
CREATE MACRO restore_escapes(part) AS CASE WHEN contains(part, chr(1)) OR contains(part, chr(2))
    THEN replace(replace(part, chr(2), '\"'), chr(1), '\\') ELSE part END;
-- The time [17/May/2015:10:05:03 +0000] (28 characters and a space) at the end of the part before the request, which is
-- split at each space. The first branch handles most logs, and parses no time zone; the last one is for
-- fractions of a second, such as [17/May/2015:10:05:03.123 +0000].
CREATE MACRO bracketed_time(head, words) AS CASE
    WHEN words[-1] = '' AND words[-2] = '+0000]' AND strlen(words[-3]) = 21
        THEN try_strptime(words[-3], '[%d/%b/%Y:%H:%M:%S')
    ELSE coalesce(
        CAST(try_strptime(
            right(CASE WHEN ends_with(head, '] ') THEN head ELSE rtrim(head) || ' ' END, 29), '[%d/%b/%Y:%H:%M:%S %z] '
        ) AS TIMESTAMP),
        CAST(try_strptime(
            regexp_replace(words[-3], '(\.\d{1,6})\d*$', '\1') || ' ' || words[-2], '[%d/%b/%Y:%H:%M:%S.%f %z]'
        ) AS TIMESTAMP)) END;
CREATE MACRO is_address(word) AS regexp_full_match(word, '[0-9A-Fa-f:.]*[.:][0-9A-Fa-f:.]*');
-- The address at the beginning of a line, or several separated by commas, of which proxies added all but the first.
CREATE MACRO first_address(word) AS CASE WHEN ends_with(word, ',') THEN rtrim(word, ',') ELSE word END;
CREATE MACRO leading_addresses(head, first, second) AS CASE WHEN second = '-' THEN first
    WHEN ends_with(first, ',') OR is_address(second) THEN array_to_string(
        regexp_extract_all(regexp_extract(head, '^(?:[0-9A-Fa-f:.]+,? )+'), '[0-9A-Fa-f:.]*[.:][0-9A-Fa-f:.]*'), ',')
    ELSE first END;
-- The addresses in the last quoted field, which is X-Forwarded-For in nginx's "main" format; '' if it has other text.
CREATE MACRO forwarded_after(parts) AS CASE WHEN len(parts) > 8 AND regexp_full_match(
        parts[len(parts) // 2 * 2], '[0-9A-Fa-f:.]*[.:][0-9A-Fa-f:.]*(?:, ?[0-9A-Fa-f:.]*[.:][0-9A-Fa-f:.]*)*')
    THEN parts[len(parts) // 2 * 2] ELSE '' END;

-- Split a request line into method, target and protocol; all are '' if it is invalid.
-- The first branch handles most lines without the slower regular expression.
CREATE MACRO split_request(line) AS CASE
    WHEN starts_with(line, 'GET /') AND (ends_with(line, ' HTTP/1.1') OR ends_with(line, ' HTTP/2.0'))
        AND NOT contains(line, chr(10))
        THEN {'method': 'GET', 'target': substring(line, 5, length(line) - 13), 'protocol': right(line, 8)}
    ELSE regexp_extract(line, '^([A-Z]{2,20}) (.*?)(?: (HTTP/[0-9.]+))?$', ['method', 'target', 'protocol']) END;
-- The HTTP version in one notation for all logs; '' if it is unknown.
CREATE MACRO http_version(protocol) AS CASE
    WHEN protocol IN ('HTTP/1.1', 'HTTP/1.0', 'HTTP/2', 'HTTP/3') THEN protocol
    WHEN protocol = 'HTTP/2.0' THEN 'HTTP/2' WHEN protocol = 'HTTP/3.0' THEN 'HTTP/3' ELSE '' END;

-- Whether a text is one that servers log instead of a status if the client disconnected before the response.
CREATE MACRO is_unanswered(status) AS status IN ('0', '000', '-', '-1');
-- The status before the bytes. The first branches handle most lines of short links, as in split_request.
CREATE MACRO status_after(part) AS CASE WHEN starts_with(part, ' 302 ') THEN 302 WHEN starts_with(part, ' 200 ') THEN 200
    WHEN is_unanswered(split_part(part, ' ', 2)) THEN 0
    ELSE CAST(nullif(regexp_extract(part, '^ ([1-9][0-9][0-9]) ', 1), '') AS SMALLINT) END;
CREATE MACRO dash_as_empty(part) AS CASE WHEN part = '-' THEN '' ELSE part END;
-- The client's country as reported by a content delivery network, in a quoted field after the user agent.
CREATE MACRO country_after(parts) AS CASE WHEN len(parts) > 8 THEN coalesce(
    list_filter(parts[8:], lambda part : regexp_full_match(part, '[A-Z]{2}') AND part <> 'XX')[1], '') ELSE '' END;

-- Whether a line begins with a virtual host before the address. In other lines, the identity (mostly a dash) is second.
-- Two addresses are a client's and a proxy's, unless the first has a port: then it is a host.
CREATE MACRO names_a_host(head, first, second) AS CASE WHEN second = '-' THEN FALSE
    WHEN is_address(first_address(second)) THEN NOT is_address(first_address(first)) OR regexp_matches(head, '^[0-9.]+:[0-9]+ ')
    ELSE FALSE END;

-- The lines of the relation `source`, split at their quotes into `parts`. `head` is the part before the request, `words`
-- are its words, `first` and `second` the first two.
-- Every step is a subquery, because a macro repeats its argument wherever it is used: an expression instead of a column
-- would make the query many times as large, and planning it slower than reading a log.
CREATE MACRO quoted_lines(source) AS TABLE
SELECT number, bytes, parts, head, words, words[1] AS first, coalesce(words[2], '') AS second,
    split_request(line) AS request, after_request, referrer, user_agent
FROM (
    SELECT number, bytes, parts, head, string_split(head, ' ') AS words, restore_escapes(line) AS line, after_request,
        dash_as_empty(restore_escapes(referrer)) AS referrer, dash_as_empty(restore_escapes(user_agent)) AS user_agent
    FROM (
        SELECT number, bytes, parts, parts[1] AS head, parts[2] AS line, parts[3] AS after_request,
            parts[4] AS referrer, parts[6] AS user_agent
        FROM (SELECT number, strlen(line) AS bytes, string_split(hide_escapes(line), '"') AS parts
            FROM query_table(source))
    )
);
