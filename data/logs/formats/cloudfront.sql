-- CloudFront logs: W3C extended log format with tab-separated, percent-encoded fields. Real-time logs have no #Fields
-- directive of their own, the query in cs-uri-stem, and the requested host in cs-host; x-host-header is the host of the
-- distribution, like cs(Host) in standard logs.
-- In cs-headers (name:value) and cs-header-names, each header ends with %0A; they are truncated at 800 bytes, and
-- cs-headers may lack cookies. So a header is known to be absent only if cs-headers-count headers are listed.
-- Evidence: https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/real-time-logs.html
-- Parameter: fields, the last #Fields directive before these lines.
-- Example: #Fields: date time c-ip cs-method cs(Host) cs-uri-stem sc-status cs(User-Agent)
-- Example: 2026-03-04	10:05:03	203.0.113.7	GET	go.example.com	/abc	302	Mozilla/5.0%20(X11)
WITH requests AS (SELECT * FROM w3c_fields('lines', $fields, chr(9)))
SELECT * FROM cloudfront_requests('requests')
