"""Counts every answer independently: plain Python over a list of visits, written from the documents, not from the SQL.

A visit is a dict with its columns, its `day` and its `organization`. ENTRIES has a function for each answer.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import partial
from itertools import chain, product
from math import comb
from operator import itemgetter
from typing import Any, Final

from queries.prelude import sql_text

Visit = Mapping[str, Any]
Row = dict[str, Any]
Measure = Callable[[Sequence[Visit]], Any]
Answer = Callable[["Question"], Any]
Finder = Callable[[list[Visit], date, set[str]], list[Row]]
InMeasure = Callable[[Visit, Row], Any]

AI: Final = {"ai_assistant", "ai_training", "ai_coding_agent", "ai_referral"}
OTHER: Final = {"search_crawler", "other_bot"}
PEOPLE: Final = {"human", "ai_referral"}
CATEGORIES: Final = sorted({"human"} | AI | OTHER)
GROUPS: Final = {None: CATEGORIES, "people": PEOPLE, "ai": AI, "bots": OTHER}
SCORES: Final = {"verified": 1.0, "high": 0.9, "medium": 0.7, "low": 0.4, "contradicted": 0.0}
DAY_NAMES: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
OTHER_WORDS: Final = "(other)"
MAX_VALUES_PER_DAY: Final = 10_000  # referrers, campaigns, agents or domains kept for a day
MAX_ROWS: Final = 1_000  # rows in an answer with such words
UTM_WORDS: Final = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")
ASSETS: Final = r"^[^?#]*\.(avif|bmp|gif|ico|jpe?g|png|svgz?|tiff?|webp|css|m?js|map|eot|[ot]tf|woff2?)([?#]|$)"
_SOURCES: Final = sorted(
    re.findall(r"\('(\w+)', '([^']+)', '([^']+)'\)", sql_text("names/referrer_sources")),
    key=lambda row: (row[1].endswith("*"), -len(row[1])),
)
"""Referrer type, host and source, from the table used for answers; the longest hosts first."""
_PARTS: Final = (
    "time-series", "ai-sources", "devices", "top-links", "weekly-trend", "ai-platform-market-share", "referrers",
    "geographic", "browsers", "operating-systems", "hourly-activity", "bot-traffic",
)  # fmt: skip
DASHBOARD: Final = {"overview": "traffic-overview"} | {
    re.sub("-(.)", lambda found: found[1].upper(), name): name for name in _PARTS
}


@dataclass(frozen=True)
class Question:
    """A scope, and the visits, links and settings from which its answer is counted."""

    scope: Any
    visits: list[Visit]  # in scope
    seen: list[Visit]  # on the days in scope, regardless of the filters
    stored: list[Visit]  # the same, including visits set aside
    files_aside: bool
    links: list[Mapping[str, Any]]
    values: list[tuple[str, int, str]]
    countries: Mapping[str, str]
    tag: str | None

    @property
    def days(self) -> list[date]:
        length = (self.scope.end_date - self.scope.start_date).days + 1
        return [self.scope.start_date + timedelta(number) for number in range(length)]


def recount(
    name: str,
    visits: Iterable[Visit],
    scope: Any,
    links: Iterable[Mapping[str, Any]] = (),
    values: Iterable[tuple[str, int, str]] | None = None,
    countries: Mapping[str, str] | None = None,
    behaviour: bool = True,
    files_aside: bool = False,
    tag: str | None = None,
) -> Any:
    """Return the answer called `name`. `values`: traffic type, value in ten-thousandths of the currency's unit,
    currency.

    `tag`: only visits to links with this tag are counted. With `behaviour`, visits have the class that answers show,
    otherwise the class with which they landed.
    """
    mine = [visit for visit in visits if visit["organization"] == scope.organization]
    mine = [as_seen(visit) for visit in mine] if behaviour else mine
    stored = [visit for visit in mine if scope.start_date <= visit["day"] <= scope.end_date]
    seen = [visit for visit in stored if is_counted(visit, files_aside)]
    owned = [link for link in links if link["organization"] == scope.organization]
    question = Question(
        scope=scope,
        visits=[visit for visit in seen if _passes(visit, scope) and tag in (None, *_tags_of(owned, visit))],
        seen=seen,
        stored=stored,
        files_aside=files_aside,
        links=owned,
        values=[(category, 0, "USD") for category in CATEGORIES] if values is None else list(values),
        countries=countries or {},
        tag=tag,
    )
    return ENTRIES[name](question)


# Bots in disguise

CONVICTING = (
    "probed", "outdated", "errors", "no_assets", "stale", "sweep", "no_fetch_metadata", "no_language", "unfollowed",
    "bot_network", "hosting_bare", "hosting_unserved", "hosting_fleet", "hosting_superseded",
    "superseded_bare", "superseded_unserved", "hosting_single", "old_protocol_bare",
)  # fmt: skip
FACTS = (
    "https", "plain_http", "fetch_absent", "fetch_sent", "navigation", "page_part", "loaded_ahead", "link_preview",
    "language_absent", "language_sent", "signed", "edge_automated", "edge_suspected", "edge_verified",
    "from_hosting", "from_cdn", "from_vpn", "from_relay", "from_tor",
)  # fmt: skip
ASIDE = ("file", "own_address", "own_rule")
LATER = ("accepts_no_page", "from_bot")
LANDED = ("attacked", *FACTS, *ASIDE, *LATER)
BITS: Final = {
    "attacked": 1, "probed": 2, "outdated": 4, "errors": 8, "breadth": 16, "no_assets": 32, "stale": 64, "sweep": 128,
    "scanned": 1 << 30, "no_fetch_metadata": 1 << 31, "no_language": 1 << 32, "unfollowed": 1 << 33,
    "accepts_no_page": 1 << 34, "from_bot": 1 << 35, "bot_network": 1 << 36, "hosting_bare": 1 << 37,
    "hosting_unserved": 1 << 38, "hosting_fleet": 1 << 39, "hosting_superseded": 1 << 40,
    "superseded_bare": 1 << 41, "superseded_unserved": 1 << 42, "hosting_single": 1 << 43,
    "old_protocol_bare": 1 << 44,
    **{fact: 256 << number for number, fact in enumerate((*FACTS, *ASIDE))},
}  # fmt: skip
LISTED: Final = sum(bit for name, bit in BITS.items() if name not in {*LANDED} - {"attacked"})
DISGUISE: Final = {
    "bot_category": "other_bot", "agent_kind": "disguised", "ai_source": None, "agent": None, "operator": None,
    "confidence": "medium", "detection_method": "behaviour", "device_type": "bot",
}  # fmt: skip


PREFETCH: Final = DISGUISE | {"agent_kind": "prefetch", "detection_method": "header"}
IMPOSTOR: Final = {
    "bot_category": "other_bot", "agent_kind": "other", "ai_source": None, "operator": None,
    "confidence": "contradicted", "detection_method": "behaviour",
}  # fmt: skip


def as_seen(visit: Visit) -> Visit:
    """Return a visit with the class that answers show: a disguised bot if it counted as a person's and has a convicting
    signal.

    If `unfollowed` is its only convicting signal, it is a prefetch. A scanner that uses the name of an AI agent or a
    search crawler is another bot unless it is verified.
    """
    has = {name for name, bit in BITS.items() if (visit.get("signals") or 0) // bit % 2}
    if visit["bot_category"] in PEOPLE and (convicting := has.intersection(CONVICTING)):
        return {**visit, **(PREFETCH if convicting == {"unfollowed"} else DISGUISE)}
    named = visit["bot_category"] in {*AI, "search_crawler"} - PEOPLE and visit["agent"] is not None
    return {**visit, **IMPOSTOR} if "scanned" in has and named and visit["confidence"] != "verified" else visit


def is_counted(visit: Visit, files_aside: bool) -> bool:
    """Return whether answers count a visit: not if it is by the site's owner, or for a file and files are set aside."""
    aside = ASIDE if files_aside else ASIDE[1:]
    return not any((visit.get("signals") or 0) & BITS[name] for name in aside)


def signals(
    visits: Sequence[Visit],
    own_codes: Iterable[str] = (),
    outdated: Callable[[str], bool] = lambda _agent: False,
    stale: Callable[[str], bool] = lambda _agent: False,
    superseded: Callable[[str], bool] = lambda _agent: False,
    sends: Callable[[str], bool] = lambda _agent: False,
    late: Callable[[str], bool] = lambda _agent: False,
    updates_itself: Callable[[str], bool] = lambda _agent: False,
) -> list[int]:
    """Return the signals of each visit, as bits; `visits` are all visits of one organization on one day."""
    by_visitor = {
        visitor: _signals_of_visitor(of_one, visits, set(own_codes))
        for visitor, of_one in _grouped(visits, lambda visit: visit["visitor"]).items()
        if visitor is not None
    }
    people = [visit for visit in visits if visit["bot_category"] in PEOPLE and visit["user_agent"] is not None]
    sites = _sites_with_assets(people)
    bare = {key for key, (pages, assets) in sites.items() if pages >= 20 and 10 * assets < pages}
    loading = {(visit["domain"] or "", visit["visitor"]) for visit in visits if _is_asset(visit["path"])}
    old = {visit["user_agent"] for visit in people if outdated(visit["user_agent"])}
    replaced = {visit["user_agent"] for visit in people if superseded(visit["user_agent"])}
    browsers = {visit["user_agent"] for visit in people if sends(visit["user_agent"])}
    headerless = {name: _headerless(visits, browsers, *facts) for name, facts in HEADERS.items()}
    unfollowed = _unfollowed_pages(visits)
    hosting = _hosting(visits) | _late(visits, late, updates_itself) | _of_old_protocol(visits, browsers)
    told = []
    for visit in visits:
        names = set(by_visitor.get(visit["visitor"], ()))
        names |= {name for name in LANDED if (visit.get("signals") or 0) & BITS[name]}
        names |= {"outdated"} if visit["user_agent"] in old else set()
        is_hosted = visit["user_agent"] in replaced and _has_bit(visit, "from_hosting")
        names |= {"hosting_superseded"} if is_hosted else set()
        domain, visitor = visit["domain"] or "", visit["visitor"]
        key = domain, visit["user_agent"]
        names |= {"no_assets"} if key in bare else set()
        is_stale = key in sites and visitor is not None and stale(visit["user_agent"])
        names |= {"stale"} if is_stale and (domain, visitor) not in loading else set()
        names |= {name for name, found in (headerless | hosting).items() if (domain, visitor) in found}
        names |= {"bot_network"} if visit["bot_category"] in PEOPLE and _has_bit(visit, "from_bot") else set()
        names |= {"unfollowed"} if _is_ahead(visit) and _request(visit) in unfollowed else set()
        told.append(sum(BITS[name] for name in names))
    return told


def judged(visits: Iterable[Visit], releases: Any, own_codes: Iterable[str] = (), engines: Any = None) -> list[Visit]:
    """Return the visits with the signals that judging adds, as if all their days were past.

    `releases` has the days from which browsers count as old. `engines` tells whether browsers send all headers; without
    `engines`, no visit gets a signal about missing headers.
    """
    sends = engines.sends_headers if engines else lambda _agent: False
    told = []
    for day, mine in _grouped(visits, lambda visit: visit["day"]).items():
        is_old = [
            lambda agent, since=since, day=day: (since(agent) or date.max) <= day
            for since in (releases.outdated_since, releases.stale_since, releases.old_since, releases.late_since)
        ]
        bits_of = signals(mine, own_codes, *is_old[:3], sends, is_old[3], releases.updates_itself)
        told += [visit | {"signals": bits} for visit, bits in zip(mine, bits_of, strict=True)]
    return told


HEADERS: Final = {
    "no_fetch_metadata": ("fetch_sent", "fetch_absent", "https"),
    "no_language": ("language_sent", "language_absent"),
}
"""For each signal about headers: the fact that a header was sent, and the facts about a page without the header."""
ABOUT_HEADERS: Final = ("fetch_sent", "fetch_absent", "language_sent", "language_absent")


def _headerless(visits: Sequence[Visit], browsers: set[str], sent: str, *lacking: str) -> set[tuple[str, int]]:
    """Return the domains and visitors of page views without a header that their browser always sends.

    The visitor must not have sent the header at all that day, and three others on the domain must have sent it, or on
    any domain if the visitor's domain answers only with errors.
    """
    known = [visit for visit in visits if visit["visitor"] is not None]
    senders = {visit["visitor"] for visit in known if _has_bit(visit, sent)}
    on_domain = {(visit["domain"] or "", visit["visitor"]) for visit in known if _has_bit(visit, sent)
                 and visit["bot_category"] in PEOPLE and visit["user_agent"] in browsers}  # fmt: skip
    seen = Counter(domain for domain, _ in on_domain)
    logged = [visit for visit in known if any(_has_bit(visit, name) for name in ABOUT_HEADERS)]
    for domain, here in _grouped(logged, lambda visit: visit["domain"] or "").items():
        if all((visit["status"] or 0) >= 400 for visit in here):
            seen[domain] = len({visitor for _, visitor in on_domain})
    return {
        (visit["domain"] or "", visit["visitor"])
        for visit in known
        if visit["bot_category"] in PEOPLE and visit["user_agent"] in browsers and visit["visitor"] not in senders
        and seen[visit["domain"] or ""] >= 3 and not _has_bit(visit, "file")
        and all(_has_bit(visit, name) for name in lacking)
    }  # fmt: skip


def _has_bit(visit: Visit, name: str) -> bool:
    return bool((visit.get("signals") or 0) & BITS[name])


HOSTING: Final = ("hosting_bare", "hosting_single", "hosting_unserved", "hosting_fleet")


def _hosting(visits: Sequence[Visit]) -> dict[str, set[tuple[str, int]]]:
    """Return, by signal, the domains and visitors from hosting networks whose behaviour is unlike people's."""
    found: dict[str, set[tuple[str, int]]] = {name: set() for name in HOSTING}
    people = [visit for visit in visits if visit["bot_category"] in PEOPLE and visit["user_agent"] is not None]
    for domain, here in _grouped(people, lambda visit: visit["domain"] or "").items():
        by_agent = _grouped(here, lambda visit: visit["user_agent"])
        parts = {agent: sum(map(_is_part, mine)) for agent, mine in by_agent.items()}
        hosted = _grouped(
            [visit for visit in here if visit["visitor"] is not None and _has_bit(visit, "from_hosting")],
            lambda visit: visit["visitor"],
        )
        for visitor, mine in hosted.items():
            is_served = any(not _is_asset(visit["path"]) and _is_ok(visit["status"]) for visit in mine)
            if any(map(_is_part, mine)):
                continue
            if is_served and sum(count >= 2 for count in parts.values()) >= 3:
                found["hosting_bare"].add((domain, visitor))
            is_single = sum(not _is_asset(visit["path"]) for visit in mine) <= 2
            if is_served and is_single and all(visit["short_code"] is None for visit in mine):
                found["hosting_single"].add((domain, visitor))
            if not is_served and not any(map(_is_click, mine)):
                found["hosting_unserved"].add((domain, visitor))
        for agent, all_of_it in by_agent.items():
            fleet = {visitor: mine for visitor, mine in hosted.items() if mine[0]["user_agent"] == agent}
            requests = [visit for mine in fleet.values() for visit in mine]
            pages = [visit for visit in requests if not _is_asset(visit["path"])]
            is_bare = any(parts.values()) and not parts[agent] and not any(map(_is_click, all_of_it))
            if is_bare and len(fleet) >= 3 and len(pages) < 1.5 * len(fleet) and len(all_of_it) <= 2 * len(requests):
                found["hosting_fleet"] |= {(domain, visitor) for visitor in fleet}
    return found


def _late(
    visits: Sequence[Visit], late: Callable[[str], bool], updates_itself: Callable[[str], bool]
) -> dict[str, set[tuple[str, int]]]:
    """Return, by signal, the domains and visitors with late browsers whose behaviour is unlike people's."""
    found: dict[str, set[tuple[str, int]]] = {"superseded_bare": set(), "superseded_unserved": set()}
    people = [visit for visit in visits if visit["bot_category"] in PEOPLE and visit["user_agent"] is not None]
    served = {(visit["domain"] or "", visit["visitor"], visit["user_agent"]) for visit in people if _is_page(visit)}
    served_visitors, serving = {visitor for _, visitor, _ in served}, {domain for domain, _, _ in served}
    for domain, here in _grouped(people, lambda visit: visit["domain"] or "").items():
        asked = {(visit["user_agent"], _is_part(visit)) for visit in here if not _is_icon(visit)}
        is_loaded = any((agent, not is_part) in asked for agent, is_part in asked)
        for visitor, mine in _grouped(here, lambda visit: visit["visitor"]).items():
            agent = mine[0]["user_agent"]
            if visitor is None or not late(agent) or any(map(_is_click, mine)):
                continue
            has_parts = any(map(_is_part, mine))
            is_bare = not has_parts and any(map(_is_page, mine))
            if is_bare and updates_itself(agent) and is_loaded:
                found["superseded_bare"].add((domain, visitor))
            if has_parts and any(not _is_asset(visit["path"]) or visit["referrer"] for visit in mine):
                continue
            if visitor not in served_visitors and domain in serving and not any(map(_is_excused, mine)):
                found["superseded_unserved"].add((domain, visitor))
    return found


def _of_old_protocol(visits: Sequence[Visit], browsers: set[str]) -> dict[str, set[tuple[str, int]]]:
    """Return, by signal, the domains and visitors that load pages over HTTP/1 but no files, if three or more user
    agents on the domain, and 90 % of those that load both, do so over HTTP/2 or 3."""
    found = set()
    people = [visit for visit in visits if visit["bot_category"] in PEOPLE and visit["user_agent"] is not None]
    for domain, here in _grouped(people, lambda visit: visit["domain"] or "").items():
        loaded = [_kinds_loaded(mine) for mine in _grouped(here, lambda visit: visit["user_agent"]).values()]
        new = [_kinds_loaded([visit for visit in mine if visit.get("protocol") in {"HTTP/2", "HTTP/3"}])
               for mine in _grouped(here, lambda visit: visit["user_agent"]).values()]  # fmt: skip
        all_of_them, modern = loaded.count((True, True)), new.count((True, True))
        for visitor, mine in _grouped(here, lambda visit: visit["visitor"]).items():
            is_old = all(visit.get("protocol") in {"HTTP/1.0", "HTTP/1.1"} for visit in mine)
            pages = [visit for visit in mine if _is_page(visit) and visit["status"] != 304]
            is_bare = any(not _has_bit(page, "plain_http") for page in pages) and not any(
                _is_asset(visit["path"]) for visit in mine
            )
            is_known = visitor is not None and mine[0]["user_agent"] in browsers and not any(map(_is_click, mine))
            if is_known and is_old and is_bare and modern >= 3 and modern >= 0.9 * all_of_them:
                found.add((domain, visitor))
    return {"old_protocol_bare": found}


def _kinds_loaded(visits: Sequence[Visit]) -> tuple[bool, bool]:
    """Return whether any visit is to a page that was served, and whether any visit is to a part of a page."""
    return any(map(_is_page, visits)), any(map(_is_part, visits))


def _is_page(visit: Visit) -> bool:
    """Return whether a visit is to a page that was served."""
    return not _is_asset(visit["path"]) and _is_ok(visit["status"])


def _is_icon(visit: Visit) -> bool:
    return _is_asset(visit["path"]) and not _is_part(visit)


def _is_excused(visit: Visit) -> bool:
    """Return whether a visit requests a link that does not exist, or gets a server error."""
    status = visit["status"] or 0
    return status >= 500 or (visit["short_code"] is not None and status in {404, 410})


def _is_ok(status: int | None) -> bool:
    return status is not None and (200 <= status < 300 or status == 304)


def _is_click(visit: Visit) -> bool:
    status = visit["status"]
    return visit["short_code"] is not None and status is not None and 300 <= status < 400 and status != 304


def _is_part(visit: Visit) -> bool:
    """Return whether a visit is to a file that a page loads, other than the site's icons."""
    return _is_asset(visit["path"]) and not re.search("favicon|apple-touch-icon", visit["path"])


def _place_of(visit: Visit) -> tuple[str, str]:
    return visit["domain"] or "", visit["path"]


def _signals_of_visitor(mine: Sequence[Visit], visits: Sequence[Visit], own_codes: set[str]) -> set[str]:
    answers = {(_place_of(visit), visit["status"]) for visit in visits if visit["is_malicious"] and visit["status"]}
    answered = {place for place, status in answers if status < 400}
    there = {place for place, status in answers if 200 <= status < 300 or status == 304}
    followers: dict[tuple[str, str], set[int]] = {}
    for visit in visits:
        if visit["status"] in {404, 410} and visit["visitor"] is not None and not visit["is_malicious"]:
            followers.setdefault(_place_of(visit), set()).add(visit["visitor"])
    probes = {_place_of(visit) for visit in mine if visit["is_malicious"]}
    pages = {_place_of(visit) for visit in mine if not _is_asset(visit["path"])}
    lacking = [visit for visit in mine if visit["status"] in {404, 410} and _place_of(visit) in pages]
    missing = {_place_of(visit) for visit in lacking}
    unexcused = {
        _place_of(visit)
        for visit in lacking
        if visit["short_code"] not in own_codes and len(followers.get(_place_of(visit), ())) < 3
    }
    counted = len(pages - missing) + len(unexcused)
    times = [visit["visited_at"].replace(microsecond=0) for visit in mine]
    seconds = (max(times) - min(times)).total_seconds()
    broken = {_place_of(visit) for visit in mine if visit["status"] in {404, 410}}
    loaded = {_place_of(visit) for visit in mine} - pages - broken
    refused = {
        _place_of(visit)
        for visit in mine
        if visit["bot_category"] in PEOPLE
        and visit["method"] not in {None, "GET", "HEAD"}
        and visit["status"] in {405, 501}
    }
    is_refused = len(refused) >= 2 and all((visit["status"] or 0) >= 400 for visit in mine)
    is_operator = len(probes - answered) == 1 and seconds >= 600 and len(loaded) >= 20
    found = {
        "scanned": len(probes - there) >= 3,
        "probed": (probes - answered and not is_operator)
        or len(probes - there) >= 3
        or is_refused
        or any((visit.get("signals") or 0) & 1 for visit in mine),
        "errors": counted >= 5 and 5 * len(unexcused) >= 4 * counted,
        "breadth": len(pages) >= 30 and seconds <= 3 * len(pages),
        "sweep": len(pages) >= 200 and seconds <= len(pages) * (3 if len(pages) >= 800 else 1),
    }
    return {name for name, is_found in found.items() if is_found}


def _request(visit: Visit) -> tuple[Any, ...]:
    return visit["domain"] or "", visit["visitor"], visit["visited_at"], visit["path"]


def _is_ahead(visit: Visit) -> bool:
    """Return whether a browser prefetched a page."""
    return ((visit.get("signals") or 0) & (BITS["loaded_ahead"] | BITS["file"])) == BITS["loaded_ahead"]


def _unfollowed_pages(visits: Sequence[Visit]) -> set[tuple[Any, ...]]:
    """Return the requests that prefetched a page which, judging by later requests on the domain, the visitor did not
    open."""
    found = set()
    for of_one in _grouped(visits, lambda visit: _request(visit)[:2]).values():
        if of_one[0]["visitor"] is None:
            continue
        ahead = [visit for visit in of_one if _is_ahead(visit)]
        here = [visit for visit in of_one if not (visit.get("signals") or 0) & BITS["loaded_ahead"]]
        opened = [visit for visit in here if not _is_marked_file(visit)]
        files = [visit for visit in here if _is_marked_file(visit) and not _is_of_the_page_before(visit, opened)]
        found |= {_request(visit) for visit in ahead}
        found -= {_request(visit) for visit in ahead if _is_followed(visit, ahead, opened, files)}
    return found


def _is_of_the_page_before(file: Visit, opened: Sequence[Visit]) -> bool:
    ages = [file["visited_at"] - page["visited_at"] for page in opened]
    return any(timedelta(0) <= age <= timedelta(seconds=2) for age in ages)


def _is_followed(page: Visit, ahead: Sequence[Visit], opened: Sequence[Visit], files: Sequence[Visit]) -> bool:
    """Return whether a page shows signs of being opened within 30 minutes and before the next prefetched page."""
    at = page["visited_at"]
    if any(other["visited_at"] == at and other["path"] > page["path"] for other in ahead):
        return False
    newer = min((other["visited_at"] for other in ahead if other["visited_at"] > at), default=datetime.max)
    next_pages = [other for other in opened if other["visited_at"] > at]
    first = min((other["visited_at"] for other in next_pages), default=datetime.max)
    again = any(other["visited_at"] == first and other["path"] == page["path"] for other in next_pages)
    until = at + timedelta(minutes=30)
    return (first <= min(until, newer) and not again) or any(
        at <= file["visited_at"] <= until and file["visited_at"] < min(newer, first) for file in files
    )


def _sites_with_assets(people: Sequence[Visit]) -> dict[tuple[str, str], list[int]]:
    """Count pages and assets by domain and user agent, on domains where five or more user agents load assets.

    Together, these user agents must load at least as many assets as pages.
    """
    counts: dict[tuple[str, str], list[int]] = {}
    for visit in people:
        count = counts.setdefault((visit["domain"] or "", visit["user_agent"]), [0, 0])
        count[_is_asset(visit["path"])] += 1
    sites = set()
    for domain in {domain for domain, _ in counts}:
        loading = [(pages, assets) for (name, _), (pages, assets) in counts.items() if name == domain and assets]
        if len(loading) >= 5 and sum(assets for _, assets in loading) >= sum(pages for pages, _ in loading):
            sites.add(domain)
    return {key: count for key, count in counts.items() if key[0] in sites}


def _is_asset(path: str) -> bool:
    return re.search(ASSETS, path, re.IGNORECASE) is not None


# Words


WORDS: Final = (
    "country", "device_type", "browser", "operating_system", "referrer", "ai_source", "agent", "operator", "path",
    "status", "utm_source", "utm_campaign",
)  # fmt: skip
"""The filters that compare a word in answers; each has the name of its column."""


def word(visit: Visit, column: str) -> str:
    """Return a visit's value in a column as it appears in answers, such as unknown for None."""
    return str({None: "(direct)" if column == "referrer" else "unknown"}.get(visit[column], visit[column]))


def _passes(visit: Visit, scope: Any) -> bool:
    exact = {"short_code": scope.short_code, "domain": scope.domain}
    return (
        all(value is None or visit[column] == value for column, value in exact.items())
        and (not scope.no_domain or visit["domain"] is None)
        and visit["bot_category"] in GROUPS[scope.traffic_group]
        and all(getattr(scope, column) in (None, word(visit, column)) for column in WORDS)
    )


def local_time(visit: Visit) -> datetime:
    """Return the time of a visit in its organization's time zone."""
    return visit["visited_at"] + timedelta(minutes=visit.get("utc_offset") or 0)


def _week(day: date) -> date:
    return day - timedelta(day.weekday())


def _rate(part: int, whole: int) -> float | None:
    return ((200 * part + whole) // (2 * whole)) / 100 if whole else None


def _share(part: int, whole: int) -> float | None:
    return ((20_000 * part + whole) // (2 * whole)) / 100 if whole else None


def _change(now: int, before: int) -> float | None:
    size = _share(abs(now - before), before)
    return -size if size and now < before else size


def _of(visits: Iterable[Visit], *categories: str) -> list[Visit]:
    return [visit for visit in visits if visit["bot_category"] in categories]


def _named(column: str, missing: str = "unknown") -> Callable[[Visit], str]:
    return lambda visit: missing if visit[column] is None else visit[column]


# Measures that can be counted for any group of visits

FETCHING_AI: Final = AI - {"ai_referral"}
PURPOSES: Final = {
    "ai_assistant": "asked",
    ("ai_assistant", "ai_search_index"): "indexed",
    "ai_training": "trained",
    "ai_coding_agent": "coding",
}


def _purpose(visit: Visit) -> str | None:
    category = visit["bot_category"]
    return PURPOSES.get((category, visit["agent_kind"]), PURPOSES.get(category))


def _number(is_counted: Callable[[Visit], bool]) -> Measure:
    return lambda visits: sum(map(is_counted, visits))


def _in(*values: str, column: str = "bot_category") -> Measure:
    return _number(lambda visit: visit[column] in values)


def _for(purpose: str) -> Measure:
    return _number(lambda visit: _purpose(visit) == purpose)


def _status(hundreds: int) -> Measure:
    return _number(lambda visit: (visit["status"] or 0) // 100 == hundreds)


def _distinct(*columns: str, of: Iterable[str] = CATEGORIES) -> Measure:
    """Return a measure that counts combinations of values in visits of some categories; the first must be known."""
    return lambda visits: len(
        {tuple(visit[name] for name in columns) for visit in _of(visits, *of) if visit[columns[0]] is not None}
    )


def _first(visits: Sequence[Visit]) -> Any:
    return min(visit["visited_at"] for visit in visits)


def _last(visits: Sequence[Visit]) -> Any:
    return max(visit["visited_at"] for visit in visits)


def _ai_share(visits: Sequence[Visit]) -> float:
    return _share(_in(*AI)(visits), len(visits)) or 0.0


MEASURES: Final[dict[str, Measure]] = {
    **dict.fromkeys(("visits", "total_visits"), len),
    **dict.fromkeys(("human_clicks", "human_visits"), _in("human")),
    "ai_visits": _in(*AI),
    "other_visits": _in(*OTHER),
    "ai_assistant_requests": _in("ai_assistant"),
    "ai_training_requests": _in("ai_training"),
    "ai_coding_agent_requests": _in("ai_coding_agent"),
    **dict.fromkeys(("ai_referral_requests", "ai_referrals"), _in("ai_referral")),
    "agent_fetches": _in(*FETCHING_AI),
    **{purpose: _for(purpose) for purpose in PURPOSES.values()},
    "mobile_visits": _in("mobile", column="device_type"),
    "desktop_visits": _in("desktop", column="device_type"),
    "unique_visitors": _distinct("visitor", "day"),
    "people_visitors": _distinct("visitor", "day", of=PEOPLE),
    "unidentified_visits": _number(lambda visit: visit["visitor"] is None),
    "unidentified_people_visits": _number(lambda visit: visit["visitor"] is None and visit["bot_category"] in PEOPLE),
    "pages_accessed": lambda visits: len({visit["path"] for visit in visits if visit["path"]}),
    "short_codes": _distinct("short_code"),
    "active_days": _distinct("day"),
    "links_fetched": _distinct("short_code", "domain", of=FETCHING_AI),
    "links_referred": _distinct("short_code", "domain", of=["ai_referral"]),
    "errors_4xx": _status(4),
    "errors_5xx": _status(5),
    "markdown": lambda visits: sum(map(_is_markdown, visits)),
    "llms_txt": lambda visits: sum(map(_is_llms_txt, visits)),
    "bytes_sent": lambda visits: sum(visit["bytes_sent"] or 0 for visit in visits),
    "first_seen": _first,
    **dict.fromkeys(("last_seen", "last_visit"), _last),
    **dict.fromkeys(("ai_percentage", "ai_pct"), _ai_share),
    "score": lambda visits: SCORES.get(visits[0]["confidence"]),
    "conversion_rate": lambda visits: _share(_in("ai_referral")(visits), _in(*FETCHING_AI)(visits)),
    "fetches_per_referral": lambda visits: _rate(_in(*FETCHING_AI)(visits), _in("ai_referral")(visits)),
}

SPLIT: Final = (
    "ai_visits", "ai_assistant_requests", "ai_training_requests", "ai_coding_agent_requests", "ai_referral_requests",
    "other_visits",
)  # fmt: skip
BY_CLASS: Final = ("total_visits", "human_clicks", "ai_visits", "other_visits")
FIGURES: Final = (
    "total_visits", "human_clicks", "agent_fetches", "ai_referral_requests", "other_visits", "people_visitors",
    "unidentified_people_visits",
)  # fmt: skip
BY_PURPOSE: Final = (*PURPOSES.values(), "ai_referrals")
USUAL: Final = ("visits", "percentage", "human_clicks", "ai_visits", "unique_visitors")
OF_PEOPLE: Final = ("visits", "percentage", "human_clicks", "unique_visitors")


# Rows


def _measured(visits: Sequence[Visit], fields: Iterable[str]) -> Row:
    return {field: MEASURES[field](visits) for field in fields}


def _grouped(visits: Iterable[Visit], key: Callable[[Visit], Any]) -> dict[Any, list[Visit]]:
    groups: dict[Any, list[Visit]] = {}
    for visit in visits:
        groups.setdefault(key(visit), []).append(visit)
    return groups


def _ranked(
    visits: Sequence[Visit], keys: Mapping[str, Callable[[Visit], Any]], *fields: str, whole: int | None = None
) -> list[Row]:
    """Return a row for each combination of keys, most visits first, then by keys; percentages are of `whole`."""
    whole = len(visits) if whole is None else whole
    groups = _grouped(visits, lambda visit: tuple(key(visit) for key in keys.values()))
    rows = []
    for values, group in groups.items():
        row = dict(zip(keys, values, strict=True))
        for field in fields:
            row[field] = _share(len(group), whole) if field == "percentage" else MEASURES[field](group)
        rows.append(row)
    return sorted(rows, key=lambda row: (-row["visits"], *(row[key] for key in keys)))


def _by(*columns: str) -> dict[str, Callable[[Visit], Any]]:
    return {column: _named(column) for column in columns}


def _of_type(question: Question) -> list[Visit]:
    kind = question.scope.traffic_type
    return _of(question.visits, *({"ai": AI, "other": OTHER, None: CATEGORIES}.get(kind) or {kind}))


def _ranking(
    keys: Mapping[str, Callable[[Visit], Any]],
    *fields: str,
    of: Iterable[str] = CATEGORIES,
    where: Callable[[Visit], Any] = lambda _: True,
    most: int | None = None,
) -> Answer:
    """Return an answer that ranks the visits of some categories and of the traffic type in scope."""
    return lambda question: _ranked([*filter(where, _of(_of_type(question), *of))], keys, *fields)[:most]


def _series(name: str, step_of: Callable[[date], date], fields: Iterable[str]) -> Answer:
    """Return an answer with a row for each step of time that has a day in range."""

    def rows(question: Question) -> list[Row]:
        groups = _grouped(question.visits, lambda visit: step_of(visit["day"]))
        return [
            {name: step} | _measured(groups.get(step, []), fields) for step in sorted({*map(step_of, question.days)})
        ]

    return rows


def _totals(*fields: str, of: Iterable[str] = CATEGORIES) -> Answer:
    return lambda question: _measured(_of(question.visits, *of), fields)


# Limits: a maximum number of untrusted words is kept per day, and then per answer


def _cut(question: Question, columns: Sequence[str], counted: Callable[[Visit], bool]) -> list[Visit]:
    """Return the counted visits in scope, with rare words in these columns replaced by (other).

    For each day, the words with the most visits are kept, whatever the filters are; other visits get (other) in all of
    these columns. Visits without any word are unchanged. All words are kept if the scope filters by one of the columns.
    """

    def words_of(visit: Visit) -> tuple[str | None, ...]:
        return tuple(visit[column] for column in columns)

    if any(getattr(question.scope, column, None) is not None for column in columns):
        return [visit for visit in question.visits if counted(visit)]

    kept: dict[date, set[tuple[str | None, ...]]] = {}
    for day, visits in _grouped(filter(counted, question.seen), lambda visit: visit["day"]).items():
        words = Counter(words_of(visit) for visit in visits if any(text is not None for text in words_of(visit)))
        by_weight = sorted(words, key=lambda one: (-words[one], [(text is None, text or "") for text in one]))
        kept[day] = {*by_weight[:MAX_VALUES_PER_DAY], (None,) * len(columns)}
    return [
        visit if words_of(visit) in kept[visit["day"]] else {**visit, **dict.fromkeys(columns, OTHER_WORDS)}
        for visit in question.visits
        if counted(visit)
    ]


def _bounded(rows: list[Row], texts: Sequence[str], words: int = 1, others: int = 1) -> list[Row]:
    """Return at most MAX_ROWS ranked rows; the others are summed up in one row, or in one row for each bot_category.

    In such a row, all columns in `texts` are (other). A row whose first `words` texts are (other) is always summed up.
    """
    cut = [row for row in rows if all(row[text] == OTHER_WORDS for text in texts[:words])]
    named = [row for row in rows if row not in cut] if cut else rows
    room = MAX_ROWS - others if cut or len(rows) > MAX_ROWS else MAX_ROWS
    groups = _grouped([*named[room:], *cut], lambda row: row.get("bot_category"))
    whole = sum(row["visits"] for row in rows)
    rest = [_summed_up(group, whole) | dict.fromkeys(texts, OTHER_WORDS) for group in groups.values()]
    return named[:room] + sorted(rest, key=lambda row: (-row["visits"], row.get("bot_category")))


def _summed_up(rows: Sequence[Row], whole: int) -> Row:
    row = dict(rows[0])
    for field, value in row.items():
        if field in ("first_seen", "last_seen"):
            row[field] = (min if field == "first_seen" else max)(one[field] for one in rows)
        elif isinstance(value, int):
            row[field] = sum(one[field] for one in rows)
    return row | {"percentage": _share(row["visits"], whole)}


def _counted_apart(
    rows: list[Row], visits: list[Visit], keys: Mapping[str, Callable[[Visit], Any]], field: str
) -> None:
    """Set a field from uncut visits: a row counts visits with its words, (other) counts visits with words that have no
    row."""
    groups = _grouped(visits, lambda visit: tuple(key(visit) for key in keys.values()))
    amounts = {words: MEASURES[field](group) for words, group in groups.items()}
    first, category = next(iter(keys)), list(keys).index("bot_category") if "bot_category" in keys else None
    for row in rows:
        if row[first] != OTHER_WORDS:
            row[field] = amounts.pop(tuple(row[key] for key in keys))
    for row in rows:
        if row[first] == OTHER_WORDS:
            alike = (words for words in amounts if category is None or words[category] == row["bot_category"])
            row[field] = sum(amounts[words] for words in alike)


def _with(row: Row, after: str, field: str, value: Any) -> Row:
    """Return the row with a new field after the field named `after`."""
    behind = list(row).index(after) + 1
    items = list(row.items())
    return dict([*items[:behind], (field, value), *items[behind:]])


# Answers


def _dashboard(question: Question) -> Row:
    return {member: ENTRIES[name](question) for member, name in DASHBOARD.items()}


def _weekly_trend(question: Question) -> Row:
    weeks = _grouped(question.visits, lambda visit: _week(visit["day"]))
    return {
        "weekly": _series("week", _week, ("total_visits", "human_visits", *SPLIT, "ai_pct"))(question),
        "byPlatform": [
            {"week": week} | row
            for week in sorted(weeks)
            for row in _ranked(_of(weeks[week], *AI), _by("ai_source"), "visits")
        ],
    }


def _visits_by_hour(question: Question) -> list[Row]:
    hours = _grouped(question.visits, lambda visit: (visit["day"], local_time(visit).hour))
    return [
        {"date": day, "hour": hour} | _measured(hours.get((day, hour), []), BY_CLASS)
        for day in question.days
        for hour in range(24)
    ]


def _visits_by_minute(question: Question) -> list[Row]:
    minutes = _grouped(question.visits, lambda visit: visit["visited_at"].replace(second=0, microsecond=0))
    return [
        {"first_seen": min(visit["visited_at"] for visit in minutes[minute])} | _measured(minutes[minute], BY_CLASS)
        for minute in sorted(minutes, reverse=True)[:60]
    ]


def _dev_tools_adoption(question: Question) -> list[Row]:
    visits = _of(question.visits, "ai_coding_agent")
    keys = {"week": lambda visit: _week(visit["day"]), "tool": _named("ai_source")}
    rows = _ranked(visits, keys, "visits", "unique_visitors", "active_days")
    counts = {(row["week"], row["tool"]): row["visits"] for row in rows}
    for row in rows:
        before = counts.get((row["week"] - timedelta(7), row["tool"]), 0)
        row["is_new"] = row["week"] == min(week for week, tool in counts if tool == row["tool"])
        row["change_percentage"] = _change(row["visits"], before)
    return sorted(rows, key=lambda row: (row["week"], -row["visits"], row["tool"]))


def _without_strays(question: Question, visits: Iterable[Visit]) -> list[Visit]:
    """Return the visits, without short codes that are not links.

    Such a short code is not in the links file, and no visit on these days, counted or not, got a status below 400 for
    it on that domain. A visit without a status may have been answered.
    """
    answered = {(visit["short_code"], visit["domain"]) for visit in question.stored if _may_be_answered(visit)}
    return [
        visit
        if (visit["short_code"], visit["domain"]) in answered or _targets(question.links, visit)
        else {**visit, "short_code": None}
        for visit in visits
    ]


def _to_links(question: Question) -> list[Visit]:
    return [visit for visit in _without_strays(question, question.visits) if visit["short_code"] is not None]


def _with_targets(question: Question, rows: Iterable[Row]) -> list[Row]:
    targets = {(link["short_code"], link["domain"]): link["target_url"] for link in question.links}
    return [
        _with(row, "domain", "target_url", targets.get(place, targets.get((place[0], ""), "unknown")))
        for row in rows
        for place in [(row["short_code"], row["domain"])]
    ]


def _top_links(question: Question) -> list[Row]:
    fields = ("visits", "percentage", "human_clicks", "ai_visits", "other_visits", "unique_visitors", "last_visit")
    rows = _ranked(_to_links(question), _by("short_code", "domain"), *fields, whole=len(question.visits))
    return _with_targets(question, rows[:100])


def _source_links(question: Question) -> list[Row]:
    visits = [visit for visit in _of(question.visits, *AI) if visit["short_code"] is not None]
    fields = ("visits", "percentage", "agent_fetches", "ai_referrals", "errors_4xx", "errors_5xx", "last_visit")
    sources = sorted(_grouped(visits, _named("ai_source")).items())
    rows = (_ranked(group, _by("ai_source", "short_code", "domain"), *fields)[:20] for _, group in sources)
    return _with_targets(question, chain.from_iterable(rows))


def _ai_to_human_conversion(question: Question) -> list[Row]:
    sources = _grouped(_of(_without_strays(question, question.visits), *AI), _named("ai_source"))
    fields = (
        "agent_fetches", "ai_referrals", "conversion_rate", "fetches_per_referral", "links_fetched", "links_referred",
        *PURPOSES.values(),
    )  # fmt: skip
    rows = [{"ai_source": source} | _measured(visits, fields) for source, visits in sources.items()]
    return sorted(rows, key=lambda row: (-row["agent_fetches"], row["ai_source"]))


def _traffic_value_breakdown(question: Question) -> list[Row]:
    worth = {category: (amount, currency) for category, amount, currency in question.values}
    rows = _ranked(question.visits, {"traffic_type": _named("bot_category")}, "visits", "percentage")
    total = sum(row["visits"] * worth[row["traffic_type"]][0] for row in rows)
    for row in rows:
        amount, currency = worth[row["traffic_type"]]
        row["value_per_visit"] = amount / 10_000
        row["estimated_value"] = _rate(row["visits"] * amount, 10_000)
        row["value_percentage"] = _share(row["visits"] * amount, total)
        row["currency"] = currency
    return rows


def _disguised(question: Question) -> list[Row]:
    disguised = (visit for visit in question.visits if visit["agent_kind"] in ("disguised", "prefetch"))
    found = [visit["signals"] & LISTED for visit in disguised]
    rows = [{"signal": "total", "visits": len(found), "alone": len(found)}]
    for name, bit in BITS.items():
        having = [signals for signals in found if signals & bit]
        rows.append({"signal": name, "visits": len(having), "alone": having.count(bit)})
    rows = [row for row in rows if row["visits"]]
    return sorted(rows, key=lambda row: (row["visits"], row["alone"], row["signal"]), reverse=True)


def _reason_left_out(question: Question, visit: Visit) -> str | None:
    bits = visit.get("signals") or 0
    if bits & (BITS["own_address"] | BITS["own_rule"]):
        return "own"
    if question.files_aside and _is_marked_file(visit):
        return "file"
    if visit["agent_kind"] == "disguised":
        return "disguised"
    if visit["agent_kind"] == "prefetch":
        return "loaded_ahead"
    if visit["bot_category"] in PEOPLE:
        return None
    return "probe" if visit["is_malicious"] else "no_agent" if visit["user_agent"] is None else None


def _is_marked_file(visit: Visit) -> bool:
    return bool((visit.get("signals") or 0) & BITS["file"])


def _left_out(question: Question) -> list[Row]:
    columns = {"own": "own", "disguised": "disguised", "loaded_ahead": "loaded_ahead", "probes": "probe"}
    columns["no_agent"] = "no_agent"
    days = _grouped((visit for visit in question.stored if _passes(visit, question.scope)), itemgetter("day"))
    rows = []
    for day in question.days:
        mine = days.get(day, [])
        reasons = Counter(_reason_left_out(question, visit) for visit in mine)
        counts = {name: reasons[reason] for name, reason in columns.items()}
        rows.append({"date": day, "stored": len(mine), "files": sum(map(_is_marked_file, mine)), **counts})
    return rows


def _left_out_requests(question: Question) -> list[Row]:
    rows = []
    for visit in question.stored:
        if (reason := _reason_left_out(question, visit)) and _passes(visit, question.scope):
            row = {"reason": reason, "visited_at": visit["visited_at"]}
            rows.append(row | {name: word(visit, name) for name in ("user_agent", "domain", "path", "status")})
    rows.sort(key=itemgetter("user_agent", "domain", "path", "status", "reason"))
    rows.sort(key=itemgetter("visited_at"), reverse=True)
    parts = _grouped(rows, lambda row: row["reason"] in ("own", "file")).values()
    return [row for row in rows if any(row is one for part in parts for one in part[:20])]


def _invented_links(question: Question) -> list[Row]:
    answered = {(visit["domain"], visit["path"]) for visit in question.stored if _may_be_answered(visit)}
    links = {(link["short_code"], link["domain"]) for link in question.links}
    missed = [
        visit
        for visit in _only(question.visits, "missed")
        if visit["path"] not in (None, "", "/")
        and not EVERY_HOST.fullmatch(visit["path"])
        and (visit["domain"], visit["path"]) not in answered
        and links.isdisjoint({(visit["short_code"], ""), (visit["short_code"], visit["domain"] or "")})
    ]
    rows = []
    for (path, domain), group in _grouped(missed, lambda visit: (visit["path"], _named("domain")(visit))).items():
        if _sent(group) or any(_purpose(visit) in ("asked", "coding") for visit in group):
            ((source, _),) = _top(map(_named("ai_source"), group), 1)
            row = {"path": path, "domain": domain, "short_code": _greatest(group, "short_code"), "ai_source": source}
            row |= {"ai_referrals": _sent(group), "agent_fetches": len(group) - _sent(group)}
            rows.append(row | {"visitors": _visitors(group), "first_seen": _first(group), "last_seen": _last(group)})
    return sorted(rows, key=lambda row: (-row["ai_referrals"], -row["agent_fetches"], row["path"], row["domain"]))[:100]


def _tags_in(link: Mapping[str, Any]) -> Row:
    return {"tags": [*(link.get("tags") or ())]}


def _all_links(question: Question) -> list[Row]:
    scope, links = question.scope, {(link["short_code"], link["domain"]): link for link in question.links}
    about = ("target_url", "created_at")
    fields = ("visits", *BY_CLASS[1:], "unique_visitors", "people_visitors", "last_visit")
    rows, visited = [], set()
    groups = _grouped(_to_links(question), lambda visit: (visit["short_code"], visit["domain"]))
    for (code, domain), group in groups.items():
        key = (code, domain) if (code, domain) in links else (code, "")
        visited.add(key)
        link = links.get(key, {"target_url": "unknown", "created_at": None})
        place = {"short_code": code, "domain": "unknown" if domain is None else domain}
        rows.append(place | {name: link[name] for name in about} | _tags_in(link) | _measured(group, fields))
    for (code, domain), link in links.items():
        is_in_scope = scope.short_code in (None, code) and scope.domain in (None, domain or scope.domain)
        is_in_scope = is_in_scope and question.tag in (None, *(link.get("tags") or ()))
        if is_in_scope and (code, domain) not in visited:
            place = {"short_code": code, "domain": domain or "(any)"} | {name: link[name] for name in about}
            rows.append(place | _tags_in(link) | dict.fromkeys(fields, 0) | {"last_visit": None})
    text, names = (scope.search or "").lower(), ("short_code", "domain", "target_url")
    rows = [row for row in rows if text in " ".join([*(row[name] for name in names), *row["tags"]]).lower()]
    rows = [row for row in rows if not (scope.unvisited and row["visits"])]
    key = scope.sorted_by or "visits"
    ordered = sorted(rows, key=lambda row: (row["short_code"], row["domain"]))
    with_key = [row for row in ordered if row[key] is not None]
    with_key.sort(key=lambda row: row[key], reverse=not scope.ascending)
    ordered = with_key + [row for row in ordered if row[key] is None]
    return [row | {"links_found": len(rows)} for row in ordered[scope.skipped or 0 :][: scope.shown or 100]]


def _device_by_ai_source(question: Question) -> list[Row]:
    visits = _of(question.visits, *AI)
    sources = _grouped(visits, _named("ai_source"))
    rows = _ranked(visits, _by("ai_source", "device_type"), "visits")
    return [row | {"percentage": _share(row["visits"], len(sources[row["ai_source"]]))} for row in rows]


def _geographic(question: Question) -> list[Row]:
    rows = _ranked(question.visits, _by("country"), *USUAL)
    return [_with(row, "country", "country_name", question.countries.get(row["country"], "unknown")) for row in rows]


def _activity(visits: Sequence[Visit], question: Question) -> Row:
    percentage = _share(len(visits), len(question.visits))
    return {"visits": len(visits), "percentage": percentage} | _measured(visits, BY_CLASS[1:])


def _hourly_activity(question: Question) -> list[Row]:
    hours = _grouped(question.visits, lambda visit: local_time(visit).hour)
    return [{"hour": hour} | _activity(hours.get(hour, []), question) for hour in range(24)]


def _daily_activity(question: Question) -> list[Row]:
    weekdays = _grouped(question.visits, lambda visit: visit["day"].isoweekday())
    occurrences = Counter(day.isoweekday() for day in question.days)
    rows = []
    for weekday, name in enumerate(DAY_NAMES, 1):
        visits, days = weekdays.get(weekday, []), occurrences[weekday]
        averages = {"days_in_range": days, "avg_visits": _rate(len(visits), days)}
        rows.append({"day_of_week": weekday, "day_name": name} | _activity(visits, question) | averages)
    return rows


def _peak_times(question: Question) -> list[Row]:
    keys = {"day_of_week": lambda visit: visit["day"].isoweekday(), "hour": lambda visit: local_time(visit).hour}
    occurrences = Counter(day.isoweekday() for day in question.days)
    cells = _ranked(question.visits, keys, "visits", "percentage", "human_clicks", "ai_visits")
    cells.sort(key=lambda row: -Fraction(row["visits"], occurrences[row["day_of_week"]]))  # equal rows stay in order
    rows = []
    for row in cells[:10]:
        days = occurrences[row["day_of_week"]]
        named = _with(row, "day_of_week", "day_name", DAY_NAMES[row["day_of_week"] - 1])
        rows.append({"rank": len(rows) + 1} | _with(named, "percentage", "avg_visits", _rate(row["visits"], days)))
    return rows


def _weekend_vs_weekday(question: Question) -> list[Row]:
    rows = []
    for period, weekdays in (("weekday", range(5)), ("weekend", range(5, 7))):
        visits = [visit for visit in question.visits if visit["day"].weekday() in weekdays]
        days = sum(day.weekday() in weekdays for day in question.days)
        row = {"period": period, "days": days} | _activity(visits, question)
        rows.append(_with(row, "percentage", "avg_visits", _rate(len(visits), days)))
    return rows


def _utm_campaigns(question: Question) -> list[Row]:
    columns = ("utm_source", "utm_medium", "utm_campaign")
    visits = _cut(question, columns, lambda visit: any(visit[word] is not None for word in UTM_WORDS))
    return _bounded(_ranked(visits, _by(*columns), *USUAL), columns, words=3)


def _referrers(question: Question) -> list[Row]:
    keys = {"referrer": _named("referrer", "(direct)"), "referrer_type": _named("referrer_type", "direct")}
    visits = _cut(question, ["referrer"], lambda visit: visit["bot_category"] in PEOPLE)
    rows = _bounded(_ranked(visits, keys, "visits", "percentage", "human_clicks", "ai_referrals"), list(keys))
    return [row | {"source": _source(row["referrer"], row["referrer_type"])} for row in rows]


def _by_weight(groups: Mapping[Any, Sequence[Visit]], name: Any) -> Any:
    return -len(groups[name]), name


def _visits_by_name(question: Question) -> list[Row]:
    agents = [one for one in _cut(question, ["agent"], lambda one: one["bot_category"] != "human") if one["operator"]]
    hosts = [
        one
        for one in _cut(question, ["referrer"], lambda one: one["bot_category"] in PEOPLE)
        if one["referrer_type"] != "internal"
    ]
    groups = {"agent": _grouped(agents, itemgetter("agent")), "referrer": _grouped(hosts, itemgetter("referrer"))}
    return [
        {"subject": subject, "name": name, "date": day, "visits": len(visits)}
        for subject, named in groups.items()
        for name in _leading(question, named)
        for day, visits in sorted(_grouped(named[name], itemgetter("day")).items())
    ]


def _visits_by_link(question: Question) -> list[Row]:
    groups = _grouped(_of(_to_links(question), *PEOPLE), lambda one: (one["short_code"], _named("domain")(one)))
    return [
        {"short_code": name[0], "domain": name[1], "date": day, "visits": len(visits)}
        for name in _most(groups)
        for day, visits in sorted(_grouped(groups[name], itemgetter("day")).items())
    ]


def _leading(question: Question, groups: Mapping[Any, Sequence[Visit]]) -> list[Any]:
    """Return the 20 names with the most visits, and as many without visits in the first half of the days, sorted by
    name.
    """
    named = {name: visits for name, visits in groups.items() if name not in {None, OTHER_WORDS}}
    ranked, early = sorted(named, key=partial(_by_weight, named)), set(question.days[: (len(question.days) + 1) // 2])
    old = [name for name in ranked if any(visit["day"] in early for visit in named[name])]
    new = [name for name in ranked if name not in old]
    return sorted([*old[:20], *new[:20]])


def _most(groups: Mapping[Any, Sequence[Visit]]) -> list[Any]:
    """Return the 50 names with the most visits, sorted by name."""
    return sorted(sorted(groups, key=partial(_by_weight, groups))[:50])


def _source(referrer: str, referrer_type: str) -> str:
    """Return the source of the first listed host of this type that is the referrer or a parent domain of it, otherwise
    the referrer."""
    for listed_type, host, source in _SOURCES:
        name = re.escape(host).replace(r"\.\*", r"\.(com|[a-z]{2}|com?\.[a-z]{2})")
        if listed_type == referrer_type and re.fullmatch(rf"([^:/]+\.)?{name}", referrer):
            return source
    return referrer


def _domain_breakdown(question: Question) -> list[Row]:
    visits = _cut(question, ["domain"], lambda visit: True)
    fields = ("visits", "percentage", "human_clicks", "ai_visits", "other_visits", "short_codes", "unique_visitors")
    rows = _bounded(_ranked(visits, _by("domain"), *fields), ["domain"])
    _counted_apart(rows, _without_strays(question, question.visits), _by("domain"), "short_codes")
    return rows


def _bot_traffic(question: Question) -> list[Row]:
    asked = {"ai": AI, "other": OTHER, None: (AI | OTHER) - {"ai_referral"}}
    wanted = asked.get(question.scope.traffic_type, {question.scope.traffic_type}) - {"human"}
    keys = _by("agent", "operator", "agent_kind", "bot_category", "confidence")
    visits = _cut(question, ["agent"], lambda visit: visit["bot_category"] != "human")
    rows = _ranked(
        _of(visits, *wanted), keys,
        "visits", "percentage", "pages_accessed", "unique_visitors", "errors_4xx", "errors_5xx",
        "first_seen", "last_seen", "bytes_sent",
    )  # fmt: skip
    rows = _bounded(rows, ["agent", "operator", "agent_kind", "confidence"], others=6)
    _counted_apart(rows, _of(question.visits, *wanted), keys, "pages_accessed")
    return rows


_OPERATORS: Final = dict(re.findall(r"\('([^']+)', '([^']+)'\)", sql_text("names/operators")))
"""The operator of an agent or an AI product, from the table used for answers."""


def _operator_of_agent(visit: Visit) -> str:
    found = (visit["operator"], _OPERATORS.get(visit["agent"]), "unknown")
    return next(name for name in found if name is not None)


def _operator_of_source(visit: Visit) -> str:
    return _OPERATORS.get(visit["ai_source"]) or _named("ai_source")(visit)


def _operators(question: Question) -> list[Row]:
    known = {(visit["short_code"], visit["domain"]) for visit in _to_links(question)}
    with_purpose = [*filter(_purpose, question.visits)]
    contradicted = [
        visit
        for visit in question.visits
        if visit["confidence"] == "contradicted"
        and visit["bot_category"] != "human"
        and (_purpose(visit) or visit["agent"] in _OPERATORS)
    ]
    fetches, claims = (_grouped(visits, _operator_of_agent) for visits in (with_purpose, contradicted))
    sent = _grouped(_of(question.visits, "ai_referral"), _operator_of_source)
    reached = _grouped(
        (visit for visit in with_purpose if (visit["short_code"], visit["domain"]) in known), _operator_of_source
    )
    rows = []
    for operator in {*fetches, *claims, *sent}:
        mine, people = fetches.get(operator, []), len(sent.get(operator, []))
        claimed = claims.get(operator, [])
        rows.append(
            {"operator": operator}
            | _measured(mine, ("agent_fetches", *PURPOSES.values(), "bytes_sent", "errors_4xx", "errors_5xx"))
            | {
                "verified": _verified(mine),
                "signed": sum(_has_bit(one, "signed") and one["confidence"] != "verified" for one in mine),
                "ai_referrals": people,
                "contradicted": len(claimed),
                "fetches_per_referral": _rate(len(mine), people),
                "visits_per_answer": _rate(people, sum(_purpose(one) == "asked" for one in mine)),
                "links_reached": len({(one["short_code"], one["domain"]) for one in reached.get(operator, [])}),
                "last_seen": _last([*mine, *claimed]) if mine or claimed else None,
            }
        )
    return sorted(rows, key=lambda row: (-row["agent_fetches"], row["operator"]))


def _link_agents(question: Question) -> list[Row]:
    fetched = _grouped(
        (visit for visit in question.visits if _purpose(visit) and visit["short_code"] is not None),
        lambda visit: (visit["agent"], visit["operator"]),
    )
    rows = []
    for agent, operator in {(visit["agent"], visit["operator"]) for visit in question.seen if _purpose(visit)}:
        visits = fetched.get((agent, operator), [])
        if agent is not None and operator is not None:
            first = _first(visits) if visits else None
            row = {"agent": agent, "operator": operator, "agent_fetches": len(visits)}
            rows.append(row | {"first_seen": first})
    return sorted(rows, key=lambda row: (-row["agent_fetches"], row["agent"], row["operator"]))


def _link_operators(question: Question) -> list[Row]:
    rows = []
    visits = [visit for visit in _of(question.visits, *AI) if visit["short_code"] is not None]
    for operator, mine in _grouped(visits, _operator_of_source).items():
        people = [visit["visited_at"] for visit in _of(mine, "ai_referral")]
        fetches = [visit["visited_at"] for visit in mine if _purpose(visit)]
        row = {"operator": operator, "agent_fetches": len(fetches), "ai_referrals": len(people)}
        row["fetches_before"] = sum(moment < min(people) for moment in fetches) if people else None
        rows.append(row | {"fetches_by_chance": _rate(len(fetches), 1 + len(people)) if people else None})
    return sorted(rows, key=lambda row: (-row["agent_fetches"], row["operator"]))


def _ai_agents(question: Question) -> list[Row]:
    sent = {row["operator"]: row["ai_referrals"] for row in _operators(question)}
    keys = {"operator": _named("operator"), "purpose": _purpose, "agent": _named("agent")}
    rows = _ranked([*filter(_purpose, question.visits)], keys, "visits", "agent_fetches", "bytes_sent")
    for row in rows:
        del row["visits"]
        row["ai_referrals"] = sent.get(row["operator"], 0)
    return rows


def _is_markdown(visit: Visit) -> bool:
    return (visit["path"] or "").lower().endswith(".md")


def _is_llms_txt(visit: Visit) -> bool:
    return (visit["path"] or "").lower().endswith(("/llms.txt", "/llms-full.txt"))


def _ai_texts(question: Question) -> list[Row]:
    visits = [one for one in question.visits if _purpose(one) and (_is_markdown(one) or _is_llms_txt(one))]
    keys = {"agent": _named("agent"), "operator": _named("operator")}
    rows = _ranked(visits, keys, "visits", "markdown", "llms_txt", "errors_4xx", "last_seen")
    return [{name: value for name, value in row.items() if name != "visits"} for row in rows]


def _filter_values(question: Question) -> list[Row]:
    codes = [visit for visit in _without_strays(question, question.seen) if visit["short_code"] is not None]
    visits = {
        "domain": Counter(visit["domain"] for visit in question.seen),
        "short_code": Counter(visit["short_code"] for visit in codes),
        "target_url": Counter(url for visit in codes for url in _targets(question.links, visit)),
        "traffic_type": Counter(visit["bot_category"] for visit in question.seen),
        "ai_source": Counter(visit["ai_source"] for visit in question.seen),
    }
    rows = [_values(name, counted) for name, counted in visits.items()]
    return [*rows, {"filter": "range", "values": ["7d", "30d", "90d"], "truncated": False}]


def _tags_of(links: Iterable[Mapping[str, Any]], visit: Visit) -> list[str]:
    """Return the tags of a visit's link: the link on the visit's domain, or else the link for any domain."""
    found = {link["domain"]: link for link in links if link["short_code"] == visit["short_code"]}
    link = found.get(visit["domain"] or "", found.get("", {}))
    return link.get("tags") or []


def _tags(question: Question) -> list[Row]:
    visits = [{**visit, "tag": tag} for visit in question.visits for tag in _tags_of(question.links, visit)]
    fields = ("visits", *BY_CLASS[1:], "unique_visitors", "people_visitors", "last_visit")
    return _ranked(visits, _by("tag"), *fields)[:1_000]


def _targets(links: Iterable[Mapping[str, Any]], visit: Visit) -> set[str]:
    """Return the targets of a visit's short code: for the visit's domain, and for any domain."""
    places = {(visit["short_code"], visit["domain"]), (visit["short_code"], "")}
    return {link["target_url"] for link in links if (link["short_code"], link["domain"]) in places}


def _values(name: str, visits: Counter[str | None]) -> Row:
    del visits[None]
    heaviest = sorted(visits, key=lambda value: (-visits[value], value))[:1000]
    return {"filter": name, "values": sorted(heaviest), "truncated": len(visits) > 1000}


ENTRIES: Final[dict[str, Answer]] = {
    "dashboard": _dashboard,
    "traffic-overview": _totals("total_visits", "human_clicks", *SPLIT, "ai_percentage"),
    "people": _totals("visits", "human_clicks", "unique_visitors", "unidentified_visits", of=PEOPLE),
    "weekly-trend": _weekly_trend,
    "time-series": _series(
        "date", lambda day: day, ("total_visits", "human_clicks", "ai_visits", "mobile_visits", "desktop_visits")
    ),
    "figures-by-day": _series("date", lambda day: day, FIGURES),
    "visits-by-month": _series("month", lambda day: day.replace(day=1), BY_CLASS),
    "ai-by-day": _series("date", lambda day: day, BY_PURPOSE),
    "ai-by-week": _series("week", _week, BY_PURPOSE),
    "devices": _ranking(_by("device_type"), *USUAL),
    "protocols": _ranking(_by("protocol"), *USUAL),
    "operating-systems": _ranking(_by("operating_system"), *OF_PEOPLE, of=PEOPLE),
    "browsers": _ranking(_by("browser"), *OF_PEOPLE, of=PEOPLE),
    "ai-sources": _ranking(_by("ai_source"), "visits", "percentage", "agent_fetches", "ai_referrals", of=AI),
    "ai-platform-market-share": _ranking(
        _by("ai_source"), "visits", "percentage", "pages_accessed", "unique_visitors", "asked",
        of=["ai_assistant"], where=lambda visit: not visit["is_malicious"],
    ),
    "developer-tools": _ranking(
        {"tool": _named("ai_source"), "operator": _named("operator")},
        "visits", "percentage", "pages_accessed", "unique_visitors", "first_seen", "last_seen", of=["ai_coding_agent"],
    ),
    "ai-confidence": _ranking(_by("confidence", "detection_method"), "score", "visits", "percentage", of=AI),
    "statuses": _ranking(
        {"status": lambda visit: word(visit, "status")}, "visits", "percentage", *BY_CLASS[1:],
    ),
    "paths": _ranking(
        _by("path"), "visits", "percentage", *BY_CLASS[1:], "agent_fetches", "ai_referrals", "errors_4xx", "errors_5xx",
        "last_visit",
        where=lambda visit: visit["path"], most=100,
    ),
    "dev-tools-adoption": _dev_tools_adoption,
    "top-links": _top_links,
    "ai-to-human-conversion": _ai_to_human_conversion,
    "traffic-value-breakdown": _traffic_value_breakdown,
    "device-by-ai-source": _device_by_ai_source,
    "geographic": _geographic,
    "hourly-activity": _hourly_activity,
    "daily-activity": _daily_activity,
    "peak-times": _peak_times,
    "weekend-vs-weekday": _weekend_vs_weekday,
    "utm-campaigns": _utm_campaigns,
    "referrers": _referrers,
    "domain-breakdown": _domain_breakdown,
    "bot-traffic": _bot_traffic,
    "filter-values": _filter_values,
    "disguised": _disguised,
    "left-out": _left_out,
    "left-out-requests": _left_out_requests,
    "visits-by-hour": _visits_by_hour,
    "visits-by-minute": _visits_by_minute,
    "visits-by-name": _visits_by_name,
    "visits-by-link": _visits_by_link,
    "source-links": _source_links,
    "operators": _operators,
    "all-links": _all_links,
    "tags": _tags,
    "ai-agents": _ai_agents,
    "ai-texts": _ai_texts,
    "link-agents": _link_agents,
    "link-operators": _link_operators,
    "invented-links": _invented_links,
}  # fmt: skip


# Jobs: what detectors find in the 28 days before a day, and what is measured for a subject

REFUSED: Final = {401, 402, 403, 405, 406, 429, 451}
EVERY_HOST: Final = re.compile(
    r"/(robots|llms|ads|app-ads|security|humans)\.txt|/(sitemap|browserconfig|crossdomain|autodiscover/autodiscover)\.xml"
    r"|/manifest\.json|/site\.webmanifest|/(\.well-known/|favicon|apple-touch-icon|android-icon-|android-chrome-|mstile-"
    r"|ms-icon-).*",
    re.DOTALL,
)
SECRET: Final = re.compile(
    r"/\.|\.(env|sql|sqlite|bak|old|swp|tar)|\.(zip|rar|tgz|7z)\Z|id_rsa|info\.php|phpinfo|/_ignition/|/_profiler/|/telescope/|/actuator/|eval-stdin|wp-config|credentials|etc/(passwd|shadow)|proc/self/|win\.ini"
)
ID: Final = re.compile(r"([0-9]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{12,}|[0-9a-z]{24,})", re.IGNORECASE)
LOGINS: Final = {
    "wp-login.php", "xmlrpc.php", "login", "login.php", "login.aspx", "login.jsp", "login.html", "log-in", "logon",
    "signin", "sign-in", "signin.php", "administrator",
}  # fmt: skip
ABOUT: Final = {
    "blog", "category", "doc", "docs", "documentation", "guide", "guides", "help", "kb", "learn", "manual", "news",
    "reference", "support", "tag", "tags", "tutorials", "wiki",
}  # fmt: skip
NAMED: Final = {"author", "authors", "member", "members", "profile", "user", "users"}
DELETING: Final = {
    f"{word}{ending}"
    for word in ("logout", "log-out", *(f"{verb}{thing}" for verb, thing in product(
        ("delete", "remove", "destroy"), ("", "item", "-item", "_item")
    )))
    for ending in ("", ".php", ".asp", ".aspx", ".jsp")
}  # fmt: skip
FOR_ALL: Final = (
    "login", "log-in", "logon", "log-on", "signin", "sign-in", "signup", "sign-up", "regist", "passw", "forgot", "auth",
    "/admin-ajax.php", "/admin-post.php", "/load-styles.php", "/load-scripts.php",
)  # fmt: skip
FETCHING: Final = {"ai_assistant", "ai_coding_agent"}
PROBLEMS: Final[dict[str, Callable[[Visit], bool]]] = {
    "missed": lambda visit: _harmless(*AI)(visit, {}) and visit["status"] in (404, 410),
    "refused": lambda visit: visit["status"] in REFUSED,
    "missing": lambda visit: visit["status"] in (404, 410),
    "turned_away": lambda visit: visit["status"] in (403, 429, 499),
    "success": lambda visit: 200 <= (visit["status"] or 0) <= 299,
    "error": lambda visit: 500 <= (visit["status"] or 0) <= 599,
}


def find(
    job_type: str, visits: Iterable[Visit], organization: str, as_of: date, links: Iterable[Mapping[str, Any]] = ()
) -> list[Row]:
    """Return at most 100 rows of a detector, the heaviest first."""
    start = as_of - timedelta(28)
    mine = [visit for visit in visits if visit["organization"] == organization and start <= visit["day"] < as_of]
    codes = {link["short_code"] for link in links if link["organization"] == organization}
    return FINDERS[job_type](mine, as_of, codes)[:100]


def measured(job_type: str, visits: Iterable[Visit], organization: str, subject: Row) -> list[tuple[date, int, int]]:
    """Return the day, events and visits of a subject for each day with visits; only its domain may be unknown."""
    columns, is_visit, is_event = MEASURED[job_type]
    if job_type in ("server_errors", "dead_path", "refused_people"):
        visits = [visit | {"path": _template(visit)} for visit in visits]
    mine = [
        visit
        for visit in visits
        if visit["organization"] == organization
        and all(visit[name] == subject[name] and (subject[name] is not None or name == "domain") for name in columns)
        and is_visit(visit, subject)
    ]
    days = _grouped(mine, lambda visit: visit["day"])
    if job_type == "server_errors":
        days = {day: _first_of_each(visits, 3) for day, visits in days.items()}
    found = []
    for day, visits in sorted(days.items()):
        is_gap = job_type == "ai_attention_gap"  # people's visits are events, not fetches
        counted = sum(not is_gap or visit["agent_kind"] == "assistant_fetch" for visit in visits)
        found.append((day, sum(is_event(visit, subject) for visit in visits), counted))
    return found


def _first_of_each(visits: Iterable[Visit], number: int) -> list[Visit]:
    """Return the first `number` visits by each visitor of a day, and all visits without a visitor."""
    seen: Counter[Any] = Counter()
    kept = []
    for visit in sorted(visits, key=lambda visit: (visit["visited_at"], visit["status"] or 0)):
        seen[visit["visitor"]] += 1
        if visit["visitor"] is None or seen[visit["visitor"]] <= number:
            kept.append(visit)
    return kept


def _template(visit: Visit) -> str | None:
    """Return the visit's path with * for each segment that identifies a single thing; a link's path is unchanged."""
    path: str | None = visit["path"]
    if not path or visit["short_code"] is not None:
        return path
    first, *segments = path.split("/")
    named = [re.sub(r"\.[a-z0-9]{1,5}\Z", "", segment) for segment in segments]
    return "/".join([first, *("*" if ID.fullmatch(name) else one for name, one in zip(named, segments, strict=True))])


def _name(visit: Visit) -> str:
    return str(visit["agent"] or visit["user_agent"] or "unknown")


def _top(words: Iterable[str], number: int) -> list[tuple[str, int]]:
    return sorted(Counter(words).items(), key=lambda one: (-one[1], one[0]))[:number]


def _visitors(visits: Iterable[Visit]) -> int:
    return len({visit["visitor"] for visit in visits} - {None})


def _who(visits: list[Visit], audience: str = "") -> Row:
    """Return who made these visits, and the agent that made most of them, with its share."""
    ((name, number),) = _top(map(_name, visits), 1)
    top = {"top_agent": name, "top_share": _share(number, len(visits))}
    return {"audience": audience or _audience(visits), "visitors": _visitors(visits), **top}


def _top_paths(visits: list[Visit]) -> Row:
    return {"top_paths": [path for path, _ in _top((visit["path"] for visit in visits), 3)]}


def _audience(visits: list[Visit]) -> str:
    if 2 * len(_of(visits, *PEOPLE)) >= len(visits):
        return "people"
    return "AI" if _of(visits, *AI) else "search"


def _is_flood(visits: list[Visit]) -> bool:
    browsers = _top((_name(visit) for visit in visits if visit["agent"] is None), 1)
    visitors = _top((str(visit["visitor"]) for visit in visits if visit["visitor"] is not None), 1)
    return len(visits) >= 10 and (
        any(2 * number > len(visits) for _, number in browsers)
        or any(2 * number >= len(visits) for _, number in visitors)
    )


def _is_evidence(visit: Visit) -> bool:
    """Return whether a request may show a problem: it is not a probe, and it is verified or its visitor neither
    probes nor borrows a name."""
    has_probed = (visit.get("signals") or 0) & (BITS["probed"] | BITS["scanned"])
    is_known = visit["confidence"] == "verified" or not (has_probed or visit["confidence"] == "contradicted")
    return not visit["is_malicious"] and is_known


def _may_be_answered(visit: Visit) -> bool:
    return visit["status"] is None or visit["status"] < 400


def _sent(visits: Iterable[Visit]) -> int:
    return len(_of(visits, "ai_referral"))


def _last_days(visits: Iterable[Visit], as_of: date, days: int = 7) -> list[Visit]:
    return [visit for visit in visits if visit["day"] >= as_of - timedelta(days)]


def _only(visits: Iterable[Visit], problem: str) -> list[Visit]:
    return [visit for visit in visits if PROBLEMS[problem](visit)]


def _subjects(visits: Iterable[Visit], *columns: str) -> Iterable[tuple[Row, list[Visit]]]:
    groups = _grouped(visits, lambda visit: tuple(visit[column] for column in columns))
    return [(dict(zip(columns, key, strict=True)), group) for key, group in groups.items()]


def _days(visits: Iterable[Visit]) -> int:
    return len({visit["day"] for visit in visits})


def _seen(visits: Sequence[Visit]) -> Row:
    return {"days": _days(visits), "first_seen": _first(visits), "last_seen": _last(visits)}


def _verified(visits: Iterable[Visit]) -> int:
    return sum(visit["confidence"] == "verified" for visit in visits)


def _greatest(visits: Iterable[Visit], column: str) -> Any:
    return max((visit[column] for visit in visits if visit[column] is not None), default=None)


def _heaviest(rows: Iterable[Row], weight: Callable[[Row], Any], *keys: str) -> list[Row]:
    return sorted(rows, key=lambda row: (-weight(row), *((row[key] is None, row[key] or "") for key in keys)))


def _finder(
    row_of: Callable[[Row, list[Visit], date, set[str]], Row | None],
    visits_of: Callable[[list[Visit]], Iterable[Visit]],
    columns: tuple[str, ...],
    weight: Callable[[Row], Any],
) -> Finder:
    """Return a finder that makes a row, or none, for each combination of values in these columns of the visits."""

    def find(visits: list[Visit], as_of: date, codes: set[str]) -> list[Row]:
        found = (row_of(subject, group, as_of, codes) for subject, group in _subjects(visits_of(visits), *columns))
        return _heaviest(filter(None, found), weight, *columns)

    return find


def _broken(subject: Row, group: list[Visit], codes: set[str], is_invented: bool) -> Row | None:
    missed = _only(group, "missed")
    if subject["path"] in (None, "") or EVERY_HOST.fullmatch(subject["path"]) or not missed:
        return None
    answered = [visit["visited_at"] for visit in group if _may_be_answered(visit)]
    code, people = _greatest(group, "short_code"), _sent(missed)
    row = subject | {
        "short_code": code,
        "is_invented": bool(people and not answered and subject["path"] != "/" and code not in codes),
        "agent_fetches": len(missed) - people,
        "ai_referrals": people,
        "verified": _verified(missed),
        **_who(missed),
        **_seen(missed),
    }
    is_repaired = bool(answered) and max(answered) > row["last_seen"]
    is_enough = row["days"] >= 2 and len(missed) + 9 * people >= 10 and not _is_flood(missed)
    return row if is_enough and not is_repaired and row["is_invented"] is is_invented else None


def _attention_gap(visits: list[Visit], *_: Any) -> list[Row]:
    known = [visit for visit in visits if visit["ai_source"] is not None and visit["short_code"] is not None]
    counted = [visit for visit in known if _may_be_answered(visit) and _is_evidence(visit)]
    fetches = Counter(visit["ai_source"] for visit in counted if visit["agent_kind"] == "assistant_fetch")
    people = Counter(visit["ai_source"] for visit in _of(counted, "ai_referral"))
    rows = []
    for subject, group in _subjects(counted, "domain", "short_code"):
        readers = [visit for visit in group if visit["agent_kind"] == "assistant_fetch"]
        own = Counter(visit["ai_source"] for visit in readers)
        expected = sum(100 * number * people[source] // fetches[source] for source, number in own.items())
        if not _sent(group) and expected >= 500:
            fields = {"agent_fetches": len(readers), "ai_referrals": 0, "expected_referrals": expected / 100}
            rows.append(subject | fields | _who(readers, "AI"))
    return _heaviest(rows, itemgetter("expected_referrals"), "domain", "short_code")


def _blocked(subject: Row, group: list[Visit], as_of: date, _: Any) -> Row | None:
    refused, recent = _only(group, "refused"), _last_days(group, as_of)
    is_half = 2 * len(refused) >= len(group) and 2 * len(_only(recent, "refused")) >= len(recent)
    if len(refused) < 20 or _days(refused) < 2 or not is_half:
        return None
    return (
        subject
        | {name: _greatest(group, name) for name in ("operator", "ai_source")}
        | {"agent_fetches": len(group), "refused": len(refused)}
        | {"asked_to_pay": sum(visit["status"] == 402 for visit in refused)}
        | {"percentage": _share(len(refused), len(group))}
        | {"statuses": ", ".join(map(str, sorted({visit["status"] for visit in refused})))}
        | {"verified": _verified(refused), "audience": "AI", "visitors": _visitors(refused), **_seen(refused)}
    )


def _impersonated(subject: Row, group: list[Visit], as_of: date, _: Any) -> Row | None:
    probes, recent = sum(visit["is_malicious"] for visit in group), _last_days(group, as_of)
    is_much = len(group) >= 50 or probes >= 5
    if not is_much or _days(group) < 2 or len(recent) == len(_only(recent, "refused")):
        return None
    row = subject | {"visits": len(group), "probes": probes, "refused": len(_only(group, "refused"))}
    return row | {"audience": "other", "visitors": _visitors(group), **_seen(group)}


def _asked(*categories: str) -> Callable[[Iterable[Visit]], list[Visit]]:
    """Return a filter for the evidence in visits of some categories, which replaces paths by templates."""
    return lambda visits: [
        visit | {"path": _template(visit), "real": visit["path"]}
        for visit in _of(visits, *categories)
        if visit["path"] not in (None, "") and _is_evidence(visit)
    ]


def _failed(group: Iterable[Visit], problem: str) -> list[Visit]:
    """Return the visits that have a problem, with their real paths."""
    return [visit | {"path": visit["real"]} for visit in _only(group, problem)]


def _server_errors(subject: Row, group: list[Visit], as_of: date, _: Any) -> Row | None:
    recent = _last_days(group, as_of)
    errors, late = (
        [visit for visit in _failed(visits, "error") if not EVERY_HOST.fullmatch(visit["path"])]
        for visits in (group, recent)
    )
    is_often = 20 * len(errors) >= len(group) and 20 * len(late) >= len(recent)
    if len(errors) < 20 or _days(errors) < 2 or not is_often or _is_flood(errors):
        return None
    row = subject | {"short_code": _greatest(errors, "short_code"), "visits": len(group), "errors": len(errors)}
    row |= {"percentage": _share(len(errors), len(group)), "people": len(_of(errors, *PEOPLE))}
    return row | _who(errors) | _top_paths(errors) | _seen(errors)


def _search_errors(subject: Row, group: list[Visit], as_of: date, _: Any) -> Row | None:
    errors, recent = _failed(group, "error"), _last_days(group, as_of)
    is_often = 100 * len(errors) >= len(group) and 100 * len(_only(recent, "error")) >= len(recent)
    if len(errors) < 10 or _days(errors) < 3 or not is_often:
        return None
    counts = {"visits": len(group), "errors": len(errors), "percentage": _share(len(errors), len(group))}
    return subject | counts | _who(errors) | _top_paths(errors) | _seen(errors)


def _searched(visits: list[Visit], as_of: date, codes: set[str]) -> list[Row]:
    """Return the errors that search crawlers get, by domain, unless people or AI products get most of them as well."""
    erring = {(row["domain"], row["path"]) for row in FINDERS["server_errors"](visits, as_of, codes)}
    rows = []
    for subject, group in _subjects(_asked("search_crawler")(visits), "domain"):
        errors, domain = _only(group, "error"), subject["domain"]
        shared = [visit for visit in errors if (domain, visit["path"]) in erring]
        row = _search_errors(subject, group, as_of, codes)
        if row and (domain, "/") not in erring and 2 * len(shared) < len(errors):
            rows.append(row)
    return _heaviest(rows, itemgetter("errors"), "domain")


def _comes_from_others(visit: Visit) -> bool:
    """Return whether a request may show a problem with a site and does not come from a search crawler."""
    return visit["bot_category"] != "search_crawler" and visit["path"] not in (None, "") and _is_evidence(visit)


def _error_days(subject: Row, group: list[Visit], *_: Any) -> Row | None:
    bad = []
    for _, visits in _subjects(group, "day"):
        errors = _only(visits, "error")
        by_visitor = Counter(visit["visitor"] for visit in errors if visit["visitor"] is not None)
        is_one = by_visitor and 2 * max(by_visitor.values()) >= len(errors)
        is_often = 5 * len(errors) >= len(visits) and 5 * len(by_visitor) >= _visitors(visits)
        if len(errors) >= 100 and is_often and not is_one:
            bad += visits
    errors = _only(bad, "error")
    if not 1 <= _days(errors) <= 2:
        return None
    people = len(_of(errors, *PEOPLE))
    row = subject | {"visits": len(bad), "errors": len(errors), "percentage": _share(len(errors), len(bad))}
    row |= {"people": people} | _who(errors, "people" if 2 * people >= len(errors) else "other")
    return row | _top_paths(errors) | _seen(errors)


def _is_crawler(visit: Visit) -> bool:
    """Return whether a request comes from a search or AI crawler and may show a problem with a site."""
    is_known = visit["bot_category"] in ("search_crawler", *AI) and visit["bot_category"] not in PEOPLE
    return is_known and visit["path"] not in (None, "") and _is_evidence(visit)


def _is_redirected(visit: Visit) -> bool:
    return 300 <= (visit["status"] or 0) <= 399 and visit["status"] != 304


def _crawler_file(subject: Row, group: list[Visit], as_of: date, _: Any) -> Row | None:
    is_often = len(group) >= 10 and _days(group) >= 5 and _last_days(group, as_of)
    is_there = _only(group, "success") or any(visit["status"] == 304 for visit in group)
    if not is_often or is_there or 2 * len(_only(group, "missing")) < len(group):
        return None
    is_ai = 2 * len(_of(group, *AI)) >= len(group)
    return subject | {"visits": len(group)} | _who(group, "AI" if is_ai else "search") | _seen(group)


def _asked_files(visits: Iterable[Visit]) -> Iterator[Visit]:
    """Yield crawlers' requests for each crawler file that they request on at least half of the days with crawlers."""
    crawled = [visit for visit in visits if _is_crawler(visit)]
    for (_, group), path in product(_subjects(crawled, "domain"), ("/robots.txt", "/sitemap.xml")):
        asked = [visit for visit in group if visit["path"] == path and not _is_redirected(visit)]
        if 2 * _days(asked) >= _days(group):
            yield from asked


def _dead(subject: Row, group: list[Visit], as_of: date, _: Any) -> Row | None:
    recent = _last_days(group, as_of)
    missing, late = (
        [visit for visit in _failed(visits, "missing") if not EVERY_HOST.fullmatch(visit["path"])]
        for visits in (group, recent)
    )
    referred = sum(visit["referrer"] is not None for visit in missing)
    got = {
        real["real"]: _last(visits)
        for real, visits in _subjects((visit for visit in group if _may_be_answered(visit)), "real")
    }
    gone = [
        visit
        for _, visits in _subjects(missing, "path")
        for visit in visits
        if visits[0]["path"] not in got or got[visits[0]["path"]] <= _last(visits)
    ]
    is_often = 2 * len(gone) >= len(group) and 2 * len(late) >= len(recent) and 4 * referred >= len(missing)
    is_enough = len(missing) >= 10 and _visitors(missing) >= 5 and _days(missing) >= 3
    if not is_enough or not is_often or _is_flood(missing):
        return None
    row = subject | {"short_code": _greatest(missing, "short_code"), "visits": len(group), "missing": len(missing)}
    row |= {"percentage": _share(len(missing), len(group)), "referred": referred}
    return row | _who(missing) | _top_paths(missing) | _seen(missing)


def _refused_people(visits: list[Visit], as_of: date, _: Any) -> list[Row]:
    asked = [
        visit
        for visit in _asked(*PEOPLE)(visits)
        if not (EVERY_HOST.fullmatch(visit["real"]) or _is_login_path(visit["real"]) or _is_admin(visit["real"]))
    ]
    served = {
        (visit["domain"], visit["day"], visit["visitor"])
        for visit in asked
        if visit["visitor"] is not None and (PROBLEMS["success"](visit) or visit["status"] == 304)
    }
    known = [visit for visit in asked if (visit["domain"], visit["day"], visit["visitor"]) in served]
    rows = []
    for subject, group in _subjects(known, "domain", "path"):
        refused = _failed(group, "turned_away")
        days = {visit["day"] for visit in refused}
        there = [visit for visit in group if visit["day"] in days]
        late, recent = _last_days(refused, as_of), _last_days(there, as_of)
        is_half = 2 * len(refused) >= len(there)
        is_often = is_half or 2 * len(late) >= len(recent)
        is_only_given_up = all(visit["status"] == 499 for visit in refused)
        if (
            len(refused) < 20
            or _visitors(refused) < 5
            or not late
            or not is_often
            or (is_only_given_up and not is_half)
        ):
            continue
        if 10 * len(_only(there, "error")) >= len(there) or _is_flood(refused):
            continue
        row = subject | {"short_code": _greatest(refused, "short_code"), "visits": len(there), "refused": len(refused)}
        row |= {"percentage": _share(len(refused), len(there))}
        row |= {"statuses": ", ".join(map(str, sorted({visit["status"] for visit in refused})))}
        rows.append(row | _who(refused, "people") | _top_paths(refused) | _seen(refused))
    return _heaviest(rows, itemgetter("refused"), "domain", "path")


def _is_admin(path: str) -> bool:
    """Return whether the first or second folder of a path shows that it is in an admin area."""
    start, first, second = (*path.lower().split("/"), "", "")[:3]
    everywhere = {"wp-admin", "administrator", "cpanel"}
    if start or first in {"admin", "dashboard", "backend", "manage"} | everywhere:
        return not start
    return first != "" and (second in everywhere or (second == "admin" and first not in ABOUT | NAMED))


def _reads(visit: Visit) -> bool:
    """Return whether a search crawler, AI crawler or assistant requested a page, and the response may have a body."""
    is_crawler = visit["bot_category"] in ("search_crawler", "ai_training", "ai_assistant") and _is_evidence(visit)
    return is_crawler and visit["method"] != "HEAD" and not (visit.get("signals") or 0) & BITS["file"]


def _is_inside(visit: Visit) -> bool:
    """Return whether a search crawler, AI crawler or assistant requested something meant only for administrators."""
    path = (visit["path"] or "").lower()
    is_deletion = path.removeprefix("/").split("/")[0] not in ABOUT and not DELETING.isdisjoint(path.split("/")[1:])
    return _reads(visit) and (_is_admin(path) or is_deletion) and not any(word in path for word in FOR_ALL)


def _crawled_inside(visits: list[Visit], as_of: date, _: Any) -> list[Row]:
    rows = []
    answered = [visit for visit in _only(visits, "success") if visit["bytes_sent"] is not None]
    homes = [visit for visit in answered if visit["path"] == "/" and _reads(visit)]
    for subject, inside in _subjects(filter(_is_inside, answered), "domain"):
        sizes = {visit["bytes_sent"] for visit in homes if visit["domain"] == subject["domain"]}
        group = [visit for visit in inside if not any(_is_like_size(visit["bytes_sent"], size) for size in sizes)]
        own, paths = sorted(visit["bytes_sent"] for visit in group), {visit["path"] for visit in group}
        is_enough = len(group) >= 5 and len(paths) >= 2 and not _is_like_size(own[0], own[-1])
        if not is_enough or not _last_days(group, as_of):
            continue
        is_ai = 2 * len(_of(group, *AI)) >= len(group)
        row = subject | {"answered": len(group), "paths": len(paths)} | _who(group, "AI" if is_ai else "search")
        rows.append(row | _top_paths(group) | _seen(group))
    return _heaviest(rows, itemgetter("answered"), "domain")


def plain_path(path: str) -> str:
    """Return a path as a server resolves it."""
    path = re.sub(r"( |%20)+\Z", "", path)
    path = re.sub("%(25)?2f", "/", re.sub("%(25)?2e", ".", path, flags=re.IGNORECASE), flags=re.IGNORECASE)
    first, *segments = path.split("/")
    kept: list[str] = []
    for segment in [one for one in segments[:-1] if one not in ("", ".")] + segments[-1:]:
        is_parent = segment == ".." and segment is not segments[-1]
        if not is_parent:
            kept.append(segment)
        elif kept:
            kept.pop()
    return "/".join([first, *kept])


def _exposed_part(path: str) -> str:
    """Return a pattern for everything in the path's hidden folder, or the path if it has none."""
    found = re.match(r".*?/\.[^/]+/", path)
    return f"{found[0]}*" if found else path


def _is_like_size(size: int | None, other: int | None) -> bool:
    return size is other if size is None or other is None else abs(size - other) <= max(64, size // 20)


def _is_of_site(visits: Iterable[Visit]) -> bool:
    """Return whether all of these requests came from pages of the site."""
    return all(visit["referrer"] == visit["domain"] is not None for visit in visits)


def _exposed(visits: list[Visit], is_catch_all: bool) -> list[Row]:
    read = [visit for visit in visits if visit["path"] not in (None, "") and visit["method"] != "HEAD"]
    probes = [visit | {"path": plain_path(visit["path"])} for visit in read if visit["is_malicious"]]
    open_paths = [
        (subject, group, answered)
        for subject, group in _subjects(probes, "domain", "path")
        if (answered := _only(group, "success")) and _last(answered) >= _last(group)
    ]
    known = [
        (subject["domain"], subject["path"], _greatest(answered, "bytes_sent"), _is_of_site(answered))
        for subject, _, answered in open_paths
    ]
    homes = {(visit["domain"], visit["bytes_sent"]) for visit in _only(read, "success") if visit["path"] == "/"}

    def is_alike(domain: Any, size: int | None) -> bool:
        near = [
            (path, other)
            for place, path, other, is_of_site in known
            if place == domain and not is_of_site and _is_like_size(size, other)
        ]
        folders = {path.removeprefix("/").split("/")[0] for path, _ in near}
        is_home = "" in folders or any(
            place == domain and other is not None and _is_like_size(size, other) for place, other in homes
        )
        return is_home or len(folders) >= 3 or sum(other == size for _, other in near) >= 3

    sizes: dict[Any, set[int]] = {}
    for visit in _only(read, "success"):
        sizes.setdefault(visit["domain"], set()).update({visit["bytes_sent"]} - {None})
    alike = Counter(domain for domain, _, size, is_of_site in known if not is_of_site and is_alike(domain, size))
    groups: dict[tuple[Any, str], list[tuple[list[Visit], list[Visit]]]] = {}
    for (_, group, answered), (domain, path, size, is_of_site) in zip(open_paths, known, strict=True):
        if is_alike(domain, size) is not is_catch_all:
            continue
        has_pages = not sizes[domain] or not _is_like_size(min(sizes[domain]), max(sizes[domain]))
        is_one_of_three = alike[domain] >= 3 and has_pages and not is_of_site
        if is_one_of_three if is_catch_all else SECRET.search(path):
            groups.setdefault((domain, "*" if is_catch_all else _exposed_part(path)), []).append((group, answered))
    rows = []
    for (domain, path), members in groups.items():
        answers = [visit for _, answered in members for visit in answered]
        row = {"domain": domain, "path": path, "is_catch_all": is_catch_all, "answered": len(answers)}
        row |= {"probes": sum(len(group) for group, _ in members), "paths": len(members)}
        row |= {"bytes_sent": _greatest(answers, "bytes_sent")}
        row |= _top_paths(answers) | _who(answers, "other") | _seen(answers)
        rows.append(row | {"days": max(_days(answered) for _, answered in members)})
    return _heaviest(rows, itemgetter("answered"), "domain", "path")


def _is_work(visits: list[Visit]) -> bool:
    """Return whether the requests come from a person who works on the site or owns it."""
    signals = [visit.get("signals") or 0 for visit in visits]
    files = sum(bool(one & BITS["file"]) for one in signals)
    own = sum(bool(one & (BITS["own_address"] | BITS["own_rule"])) for one in signals)
    referred = sum(visit["referrer"] is not None for visit in visits)
    by_site = sum(visit["referrer"] == visit["domain"] is not None for visit in visits)
    is_referred = 2 * referred >= len(visits) and 10 * files >= len(visits)
    return is_referred or 2 * by_site >= len(visits) or 2 * own >= len(visits)


def _floods(visits: list[Visit], *_: Any) -> list[Row]:
    of_day = Counter((visit["domain"], visit["day"]) for visit in visits)
    of_domain = Counter(visit["domain"] for visit in visits)
    days = Counter(domain for domain, _ in of_day)
    found: dict[tuple[Any, str], list[list[Visit]]] = {}
    named = [visit | {"agent": _name(visit)} for visit in visits]
    for subject, group in _subjects(named, "domain", "agent", "day"):
        domain, whole = subject["domain"], of_day[subject["domain"], subject["day"]]
        if _is_work(group):
            continue
        others, of_others = days[domain] - 1, of_domain[domain] - whole
        denied = sum(400 <= (visit["status"] or 0) <= 499 for visit in group)
        if len(group) - denied >= 1000 and 2 * len(group) >= whole and others and len(group) * others >= 3 * of_others:
            found.setdefault((domain, subject["agent"]), []).append(group)
    rows = []
    for (domain, agent), groups in found.items():
        every = [visit for group in groups for visit in group]
        whole = sum(of_day[domain, group[0]["day"]] for group in groups)
        row = {"domain": domain, "agent": agent, "visits": len(every), "whole": whole}
        row |= {"percentage": _share(len(every), whole)}
        row |= {"refused_or_failed": sum((visit["status"] or 0) >= 400 for visit in every)}
        row |= {"referred": sum(visit["referrer"] is not None for visit in every)}
        rows.append(row | {"visitors": max(map(_visitors, groups)), **_seen(every)})
    return _heaviest(rows, itemgetter("visits"), "domain", "agent")


def _is_login(visit: Visit) -> bool:
    """Return whether a request sent something to a login page."""
    return visit["method"] == "POST" and _is_login_path(plain_path(visit["path"] or ""))


def _is_login_path(path: str) -> bool:
    return "/administrator/" in path.lower() or path.lower().rstrip("/").split("/")[-1] in LOGINS


def _is_tried(visit: Visit) -> bool:
    return 200 <= (visit["status"] or 0) <= 299 or visit["status"] in (302, 303, 401, 422)


def _login_attacks(visits: list[Visit], as_of: date, _: Any) -> list[Row]:
    tried = [visit | {"path": plain_path(visit["path"])} for visit in visits if _is_login(visit) and _is_tried(visit)]
    rows = []
    for subject, group in _subjects(tried, "domain", "path"):
        attacks: list[Visit] = []
        for _, of_day in _subjects(group, "day"):
            of_visitor = Counter(visit["visitor"] for visit in of_day if visit["visitor"] is not None)
            counted = [v for v in of_day if v["bot_category"] not in PEOPLE or of_visitor[v["visitor"]] >= 100]
            attacks += counted if len(counted) >= 100 else []
        if _last_days(attacks, as_of):
            rows.append(subject | {"visits": len(attacks)} | _who(attacks, "other") | _seen(attacks))
    return _heaviest(rows, itemgetter("visits"), "domain", "path")


def _referral_drop(subject: Row, group: list[Visit], as_of: date, _: Any) -> Row | None:
    late = len(_last_days(group, as_of, 14))
    early = [visit for visit in group if visit["day"] < as_of - timedelta(14)]
    chance = Fraction(sum(comb(len(group), k) for k in range(late + 1)), 2 ** len(group))
    is_enough = len(early) >= 20 and _days(early) >= 7 and not _is_flood(early)
    if not is_enough or 2 * late >= len(early) or chance >= Fraction(1, 100):
        return None
    fields = {"referrals_before": len(early), "ai_referrals": late, "lost_referrals": len(early) - late}
    fields |= {"probability": round(float(chance), 6), **_who(early, "people"), "last_seen": _last(group)}
    return subject | fields


def _without_return(visits: list[Visit], as_of: date, _: Any) -> list[Row]:
    products: dict[str, set[str]] = {}
    for visit in visits:
        if visit["operator"] is not None and visit["ai_source"] is not None:
            products.setdefault(visit["operator"], set()).add(visit["ai_source"])
    whole = Counter(visit["domain"] for visit in visits)
    sent = {(visit["domain"], visit["ai_source"]) for visit in _of(visits, "ai_referral")}
    rows = []
    crawls = [visit for visit in _of(visits, "ai_training") if visit["operator"] is not None and _is_evidence(visit)]
    for subject, group in _subjects(crawls, "domain", "operator"):
        domain, every = subject["domain"], whole[subject["domain"]]
        returned = any((domain, source) in sent for source in products.get(subject["operator"], ()))
        row = subject | {"training_fetches": len(group), "visits": every, "percentage": _share(len(group), every)}
        row |= {"verified": _verified(group), **_who(group, "AI"), **_seen(group)}
        is_much = len(group) >= 100 and 5 * len(group) >= every and row["days"] >= 2
        if is_much and not returned and _last_days(group, as_of):
            rows.append(row)
    return _heaviest(rows, itemgetter("training_fetches"), "domain", "operator")


_PAGE: Final = ("domain", "path")
_AGENT: Final = ("domain", "agent")
FINDERS: Final[dict[str, Finder]] = {
    **{
        job_type: _finder(
            lambda subject, group, _, codes, is_invented=is_invented: _broken(subject, group, codes, is_invented),
            list,
            _PAGE,
            lambda row: row["agent_fetches"] + 10 * row["ai_referrals"],
        )
        for job_type, is_invented in (("broken_link", False), ("invented_link", True))
    },
    "ai_attention_gap": _attention_gap,
    "blocked_agent": _finder(
        _blocked,
        lambda visits: [v for v in _of(visits, *FETCHING) if v["agent"] is not None and _is_evidence(v)],
        _AGENT,
        itemgetter("refused"),
    ),
    "impersonated_agent": _finder(
        _impersonated,
        lambda visits: [v for v in visits if v["confidence"] == "contradicted" and v["agent"] is not None],
        _AGENT,
        itemgetter("visits"),
    ),
    "server_errors": _finder(_server_errors, _asked(*AI, *PEOPLE), _PAGE, itemgetter("errors")),
    "search_errors": _searched,
    "error_days": _finder(
        _error_days, lambda visits: [v for v in visits if _comes_from_others(v)], ("domain",), itemgetter("errors")
    ),
    "crawler_file": _finder(_crawler_file, _asked_files, ("domain", "path"), itemgetter("visits")),
    "dead_path": _finder(_dead, _asked(*PEOPLE), _PAGE, itemgetter("missing")),
    "refused_people": _refused_people,
    "exposed_path": lambda visits, *_: _exposed(visits, is_catch_all=False),
    "catch_all": lambda visits, *_: _exposed(visits, is_catch_all=True),
    "crawler_inside": _crawled_inside,
    "flood": _floods,
    "login_attack": _login_attacks,
    "referral_drop": _finder(
        _referral_drop,
        lambda visits: [
            v for v in _of(visits, "ai_referral") if None not in (v["short_code"], v["ai_source"]) and _is_evidence(v)
        ],
        ("domain", "short_code", "ai_source"),
        itemgetter("lost_referrals"),
    ),
    "training_without_return": _without_return,
}


def _harmless(*categories: str) -> InMeasure:
    return lambda visit, _: visit["bot_category"] in categories and _is_evidence(visit)


def _has(problem: str) -> InMeasure:
    return lambda visit, _: PROBLEMS[problem](visit)


def _probes(visit: Visit, subject: Row) -> bool:
    names = {visit["path"], plain_path(visit["path"] or ""), _exposed_part(plain_path(visit["path"] or "")), "*"}
    return visit["is_malicious"] and visit["method"] != "HEAD" and subject["path"] in names


def _crawls(visit: Visit, _: Row) -> bool:
    return visit["bot_category"] in FETCHING_AI | {"search_crawler"}


MEASURED: Final[dict[str, tuple[tuple[str, ...], InMeasure, InMeasure]]] = {
    **dict.fromkeys(("broken_link", "invented_link"), (_PAGE, _harmless(*AI), _has("missed"))),
    "ai_attention_gap": (
        ("domain", "short_code"),
        lambda visit, _: (
            visit["ai_source"] is not None
            and _may_be_answered(visit)
            and _is_evidence(visit)
            and (visit["bot_category"] == "ai_referral" or visit["agent_kind"] == "assistant_fetch")
        ),
        lambda visit, _: visit["bot_category"] == "ai_referral",
    ),
    "blocked_agent": (_AGENT, _harmless(*FETCHING), _has("refused")),
    "impersonated_agent": (
        _AGENT,
        lambda *_: True,
        lambda visit, _: visit["confidence"] == "contradicted" and not PROBLEMS["refused"](visit),
    ),
    "server_errors": (_PAGE, _harmless(*AI, *PEOPLE), _has("error")),
    "search_errors": (
        ("domain",),
        lambda visit, _: visit["bot_category"] == "search_crawler" and visit["path"] and _is_evidence(visit),
        _has("error"),
    ),
    "error_days": (("domain",), lambda visit, _: _comes_from_others(visit), _has("error")),
    "crawler_file": (
        ("domain", "path"),
        lambda visit, _: _is_crawler(visit) and not _is_redirected(visit),
        _has("missing"),
    ),
    "dead_path": (_PAGE, _harmless(*PEOPLE), _has("missing")),
    "refused_people": (_PAGE, _harmless(*PEOPLE), _has("turned_away")),
    "crawler_inside": (("domain",), lambda visit, _: _is_inside(visit), _has("success")),
    **dict.fromkeys(("exposed_path", "catch_all"), (("domain",), _probes, _has("success"))),
    "flood": (("domain",), lambda *_: True, lambda visit, subject: _name(visit) == subject["agent"]),
    "login_attack": (
        ("domain",),
        lambda visit, subject: visit["method"] == "POST" and plain_path(visit["path"] or "") == subject["path"],
        lambda visit, _: _is_tried(visit) and visit["bot_category"] not in PEOPLE,
    ),
    "referral_drop": (
        ("domain",),
        lambda visit, _: visit["bot_category"] == "ai_referral" and _is_evidence(visit),
        lambda visit, subject: all(visit[name] == subject[name] for name in ("short_code", "ai_source")),
    ),
    "training_without_return": (
        ("domain",),
        lambda visit, subject: _crawls(visit, subject) and _is_evidence(visit),
        lambda visit, subject: visit["bot_category"] == "ai_training" and visit["operator"] == subject["operator"],
    ),
    "crawler_plan": (
        ("domain",),
        _crawls,
        lambda visit, subject: (
            visit["agent"] in subject["agent"].split(", ")
            and visit["path"] != "/robots.txt"
            and not PROBLEMS["refused"](visit)
        ),
    ),
}
"""For each type of job: the columns that its visits share with a subject, its visits, and its events.

This list repeats queries/detectors.py on purpose: the recount takes nothing from there.
"""
