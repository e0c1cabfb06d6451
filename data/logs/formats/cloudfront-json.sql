-- CloudFront's standard logging v2 as JSON lines, or as Parquet, where the same fields have other names, such as
-- cs_user_agent instead of cs(User-Agent).
-- Evidence: https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/standard-logging.html and
-- https://docs.aws.amazon.com/athena/latest/ug/create-cloudfront-table-manual-parquet.html
-- Example: {"date":"2026-03-04","time":"10:05:03","c-ip":"203.0.113.7","cs-method":"GET","cs-uri-stem":"/abc","sc-status":"302","x-host-header":"go.example.com","cs(User-Agent)":"Mozilla/5.0%20(X11)"}
WITH objects AS (
    SELECT number, strlen(line) AS bytes, try(from_json(json_line(line), '"MAP(VARCHAR, VARCHAR)"')) AS named FROM lines
), fields AS (
    SELECT number, bytes, try(map(
        list_transform(map_keys(named), lambda name : translate(lower(name), '-()', '__')), map_values(named))) AS v
    FROM objects
), requests AS (
    SELECT
        number,
        bytes,
        coalesce(v['date'] || ' ' || v['time'], v['timestamp'], v['timestamp_ms']) AS logged_at,
        coalesce(non_empty(v['c_ip']), '') AS ip,
        coalesce(non_empty(v['x_forwarded_for']), '') AS forwarded,
        checked_request(non_empty(v['cs_method']), non_empty(v['cs_uri_stem'])
            || CASE WHEN contains(v['cs_uri_stem'], '?') THEN '' ELSE coalesce('?' || non_empty(v['cs_uri_query']), '') END,
            coalesce(v['cs_protocol_version'], '')) AS request,
        v['sc_status'] AS status,
        v['sc_bytes'] AS bytes_sent,
        coalesce(non_empty(v['x_host_header']), non_empty(v['cs_host']), '') AS domain,
        coalesce(non_empty(v['cs_referer']), '') AS referrer,
        non_empty(v['cs_user_agent']) AS user_agent,
        country_of(v['c_country']) AS country,
        non_empty(v['cs_protocol']) AS scheme,
        CAST(NULL AS VARCHAR) AS headers,
        CAST(NULL AS VARCHAR) AS header_names,
        CAST(NULL AS VARCHAR) AS headers_count,
        v['cs_uri_stem'] IS NOT NULL AND v['sc_status'] IS NOT NULL
            AND coalesce(v['date'] || ' ' || v['time'], v['timestamp'], v['timestamp_ms']) IS NOT NULL AS is_complete,
        '' AS reject_reason
    FROM fields
)
SELECT * FROM cloudfront_requests('requests')
