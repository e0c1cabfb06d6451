-- Macros for all formats. Those for formats with named fields only are in fields.sql.

-- \\ and \" are replaced by control characters before a line is split at its quotes, and restored afterwards.
-- Apache writes an empty user as "", the only quotes that can occur before the request.
-- Most lines contain none of these, and checking is cheaper than replacing.
CREATE MACRO hide_escapes(line) AS CASE WHEN contains(line, '\') OR contains(line, ' "" [')
    THEN replace(replace(replace(line, '\\', chr(1)), '\"', chr(2)), ' "" [', ' - [') ELSE line END;
CREATE MACRO restore_escapes(part) AS CASE WHEN contains(part, chr(1)) OR contains(part, chr(2))
    THEN replace(replace(part, chr(2), '\"'), chr(1), '\\') ELSE part END;
CREATE MACRO quoted_parts(line) AS string_split(hide_escapes(line), '"');

-- The time [17/May/2015:10:05:03 +0000] (28 characters and a space) at the end of the part before the request.
CREATE MACRO bracketed_time(head) AS CAST(try_strptime(
    right(CASE WHEN ends_with(head, '] ') THEN head ELSE rtrim(head) || ' ' END, 29), '[%d/%b/%Y:%H:%M:%S %z] '
) AS TIMESTAMP);
-- The client's address: the first one when the addresses of proxies follow it.
CREATE MACRO first_address(head) AS CASE WHEN contains(head, ',') THEN rtrim(split_part(head, ' ', 1), ',')
    ELSE split_part(head, ' ', 1) END;

-- Split a request line into method, target and protocol; all are '' when it is invalid.
-- The first branch handles most lines without the slower regular expression.
CREATE MACRO split_request(line) AS CASE
    WHEN starts_with(line, 'GET /') AND right(line, 9) IN (' HTTP/1.1', ' HTTP/2.0') AND NOT contains(line, chr(10))
        THEN {'method': 'GET', 'target': line[5:-10], 'protocol': right(line, 8)}
    ELSE regexp_extract(line, '^([A-Z]{2,20}) (.*?)(?: (HTTP/[0-9.]+))?$', ['method', 'target', 'protocol']) END;
-- The HTTP version in one notation for all logs; '' when it is unknown.
CREATE MACRO http_version(protocol) AS CASE
    WHEN protocol IN ('HTTP/1.1', 'HTTP/1.0', 'HTTP/2', 'HTTP/3') THEN protocol
    WHEN protocol = 'HTTP/2.0' THEN 'HTTP/2' WHEN protocol = 'HTTP/3.0' THEN 'HTTP/3' ELSE '' END;

CREATE MACRO status_after(part) AS CAST(nullif(regexp_extract(part, '^ ([1-9][0-9][0-9]) ', 1), '') AS SMALLINT);
CREATE MACRO dash_as_empty(part) AS CASE WHEN part = '-' THEN '' ELSE part END;
-- The client's country as reported by a content delivery network, in a quoted field after the user agent.
CREATE MACRO country_after(parts) AS CASE WHEN len(parts) > 8 THEN coalesce(
    list_filter(parts[8:], lambda part : regexp_full_match(part, '[A-Z]{2}') AND part <> 'XX')[1], '') ELSE '' END;
CREATE MACRO is_address(word) AS regexp_full_match(word, '[0-9A-Fa-f:.]*[.:][0-9A-Fa-f:.]*');

-- Whether a line begins with a virtual host, before the address. Other lines have the identity (mostly a dash) second.
-- Two addresses are those of a client and a proxy, unless the first one has a port: then it is a host.
CREATE MACRO names_a_host(head) AS CASE WHEN split_part(head, ' ', 2) = '-' THEN FALSE
    WHEN is_address(split_part(head, ' ', 2)) THEN
        NOT is_address(first_address(head)) OR regexp_matches(head, '^[0-9.]+:[0-9]+ ')
    ELSE FALSE END;
