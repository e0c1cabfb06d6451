"""The names of the log formats, in a separate module because formats.py is slow to import."""

from typing import Final

FORMATS: Final = (
    "combined", "vhost-combined", "common", "alb", "cloudfront", "w3c", "caddy", "cloudflare", "traefik", "haproxy",
    "fastly", "vercel", "netlify", "npm", "heroku", "nginx-json", "google-cloud", "azure-front-door",
    "azure-application-gateway", "bunny", "s3", "envoy", "envoy-json", "cloudfront-json", "akamai", "ndjson", "csv",
)  # fmt: skip
"""The log formats, strictest first: if two formats match a log equally well, the earlier format is used. No line
matches two of the first three; `combined` is tried before the others because most logs are in it."""

HOSTLESS_FORMATS: Final = ("combined", "common")
"""Formats without a host in their lines."""

NAMED_COLUMN_FORMATS: Final = ("ndjson", "csv")
"""Formats with columns that --columns can rename."""

WHOLE_FILE_FORMATS: Final = ("common", "cloudfront", "w3c", "ndjson", "csv")
"""Formats that cannot be recognized by a single line: earlier lines define the columns, the line may be an unfinished
line in `combined`, or the columns may have any names."""
