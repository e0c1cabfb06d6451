"""Where a person came from: the host of a referrer, and what kind of place that is."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from data.reference import Referrer

_ADDRESS = re.compile(r"((?:(?:android-app|https?):)?//)?([^/?#\\]*)([^?#]*)", re.IGNORECASE)
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\s\[\]]+)(?::\d*)?", re.IGNORECASE)
_BARE_HOST = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?", re.IGNORECASE)
_ANY_SUFFIX = re.compile(r"([^.]+)\.(?:com|[a-z]{2}|com?\.[a-z]{2})")
LONGEST_HOST: Final = 253
"""RFC 1035: a longer name is no host."""


def host_and_path(referrer: str) -> tuple[str, str] | None:
    """The host, in lower case without port, user or final dot, and the path of a Referer header; None without one."""
    scheme, authority, path = _ADDRESS.match(referrer).groups()  # type: ignore[union-attr]  # it matches anything
    if scheme is None and not _BARE_HOST.fullmatch(authority):
        return None
    found = _HOST.fullmatch(authority.rpartition("@")[2])
    host = found[1].lower().rstrip(".") if found else ""
    if not host or len(host) > LONGEST_HOST:
        return None
    return ("android-app://" + host if scheme and scheme[0] in "aA" else host), path


class Places:
    """The referrer table, ready to be asked."""

    def __init__(self, rows: Iterable[Referrer]) -> None:
        self._rows: dict[str, list[Referrer]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: len(row.host), reverse=True):
            app, _, rest = row.host.rpartition("://")
            host = rest.partition("/")[0]
            self._rows[f"{app}://{host}" if app else host].append(row)

    def find(self, host: str, path: str) -> Referrer | None:
        """The row with the longest host, and path, that `host` and `path` lie under."""
        for name in _names_above(host):
            for row in self._rows.get(name, ()):
                below = row.host.removeprefix("android-app://").partition("/")[2]
                if not below or f"{path}/".startswith(f"/{below}/"):
                    return row
        return None


def _names_above(host: str) -> Iterator[str]:
    yield host
    while host:
        any_suffix = _ANY_SUFFIX.fullmatch(host)
        if any_suffix:
            yield f"{any_suffix[1]}.*"
        host = host.partition(".")[2]
        if host:
            yield host
