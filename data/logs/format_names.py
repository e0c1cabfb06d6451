"""The names of the log formats, apart from what reads them, which is slow to load."""

from typing import Final

FORMATS: Final = (
    "vhost-combined", "combined", "common", "alb", "cloudfront", "w3c", "caddy", "cloudflare", "nginx-json",
    "ndjson", "csv",
)  # fmt: skip
"""Strictest first: where two explain a log equally well, the first one is meant."""
