"""Where a person came from: the host of a referrer, what kind of place that is, and the words of a campaign."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl

from data.rules.bots import HUMAN_CLASSIFICATION, RuleMatch
from data.rules.tables import Campaign, Referrer, load
from data.visits import UTM_FIELDS, Classification

MAX_QUERY_LENGTH: Final = 8192
MAX_UTM_LENGTH: Final = 256

_ADDRESS = re.compile(r"((?:(?:android-app|https?):)?//)?([^/?#\\]*)([^?#]*)", re.IGNORECASE)
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\s\[\]]+)(?::\d*)?", re.IGNORECASE)
_BARE_HOST = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+\.?(?::\d+)?", re.IGNORECASE)
_ANY_SUFFIX = re.compile(r"([^.]+)\.(?:com|[a-z]{2}|com?\.[a-z]{2})")
MAX_HOST_LENGTH: Final = 253
"""RFC 1035: a longer name is not a valid host name."""


def host_and_path(referrer: str) -> tuple[str, str] | None:
    """The host, in lower case without port, user or final dot, and the path of a Referer header; None without one."""
    scheme, authority, path = _ADDRESS.match(referrer).groups()  # type: ignore[union-attr]  # it matches anything
    if scheme is None and not _BARE_HOST.fullmatch(authority):
        return None
    found = _HOST.fullmatch(authority.rpartition("@")[2])
    host = found[1].lower().rstrip(".") if found else ""
    if not host or len(host) > MAX_HOST_LENGTH:
        return None
    return ("android-app://" + host if scheme and scheme[0] in "aA" else host), path


class ReferrerTable:
    """The referrer table, ready to be asked."""

    def __init__(self, rows: Iterable[Referrer]) -> None:
        self._rows: dict[str, list[Referrer]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: len(row.host), reverse=True):
            app, _, rest = row.host.rpartition("://")
            host = rest.partition("/")[0]
            self._rows[f"{app}://{host}" if app else host].append(row)

    def find(self, host: str, path: str) -> Referrer | None:
        """The row with the longest host, and path, that `host` and `path` lie under."""
        for name in _parent_names(host):
            for row in self._rows.get(name, ()):
                below = row.host.removeprefix("android-app://").partition("/")[2]
                if not below or f"{path}/".startswith(f"/{below}/"):
                    return row
        return None

    def path_of(self, host: str, referrer_type: str) -> str:
        """A path at which `host` is a place of that type, its root if that will do: for when only the host is left."""
        at_root = self.find(host, "/")
        if at_root is None or at_root.referrer_type != referrer_type:
            for row in (row for name in _parent_names(host) for row in self._rows.get(name, ())):
                if row.referrer_type == referrer_type:
                    return "/" + row.host.removeprefix("android-app://").partition("/")[2]
        return "/"


class Campaigns:
    """By which utm_source AI products mark the people they send: words of a table, or hosts of AI products."""

    def __init__(self, referrers: ReferrerTable) -> None:
        self._rows = {row.utm_source: row for row in load(Campaign, "campaigns")}
        self._referrers = referrers

    def match(self, query: str) -> RuleMatch | None:
        """The AI product that a query names: as its utm_source, or as Grok does, by a host in `referrer`."""
        source = (utm_values(query)[0] or "").lower().removeprefix("www.")
        row = self._rows.get(source)
        if row:
            classification = ai_referral(row.ai_source, row.confidence, "utm")
            return RuleMatch(f'campaigns.toml: "{row.utm_source}"', row.evidence, classification)
        return self._match_host(source, "utm_source") or self._match_host(_referrer_parameter(query), "referrer")

    def _match_host(self, name: str, key: str) -> RuleMatch | None:
        address = host_and_path(name) if "." in name else None
        row = self._referrers.find(*address) if address else None
        if row is None or row.referrer_type != "ai":
            return None
        return RuleMatch(
            f'referrers.toml: "{row.host}" as {key}', row.evidence, ai_referral(row.ai_source, row.confidence, "utm")
        )


def ai_referral(ai_source: str | None, confidence: str | None, method: str) -> Classification:
    """A person whom an AI product sent."""
    return HUMAN_CLASSIFICATION._replace(
        bot_category="ai_referral",
        agent_kind="referral",
        ai_source=ai_source,
        confidence=confidence,
        detection_method=method,
    )


def utm_values(query: str) -> tuple[str | None, ...]:
    """The values of utm_source, utm_medium, utm_campaign, utm_term and utm_content in a query string."""
    if "utm_" not in query:
        return (None,) * len(UTM_FIELDS)
    values = _query_values(query)
    return tuple(values[name].strip()[:MAX_UTM_LENGTH] or None if name in values else None for name in UTM_FIELDS)


def _referrer_parameter(query: str) -> str:
    return _query_values(query).get("referrer", "").strip().lower() if "referrer=" in query else ""


def _query_values(query: str) -> dict[str, str]:
    """The first value of each key near the beginning of a query."""
    return _parsed(query[:MAX_QUERY_LENGTH])


@lru_cache(1 << 12)
def _parsed(query: str) -> dict[str, str]:
    return dict(reversed(parse_qsl(query, errors="replace", max_num_fields=None)))


def _parent_names(host: str) -> Iterator[str]:
    """The names under which rows can hold for a host: its own, and those of the domains above it."""
    yield host
    while host and "://" not in host:  # an app has no domain above it
        any_suffix = _ANY_SUFFIX.fullmatch(host)
        if any_suffix:
            yield f"{any_suffix[1]}.*"
        host = host.partition(".")[2]
        if host:
            yield host
