"""The origin of a visit: the host and type of its referrer, and its campaign parameters."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl

from data.rules.bots import HUMAN_CLASSIFICATION, RuleMatch
from data.rules.tables import Campaign, Referrer, Spammer, load
from data.visits import UTM_FIELDS, Classification

MAX_QUERY_LENGTH: Final = 8192
MAX_UTM_LENGTH: Final = 256

_ADDRESS = re.compile(r"((?:(?:android-app|https?):)?//)?([^/?#\\]*)([^?#]*)", re.IGNORECASE)
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\s\[\]]+)(?::\d*)?", re.IGNORECASE)
_BARE_HOST = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+\.?(?::\d+)?", re.IGNORECASE)
_ANY_SUFFIX = re.compile(r"([^.]+)\.(?:com|[a-z]{2}|com?\.[a-z]{2})")
INTERNAL: Final = "internal"
"""The referrer_type for the organization's own hosts."""
MAX_HOST_LENGTH: Final = 253
"""RFC 1035: a longer name is not a valid host name."""


def host_and_path(referrer: str) -> tuple[str, str] | None:
    """Return the host and path in a Referer header; None if it has no valid host.

    The host is in lower case, without port, user and trailing dot; an Android app's host begins with `android-app://`.
    """
    scheme, authority, path = _ADDRESS.match(referrer).groups()  # type: ignore[union-attr]  # it matches anything
    if scheme is None and not _BARE_HOST.fullmatch(authority):
        return None
    match = _HOST.fullmatch(authority.rpartition("@")[2])
    host = match[1].lower().rstrip(".") if match else ""
    if not host or len(host) > MAX_HOST_LENGTH:
        return None
    return ("android-app://" + host if scheme and scheme[0] in "aA" else host), path


def is_internal(referrer: str | None, domain: str | None, link_domains: Collection[str]) -> bool:
    """Return whether a referring host is the visit's own domain or one of the links' domains, with or without
    `www.`.
    """
    if referrer is None:
        return False
    host = referrer.removeprefix("www.")
    return host in link_domains or f"www.{host}" in link_domains or host == (domain or "").removeprefix("www.")


class ReferrerTable:
    """The rows of referrers.toml and spammers.toml, indexed by host."""

    def __init__(self, rows: Iterable[Referrer], spammers: Iterable[Spammer] = ()) -> None:
        self._spammers = {row.host: row for row in spammers}
        self._rows: dict[str, list[Referrer]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: len(row.host), reverse=True):
            app, _, rest = row.host.rpartition("://")
            host = rest.partition("/")[0]
            self._rows[f"{app}://{host}" if app else host].append(row)

    def find(self, host: str, path: str) -> Referrer | None:
        """Return the row with the longest host and path that match `host` and `path`; None if no row matches."""
        for name in _parent_names(host):
            for row in self._rows.get(name, ()):
                below = row.host.removeprefix("android-app://").partition("/")[2]
                if not below or f"{path}/".startswith(f"/{below}/"):
                    return row
        return None

    def spammer(self, host: str) -> Spammer | None:
        """Return the row of spammers.toml that names `host` or one of its parent domains; None if there is none."""
        return next((self._spammers[name] for name in _parent_names(host) if name in self._spammers), None)

    def path_of(self, host: str, referrer_type: str) -> str:
        """Return a path on which `host` has this type; / if possible or if there is none. Visits store only hosts."""
        at_root = self.find(host, "/")
        if at_root is None or at_root.referrer_type != referrer_type:
            for row in (row for name in _parent_names(host) for row in self._rows.get(name, ())):
                if row.referrer_type == referrer_type:
                    return "/" + row.host.removeprefix("android-app://").partition("/")[2]
        return "/"


class Campaigns:
    """Recognizes AI products by a value of campaigns.toml or a host in utm_source, or by a host in `referrer`."""

    def __init__(self, referrers: ReferrerTable) -> None:
        self._rows = {row.utm_source: row for row in load(Campaign, "campaigns")}
        self._referrers = referrers

    def match(self, query: str) -> RuleMatch | None:
        """Return the match for the AI product that a query names in utm_source or, as Grok does, by its host in
        `referrer`; None if it names no AI product.
        """
        source = (utm_values(query)[0] or "").lower().removeprefix("www.")
        row = self._rows.get(source)
        if row:
            classification = ai_referral(row.ai_source, row.confidence, "utm")
            return RuleMatch(f'campaigns.toml: "{row.utm_source}"', row.evidence, classification)
        values = _query_values(query[:MAX_QUERY_LENGTH]) if "referrer=" in query else {}
        referrer = values.get("referrer", "").strip().lower()
        return self._match_host(source, "utm_source") or self._match_host(referrer, "referrer")

    def _match_host(self, name: str, key: str) -> RuleMatch | None:
        address = host_and_path(name) if "." in name else None
        row = self._referrers.find(*address) if address else None
        if row is None or row.referrer_type != "ai":
            return None
        return RuleMatch(
            f'referrers.toml: "{row.host}" as {key}', row.evidence, ai_referral(row.ai_source, row.confidence, "utm")
        )


def ai_referral(ai_source: str | None, confidence: str | None, method: str) -> Classification:
    """Return the classification of a person sent by an AI product."""
    device = HUMAN_CLASSIFICATION[7:]
    return Classification("ai_referral", "referral", ai_source, None, None, confidence, method, *device)


def utm_values(query: str) -> tuple[str | None, ...]:
    """Return the values of utm_source, utm_medium, utm_campaign, utm_term and utm_content in a query string."""
    if "utm_" not in query:
        return (None,) * len(UTM_FIELDS)
    values = _query_values(query[:MAX_QUERY_LENGTH])
    return tuple(values[name].strip()[:MAX_UTM_LENGTH] or None if name in values else None for name in UTM_FIELDS)


@lru_cache(1 << 12)
def _query_values(query: str) -> dict[str, str]:
    """Return the first value of each key in a query string of at most MAX_QUERY_LENGTH characters."""
    return dict(reversed(parse_qsl(query, errors="replace", max_num_fields=None)))


def _parent_names(host: str) -> Iterator[str]:
    """Yield the keys under which rows may match a host: the host itself, its parent domains, and `name.*` for any
    suffix.
    """
    yield host
    while host and "://" not in host:  # an app has no parent domain
        any_suffix = _ANY_SUFFIX.fullmatch(host)
        if any_suffix:
            yield f"{any_suffix[1]}.*"
        host = host.partition(".")[2]
        if host:
            yield host
