"""Derives facts about a request (bits of `signals`) from its scheme, its headers and the edge's verdict."""

from typing import Final, NamedTuple

from data.signals import BITS

_PARTS: Final = frozenset(
    (
        "audio", "audioworklet", "font", "image", "manifest", "paintworklet", "script", "serviceworker",
        "sharedworker", "style", "track", "video", "worker", "xslt",
    )
)  # fmt: skip
"""Values of `Sec-Fetch-Dest` for parts of a page. Evidence: https://www.w3.org/TR/fetch-metadata/#sec-fetch-dest-header
"""
_CLASSES: Final = {
    "badHost": "edge_suspected", "scan": "edge_suspected", "searchEngine": "edge_verified",
    "monitoringService": "edge_verified", "tor": "from_tor",
}  # fmt: skip
"""The fact for each of Cloudflare's address classes; noRecord and allowlist yield none.

Evidence: https://developers.cloudflare.com/logs/logpush/logpush-job/datasets/zone/http_requests/#clientipclass
"""
_SCORES: Final = frozenset(map(str, range(1, 100)))
_ENCRYPTED: Final = frozenset(("https", "wss", "h2", "grpcs"))
_PLAIN: Final = frozenset(("http", "ws"))
"""Schemes, and the connection types that an AWS load balancer logs instead.

Evidence: https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html
"""


class RequestRecord(NamedTuple):
    """Logged values of one request, apart from its request line. None: not logged; "": not sent with the request.

    They are read when a visit lands, and never stored. Each log format has the columns that it can fill.
    """

    scheme: str | None = None  # of the client's connection
    fetch_mode: str | None = None  # Sec-Fetch-Mode
    fetch_dest: str | None = None  # Sec-Fetch-Dest
    fetch_site: str | None = None  # Sec-Fetch-Site
    purpose: str | None = None  # Sec-Purpose, or its older names
    firefox_ai: str | None = None  # X-Firefox-Ai
    accept: str | None = None
    accept_language: str | None = None
    signature_agent: str | None = None
    signature_input: str | None = None
    bot_score: str | None = None  # Cloudflare's, from 1 (a program for certain) to 99; 0: not computed
    verified_bot: str | None = None  # the category of a bot that the edge verified
    address_class: str | None = None  # Cloudflare's; see _CLASSES


NO_RECORD: Final = RequestRecord()


def request_facts(record: RequestRecord) -> int | None:
    """Return the bits of the facts that follow from a record; None if there are none."""
    mode, dest = record.fetch_mode, record.fetch_dest
    purpose = (record.purpose or "").lower()
    score = int(record.bot_score) if record.bot_score in _SCORES else 0
    by_class = _CLASSES.get(record.address_class or "")
    fetch = (mode, dest, record.fetch_site)
    is_fetch_sent = any(fetch) and "" not in fetch  # browsers send all three; Node.js sends only the mode
    is_opened = mode == "navigate" and dest in {None, "document", "empty"}  # empty: passed on by a service worker
    facts = {
        "https": record.scheme in _ENCRYPTED,
        "plain_http": record.scheme in _PLAIN,
        "fetch_absent": not is_fetch_sent and fetch != (None, None, None),
        "fetch_sent": is_fetch_sent,
        "navigation": dest == "document" if mode is None else is_opened,
        "accepts_no_page": record.scheme in _PLAIN
        and not any(fetch)
        and bool(record.accept_language)
        and "text/html" not in (record.accept or "text/html").lower(),
        "page_part": dest in _PARTS or mode in {"cors", "websocket"},
        "loaded_ahead": any(word in purpose for word in ("prefetch", "prerender", "preview")),
        "link_preview": bool(record.firefox_ai),
        "language_absent": record.accept_language == "",
        "language_sent": bool(record.accept_language),
        "signed": bool(record.signature_agent or record.signature_input),
        "edge_automated": score == 1,
        "edge_suspected": 2 <= score < 30 or by_class == "edge_suspected",
        "edge_verified": bool(record.verified_bot) or by_class == "edge_verified",
        "from_tor": by_class == "from_tor",
    }
    return sum(BITS[name] for name, is_so in facts.items() if is_so) or None
