"""Advice for robots.txt from the visits of an organization, and visits that went against a robots.txt."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from importlib import resources
from pathlib import Path
from typing import Any, Final, NamedTuple

from protego import Protego

from data import BadInput
from data.rules.tables import Agent, load
from data.text import plural
from queries import Reader, Tables

GROUPS: Final = {
    "training": ("training", "ai_data_provider"),
    "search": ("ai_search_index", "search"),
    "assistants": ("assistant_fetch", "agentic_browser"),
}
"""What crawlers are for, by their agent_kind. Other kinds do not ask for robots.txt."""
_GROUP_OF: Final = {kind: group for group, kinds in GROUPS.items() for kind in kinds}
MAX_ROBOTS_BYTES: Final = 500 << 10
_TOKEN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.! -]{0,63}")
"""A name that robots.txt can address."""


class Crawler(NamedTuple):
    """The visits of one agent, and the people whom the AI products of its operator sent."""

    group: str
    agent: str
    operator: str
    visits: int
    people: int


class Offence(NamedTuple):
    """Visits of one agent to one path that a robots.txt closes to it."""

    agent: str
    operator: str
    path: str
    visits: int
    last_visit: datetime  # in UTC, naive


def crawlers(reader: Reader, organization: str, start: date, end: date) -> list[Crawler]:
    """The crawlers seen from `start` to `end` (UTC, inclusive), by group; in each those with most visits first.

    Agents from outside the addresses of their operator are left out: they are somebody else. Raises what Reader.query
    raises.
    """
    bots, sources = (
        _rows(reader.query(name, organization=organization, start_date=start, end_date=end))
        for name in ("bot-traffic", "ai-sources")
    )
    people = people_by_operator({row["ai_source"]: row["ai_referrals"] for row in sources})
    visits: Counter[tuple[str, str, str]] = Counter()
    for row in bots:
        if row["agent_kind"] in _GROUP_OF and row["confidence"] != "contradicted":
            visits[_GROUP_OF[row["agent_kind"]], row["agent"], row["operator"]] += row["visits"]
    order = list(GROUPS)
    listed = [Crawler(*key, count, people.get(key[2], 0)) for key, count in visits.items()]
    return sorted(listed, key=lambda one: (order.index(one.group), -one.visits, one.agent, one.operator))


def people_by_operator(referrals: Mapping[str, int]) -> Mapping[str, int]:
    """The people that operators sent, given those that each AI product sent; agents.toml knows whose product it is."""
    products: dict[str, set[str]] = defaultdict(set)
    for row in load(Agent, "agents"):
        if row.ai_source:
            products[row.operator].add(row.ai_source)
    return {operator: sum(referrals.get(name, 0) for name in names) for operator, names in products.items()}


def robots_lines(listed: list[Crawler]) -> Iterator[str]:
    """Lines of a robots.txt that close everything to these crawlers, with comments that say what that means."""
    for group in GROUPS:
        members = [one for one in listed if one.group == group]
        if not members:
            continue
        yield f"# {group}: {plural(sum(one.visits for one in members), 'visit')}"
        for one in members:
            sent = f"{one.people:,} people" if one.people != 1 else "1 person"
            visits = plural(one.visits, "visit")
            yield f"# {one.agent} ({one.operator}): {visits} kept away; {one.operator} sent {sent}"
            if _TOKEN.fullmatch(one.agent):
                yield f"User-agent: {one.agent}"
            else:
                yield "# no line: robots.txt cannot address this name"
        if any(_TOKEN.fullmatch(one.agent) for one in members):
            yield "Disallow: /"
        yield ""


def offences(
    reader: Reader, robots: Protego, organization: str, start: date, end: date, *, domain: str = ""
) -> list[Offence]:
    """The visits of crawlers from `start` to `end` (UTC, inclusive) to paths that a robots.txt closes to them.

    At most 100,000 pairs of agent and path are checked. A path has no query string, so rules that need one close
    nothing. Raises what Reader.sql raises.
    """
    text = resources.files("service").joinpath("robots.sql").read_text("utf-8")
    rows = _rows(reader.sql(text, organization=organization, start_date=start, end_date=end, domain=domain))
    return [
        Offence(row["agent"], row["operator"] or "unknown", row["path"], row["visits"], row["last_visit"])
        for row in rows
        if row["agent_kind"] in _GROUP_OF and not robots.can_fetch(row["path"], row["agent"])
    ]


def read_robots(path: Path) -> Protego:
    """A robots.txt, which in RFC 9309 has at least 500 KiB; the rest is ignored. Raises BadInput for no such file."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_ROBOTS_BYTES).decode("utf-8-sig", "replace")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.") from error
    return Protego.parse(text)


def _rows(table: Tables) -> list[dict[str, Any]]:
    assert not isinstance(table, dict)  # noqa: S101  # it has no parts
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows
