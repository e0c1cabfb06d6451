"""The bits of the column `signals`: evidence from a visit's own line, and from the visits of its day.

SIGNALS are evidence against a visit, REQUEST_FACTS record facts about its request, and REASONS_ASIDE are reasons for
setting it aside. Files store observations; answers interpret them by the masks below, and `signed` is the only request
fact that answers use. SQL gets its bits and masks from here: as parameters in data/ingest and data/tasks, as macros and
a table in queries/prelude. data/tasks/judging.py judges past days, and uses facts for that, too.
"""

from typing import Final, Literal, NamedTuple

BEHAVIOUR_VERSION: Final = 17
"""The version of the rules for judging days. Raise it with every change in the meaning of a signal; 0 means not judged.

The version is stored with each file. Days judged by an earlier version are judged again, by a server, by `traffic
compact` and by `traffic behaviour rejudge`.
"""


class Signal(NamedTuple):
    """One bit of `signals`."""

    name: str
    bit: int
    set_at: Literal["landing", "judging"]
    convicts: bool
    """True if a visit that looks human counts as a bot in disguise when it has this signal (`unfollowed` alone: as a
    prefetch)."""
    meaning: str


SIGNALS: Final = (
    Signal(
        "attacked", 1, "landing", convicts=False,
        meaning="its query string is an attack, which counts as a probe by its visitor",
    ),
    Signal(
        "probed", 2, "judging", convicts=True,
        meaning="its visitor requested a missing path that only scanners request, or posted where nothing takes data",
    ),
    Signal("outdated", 4, "judging", convicts=True, meaning="its browser had been superseded years before"),
    Signal(
        "errors", 8, "judging", convicts=True,
        meaning="its visitor requested at least five pages, and four in five were not found",
    ),
    Signal(
        "breadth", 16, "judging", convicts=False,
        meaning="its visitor opened at least thirty pages, one every three seconds or faster",
    ),
    Signal(
        "no_assets", 32, "judging", convicts=True,
        meaning="its user agent opened at least twenty pages without the files that others load with them",
    ),
    Signal(
        "stale", 64, "judging", convicts=True,
        meaning="its browser is at least half as old as an outdated one; its visitor loaded no file that others load",
    ),
    Signal(
        "sweep", 128, "judging", convicts=True,
        meaning="its visitor opened at least 200 pages, one every second or faster, or 800, one every three seconds",
    ),
    Signal(
        "scanned", 1 << 30, "judging", convicts=False,
        meaning="its visitor requested three different missing targets of scanners, which no AI agent does",
    ),
    Signal(
        "no_fetch_metadata", 1 << 31, "judging", convicts=True,
        meaning="its browser always sends `Sec-Fetch-*` over TLS; others did, but its visitor never did",
    ),
    Signal(
        "no_language", 1 << 32, "judging", convicts=True,
        meaning="its browser always sends `Accept-Language`; others did, but its visitor never did",
    ),
    Signal(
        "unfollowed", 1 << 33, "judging", convicts=True,
        meaning="a browser prefetched it, and no later request by its visitor shows that it was opened",
    ),
    Signal(
        "bot_network", 1 << 36, "judging", convicts=True,
        meaning="it named a browser, but came from a network that only a known bot uses",
    ),
    Signal(
        "hosting_bare", 1 << 37, "judging", convicts=True,
        meaning="its visitor, on a hosting network, opened pages without the files that others load with them",
    ),
    Signal(
        "hosting_unserved", 1 << 38, "judging", convicts=True,
        meaning="its visitor, on a hosting network, was served no page and no link, and loaded no file",
    ),
    Signal(
        "hosting_fleet", 1 << 39, "judging", convicts=True,
        meaning="at least three visitors on hosting networks share its user agent, with one page each and no file",
    ),
    Signal(
        "hosting_superseded", 1 << 40, "judging", convicts=True,
        meaning="it came from a hosting network, with a browser superseded half a year before",
    ),
    Signal(
        "superseded_bare", 1 << 41, "judging", convicts=True,
        meaning="its visitor, with a self-updating browser superseded half a year before, loaded a page without files",
    ),
    Signal(
        "superseded_unserved", 1 << 42, "judging", convicts=True,
        meaning="its browser is a quarter as old as an outdated one; its visitor got no page, link or file of a page",
    ),
    Signal(
        "hosting_single", 1 << 43, "judging", convicts=True,
        meaning="its visitor, on a hosting network, requested at most two pages, and no link or file",
    ),
    Signal(
        "old_protocol_bare", 1 << 44, "judging", convicts=True,
        meaning="its visitor, over HTTP/1 where others use HTTP/2 or 3, loaded a page but no files",
    ),
)  # fmt: skip
"""Every signal. A bit keeps its meaning forever, since files store it; the column has room for 63 bits.

If two signals convict together although neither does alone, the combination has its own row, with a bit that judging
sets.
"""

REQUEST_FACTS: Final = tuple(
    Signal(name, 1 << number, "landing", convicts=False, meaning=meaning)
    for number, name, meaning in (
        (8, "https", "the client's connection was encrypted"),
        (9, "plain_http", "the client's connection was not encrypted"),
        (10, "fetch_absent", "according to the log, one of `Sec-Fetch-Mode`, `-Dest` and `-Site` was not sent"),
        (11, "fetch_sent", "it had all of `Sec-Fetch-Mode`, `-Dest` and `-Site` that the log records"),
        (12, "navigation", "according to `Sec-Fetch-*`, a page was opened, not in a frame"),
        (13, "page_part", "according to `Sec-Fetch-*`, it is part of a page: a stylesheet, a script, data or a worker"),
        (14, "loaded_ahead", "a browser requested it in advance (`Sec-Purpose` and its older names)"),
        (15, "link_preview", "Firefox requested it to preview a link"),
        (16, "language_absent", "the log has the `Accept-Language` header, and it was not sent"),
        (17, "language_sent", "it had an `Accept-Language` header"),
        (18, "signed", "it named its agent in `Signature-Agent`, or was signed; not verified"),
        (19, "edge_automated", "the network in front of the server was certain that a program sent it"),
        (20, "edge_suspected", "the network in front of the server suspected that a program sent it"),
        (21, "edge_verified", "the network in front of the server verified a known bot"),
        (22, "from_hosting", "its address is in a network of a hosting provider or cloud"),
        (23, "from_cdn", "its address is in a network of a content delivery network"),
        (24, "from_vpn", "its address belongs to a listed VPN"),
        (25, "from_relay", "its address belongs to a private relay"),
        (26, "from_tor", "its address is a Tor exit node"),
        (34, "accepts_no_page", "it was not encrypted, and its `Accept` names no page: it requested a file or data"),
        (35, "from_bot", "its address is in a network that only a known bot uses"),
    )
)
"""Facts about the request. Without either bit of a pair, such as `https` and `plain_http`, the fact is unknown."""

REASONS_ASIDE: Final = (
    Signal(
        "file", 1 << 27, "landing", convicts=False,
        meaning="a page loaded it as part of itself, judging by its path, its `Sec-Fetch-*` or its status 101",
    ),
    Signal("own_address", 1 << 28, "landing", convicts=False, meaning="it came from one of the owner's addresses"),
    Signal("own_rule", 1 << 29, "landing", convicts=False, meaning="the owner excluded its user agent or path"),
)  # fmt: skip
"""Reasons for setting a visit aside: it is stored and judged, but not counted. Requests for files are set aside only if
the owner chooses to."""

_ALL: Final = (*SIGNALS, *REQUEST_FACTS, *REASONS_ASIDE)
BITS: Final = {signal.name: signal.bit for signal in _ALL}
FACTS: Final = sum(fact.bit for fact in REQUEST_FACTS)
HEADERS: Final = sum(BITS[name] for name in ("fetch_absent", "fetch_sent", "language_absent", "language_sent"))
"""The mask of facts about headers. Any one of these facts shows that the log records headers used for judging."""
NETWORKS: Final = 1 << 62
"""A fact about a file: the networks of addresses were looked up when its visits landed, which version 1.0.0 did not do.
"""
LANDED: Final = sum(signal.bit for signal in _ALL if signal.set_at == "landing")
"""The bits that a visit may have when it lands. Judging keeps them, since they cannot be determined later.

Reclassifying keeps them, too, except `file` and `own_rule`, which are determined again from the stored request.
"""
SCANNED: Final = BITS["scanned"]
"""The bit that withdraws the name of an AI agent or crawler, unless its address was verified."""
PROBING: Final = BITS["probed"] | BITS["scanned"]
"""The mask for visitors who request paths that only scanners request. Their errors do not indicate a problem with the
site."""
UNFOLLOWED: Final = BITS["unfollowed"]
"""The bit for a page that a browser prefetched but that was never opened. Alone, it makes a visit a prefetch, not a bot
in disguise."""
OWN: Final = BITS["own_address"] | BITS["own_rule"]
"""The mask of bits that each set a visit aside, whether or not files are counted."""
CONVICTING: Final = sum(signal.bit for signal in SIGNALS if signal.convicts)
"""The mask of signals that each turn a human-looking visit into a bot in disguise (UNFOLLOWED alone: a prefetch)."""
