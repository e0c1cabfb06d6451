"""Which URLs a hook may have. Where their hosts lead is checked at each attempt, as it may change."""

import re
from typing import Final
from urllib.parse import urlsplit

from data import BadInput
from data.hosts import normalized_host

MAX_URL_LENGTH: Final = 2_048
_PRINTABLE_ASCII: Final = re.compile(r"[!-~]+")  # urlsplit removes tabs and line ends without a word


def check_hook_url(url: str, allows_http: bool, own_host: str | None) -> None:
    """Raises BadInput. `own_host` is the service's own; plain http is for one's own networks only."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", 0
    bracketed = f"[{host}]" if ":" in host else host
    is_valid = len(url) <= MAX_URL_LENGTH and _PRINTABLE_ASCII.fullmatch(url) and normalized_host(bracketed)
    if not is_valid or port == 0:
        raise BadInput(
            "the URL is invalid; it is an address like https://automation.example/hook, of at most "
            f"{MAX_URL_LENGTH:,} ASCII characters without spaces."
        )
    if parts.scheme != "https" and (parts.scheme != "http" or not allows_http):
        raise BadInput("the URL must begin with https://; only networks in TRAFFIC_HOOK_NETWORKS take plain http.")
    if "@" in parts.netloc or "#" in url:
        raise BadInput("the URL must have no user, password or fragment (#); put a token into its path or query.")
    if host.removesuffix(".") == own_host:
        raise BadInput("the URL is this service itself, according to TRAFFIC_PUBLIC_URL.")
