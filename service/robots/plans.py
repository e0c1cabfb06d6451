"""Computes the savings and costs of blocking AI crawlers from the visits of 28 days, and writes files that block them.

Nothing is blocked here: the web server's operator publishes the file, and a job measures the effect.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Any, Final, NamedTuple

from protego import Protego

from data import BadInput
from data.rules.bots import agent_pattern
from data.rules.tables import Agent, load
from data.text import plural
from queries import CRAWLER_PLAN, Finding, Reader, Tables
from service.jobs.findings import Cause, new_job
from service.jobs.implementations import Draft
from service.jobs.records import Actor, JobRecord
from service.jobs.store import Jobs

DAYS: Final = 28
PURPOSES: Final = {
    "asked": "for a user of an assistant",
    "indexed": "for a search index",
    "trained": "for training",
    "coding": "by coding agents",
}
"""Purposes of fetches by AI agents, as in the report `ai-agents`."""
KINDS: Final = ("training", "ai_data_provider", "ai_search_index", "search", "assistant_fetch", "agentic_browser")
"""The agent_kind of agents that may read robots.txt."""
MAX_ROBOTS_BYTES: Final = 500 << 10
_TOKEN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.! -]{0,63}")
"""A name that robots.txt can address."""


class Crawled(NamedTuple):
    """Fetches by one operator's agents for one purpose."""

    operator: str
    purpose: str
    agents: tuple[str, ...]
    agent_fetches: int
    bytes_sent: int
    ai_referrals: int  # people sent by the operator's products, for all its purposes

    @property
    def key(self) -> str:
        """The key by which users choose it: operator:purpose."""
        return f"{self.operator}:{self.purpose}"

    def row(self, ignored: Mapping[str, int] | None) -> dict[str, Any]:
        """Return the values as a row; given `ignored` (violations of a robots.txt by agent), also their number."""
        row = {**self._asdict(), "agents": ", ".join(self.agents)}
        return row if ignored is None else row | {"ignored": sum(ignored.get(agent, 0) for agent in self.agents)}


class Cost(NamedTuple):
    """The effects that blocking would have had on the examined days."""

    blocked: tuple[Crawled, ...]
    agent_fetches: int  # saved
    bytes_sent: int  # saved
    ai_referrals: int  # people at risk: all people sent by the products of these operators


def last_days(today: date) -> tuple[date, date]:
    """Return the first and the last of the 28 days before today."""
    return today - timedelta(DAYS), today - timedelta(1)


def crawled(rows: Iterable[Mapping[str, Any]]) -> list[Crawled]:
    """Return the rows of the report `ai-agents`, grouped by operator and purpose, most fetches first."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["operator"], row["purpose"]), []).append(row)
    found = []
    for key, members in groups.items():
        agents, people = tuple(row["agent"] for row in members), members[0]["ai_referrals"]
        fetches, size = (sum(row[name] for row in members) for name in ("agent_fetches", "bytes_sent"))
        found.append(Crawled(*key, agents, fetches, size, people))
    return sorted(found, key=lambda one: (-one.agent_fetches, one.key))


def cost(found: Sequence[Crawled], chosen: Sequence[str]) -> Cost:
    """Return the effects of blocking `chosen`: each is an operator:purpose, or an operator for all of its purposes.

    Raises BadInput for a choice that was not seen.
    """
    for name in chosen:
        if all(name not in {one.key, one.operator} for one in found):
            known = ", ".join(one.key for one in found)
            remedy = f"choose from: {known}" if known else "nor was any other AI agent"
            raise BadInput(f"{name!r} was not seen on these days; {remedy}.")
    blocked = tuple(one for one in found if {one.key, one.operator} & {*chosen})
    people = {one.operator: one.ai_referrals for one in blocked}
    fetches, size = sum(one.agent_fetches for one in blocked), sum(one.bytes_sent for one in blocked)
    return Cost(blocked, fetches, size, sum(people.values()))


def robots_txt(blocked: Cost) -> Iterator[str]:
    """Yield the lines of a robots.txt that disallow everything for a plan's agents."""
    for token in sorted(_tokens(blocked)):
        yield f"User-agent: {token}" if _TOKEN.fullmatch(token) else f"# robots.txt cannot address {token}"
    yield "Disallow: /"


def nginx(blocked: Cost) -> Iterator[str]:
    """Yield lines for nginx: a map outside the server blocks, and a rule for each server block."""
    yield "# outside the server blocks"
    yield "map $http_user_agent $is_blocked_agent {"
    yield "    default 0;"
    for pattern in _patterns(blocked):
        yield f'    "~*{pattern}" 1;'
    yield "}"
    yield "# in the server block: if ($is_blocked_agent) { return 403; }"


def caddy(blocked: Cost) -> Iterator[str]:
    """Yield lines for a site in a Caddyfile."""
    yield f'@blocked_agents header_regexp User-Agent "(?i){"|".join(_patterns(blocked))}"'
    yield "respond @blocked_agents 403"


SNIPPETS: Final = {"robots.txt": robots_txt, "nginx": nginx, "caddy": caddy}
"""The file formats in which a plan can be written, by name."""


def snippet(name: str, plan: Cost, first: date, last: date) -> str:
    """Return a plan in one of the formats in SNIPPETS, preceded by comments on its effects."""
    operators = sorted({one.operator for one in plan.blocked})
    lines = [
        f"# {first} to {last}: {plural(plan.agent_fetches, 'request')} and {plural(plan.bytes_sent, 'byte')} saved.",
        f"# At risk: up to {plural(plan.ai_referrals, 'visit')} by people sent by products of {', '.join(operators)}.",
        *(f"# {one.operator}, {PURPOSES[one.purpose]}: {plural(one.agent_fetches, 'request')}" for one in plan.blocked),
        *SNIPPETS[name](plan),
    ]
    return "\n".join(lines) + "\n"


def make_job(  # noqa: PLR0917  # whose plan, its file and days, and by whom
    jobs: Jobs,
    organization: str,
    plan: Cost,
    name: str,
    days: tuple[date, date],
    actor: Actor,
    now: datetime,
    *,
    domain: str = "",
    ignored: Mapping[str, int] | None = None,
) -> JobRecord:
    """Turn a plan into an approved job with the file as its patch, or return the open job about the same agents.

    The job is measured once it is marked as shipped. `ignored` are requests that violated the current file, by agent.
    Raises BadInput for an empty plan or an unknown file, and JobConflict.
    """
    if not plan.blocked or name not in SNIPPETS:
        raise BadInput("choose crawlers and a file first.")
    operators = [f"{one.operator} ({one.purpose})" for one in plan.blocked]
    agents = ", ".join(sorted({agent for one in plan.blocked for agent in one.agents}))
    more = f" and {len(operators) - 3} more" if len(operators) > 3 else ""
    domains = ["--domain", domain] if domain else []
    blocks = [word for one in plan.blocked for word in ("--block", one.key)]
    subject, weight = {"domain": domain or None, "agent": agents}, plan.agent_fetches / (DAYS / 7)
    title = CRAWLER_PLAN.title.format(operators=", ".join(operators[:3]) + more)
    summary = CRAWLER_PLAN.summary.replace("{people_at_risk}", f"{plan.ai_referrals:,}")
    rows = [{"agent": row.pop("agents"), **row} for row in (one.row(ignored) for one in plan.blocked)]
    replay = shlex.join(["traffic", "robots", "plan", "--org", organization, *domains, *blocks])
    kind = replace(CRAWLER_PLAN, title=title, summary=summary)
    finding = Finding(kind.type, organization, subject, {}, weight)
    planned = Cause(kind, "ai-agents", [finding], days, rows, replay)
    draft = Draft("patch", "text/plain", snippet(name, plan, *days), note=f"as {name}")
    return jobs.create(new_job(planned, now), actor, now, draft, is_approved=True)


def offences(
    reader: Reader, robots: Protego, organization: str, start: date, end: date, *, domain: str = ""
) -> list[dict[str, Any]]:
    """Return visits by crawlers to paths that a robots.txt disallows for them, on the organization's days from `start`
    to `end`, inclusive.

    Each row has an agent, an operator, a path, visits, and last_visit (UTC, naive). At most 100,000 pairs of agent and
    path are checked. Paths have no query string, so rules that need one do not match. Raises the exceptions of
    Reader.sql.
    """
    text = resources.files("service.robots").joinpath("plans.sql").read_text("utf-8")
    rows = rows_of(reader.sql(text, organization=organization, start_date=start, end_date=end, domain=domain))
    return [
        row | {"operator": row["operator"] or "unknown"}
        for row in rows
        if row.pop("agent_kind") in KINDS and not robots.can_fetch(row["path"], row["agent"])
    ]


def read_robots(path: Path) -> Protego:
    """Read the first 500 KiB of a robots.txt (the minimum in RFC 9309); the rest is ignored. Raises BadInput if it
    cannot be read.
    """
    try:
        with path.open("rb") as file:
            text = file.read(MAX_ROBOTS_BYTES).decode("utf-8-sig", "replace")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.") from error
    return Protego.parse(text)


def rows_of(table: Tables) -> list[dict[str, Any]]:
    """Return the rows of an answer without parts."""
    assert not isinstance(table, dict)  # noqa: S101
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _tokens(plan: Cost) -> dict[str, bool]:
    """Return the tokens of a plan's agents, and whether each is an entire user agent. The token of an agent without a
    rule is its name.
    """
    agents = {agent for one in plan.blocked for agent in one.agents}
    rows = [row for row in load(Agent, "agents") if row.agent in agents]
    unknown = agents - {row.agent for row in rows}
    return {row.token: row.exact for row in rows} | dict.fromkeys(unknown, False)


def _patterns(plan: Cost) -> list[str]:
    """Return regular expressions that match the user agents of a plan's agents; unprintable names are left out."""
    return sorted(agent_pattern(token, exact) for token, exact in _tokens(plan).items() if token.isprintable())
