-- Words that readers of access logs share. Those of formats whose fields have names are in fields.sql.

-- \\ and \" are set aside before a line is split at its quotes, and put back afterwards.
-- Apache writes an empty user as "", the only quotes that can stand before the request.
-- Most lines have none of these; looking is cheaper than replacing.
CREATE MACRO hide_escapes(line) AS CASE WHEN contains(line, '\') OR contains(line, ' "" [')
    THEN replace(replace(replace(line, '\\', chr(1)), '\"', chr(2)), ' "" [', ' - [') ELSE line END;
CREATE MACRO restore_escapes(part) AS CASE WHEN contains(part, chr(1)) OR contains(part, chr(2))
    THEN replace(replace(part, chr(2), '\"'), chr(1), '\\') ELSE part END;
CREATE MACRO quoted_parts(line) AS string_split(hide_escapes(line), '"');

-- The 28 characters [17/May/2015:10:05:03 +0000] that end the part before the request, and the space after them.
CREATE MACRO bracketed_time(head) AS CAST(try_strptime(
    right(CASE WHEN ends_with(head, '] ') THEN head ELSE rtrim(head) || ' ' END, 29), '[%d/%b/%Y:%H:%M:%S %z] '
) AS TIMESTAMP);
-- The first of the addresses of a client and its proxies.
CREATE MACRO first_address(head) AS CASE WHEN contains(head, ',') THEN rtrim(split_part(head, ' ', 1), ',')
    ELSE split_part(head, ' ', 1) END;

-- A request line as method, target and protocol; all are '' where it cannot be read.
-- Most lines are split without the regular expression, which takes longer.
CREATE MACRO split_request(line) AS CASE
    WHEN starts_with(line, 'GET /') AND right(line, 9) IN (' HTTP/1.1', ' HTTP/2.0') AND NOT contains(line, chr(10))
        THEN {'method': 'GET', 'target': line[5:-10], 'protocol': right(line, 8)}
    ELSE regexp_extract(line, '^([A-Z]{2,20}) (.*?)(?: (HTTP/[0-9.]+))?$', ['method', 'target', 'protocol']) END;
-- The version of HTTP, written alike for all logs; '' where it is unknown.
CREATE MACRO http_version(protocol) AS CASE
    WHEN protocol IN ('HTTP/1.1', 'HTTP/1.0', 'HTTP/2', 'HTTP/3') THEN protocol
    WHEN protocol = 'HTTP/2.0' THEN 'HTTP/2' WHEN protocol = 'HTTP/3.0' THEN 'HTTP/3' ELSE '' END;

CREATE MACRO status_after(part) AS CAST(nullif(regexp_extract(part, '^ ([1-9][0-9][0-9]) ', 1), '') AS SMALLINT);
CREATE MACRO dash_as_empty(part) AS CASE WHEN part = '-' THEN '' ELSE part END;
-- What a content delivery network says of the client's country, in a quoted field after the user agent.
CREATE MACRO country_after(parts) AS CASE WHEN len(parts) > 8 THEN coalesce(
    list_filter(parts[8:], lambda part : regexp_full_match(part, '[A-Z]{2}') AND part <> 'XX')[1], '') ELSE '' END;
CREATE MACRO is_address(word) AS regexp_full_match(word, '[0-9A-Fa-f:.]*[.:][0-9A-Fa-f:.]*');

-- A virtual host's line names its host before the address; any other line has an identity there, mostly a dash.
-- Two addresses are those of a client and its proxy, unless the first one ends in a port: then it is a host.
CREATE MACRO names_a_host(head) AS CASE WHEN split_part(head, ' ', 2) = '-' THEN FALSE
    WHEN is_address(split_part(head, ' ', 2)) THEN
        NOT is_address(first_address(head)) OR regexp_matches(head, '^[0-9.]+:[0-9]+ ')
    ELSE FALSE END;
