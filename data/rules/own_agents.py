"""Checks the agents in a lake's own table, which take precedence over shipped agents."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from data.errors import BadInput
from data.rules.bots import agent_pattern, readable_user_agent
from data.rules.patterns import pattern_set
from data.rules.tables import Agent, Browser, Device, IpList, Lifetime, NotCrawler, OwnAgent, load, parse_rows
from data.visits import AI_CATEGORIES, CATEGORY_OF_KIND

MAX_ROWS: Final = 500
MAX_TOKEN: Final = 100
"""Maximum length of a token. With MAX_ROWS tokens of this length, classifying the first user agent takes half a second.
"""
_CONFIDENCES: Final = ("high", "medium", "low")
_NOT_BY_AGENT: Final = ("referral", "disguised", "prefetch")
"""Kinds of visits that cannot be recognized by user agent."""
_REMEDY: Final = "correct it, or remove the row."


def checked_agents(name: str, content: bytes) -> tuple[OwnAgent, ...]:
    """Return the rows of the table in the file `name`. Raises BadInput with file, row, field and remedy."""
    try:
        rows = parse_rows(OwnAgent, "agent", name, content) if content.strip() else []
    except ValueError as error:
        raise BadInput(f"{error}; {_REMEDY}") from error
    if len(rows) > MAX_ROWS:
        raise BadInput(f"{name} has {len(rows):,} rows; keep at most {MAX_ROWS:,}.")
    for number, problem in agent_problems(rows):
        raise BadInput(f"{name}, row {number}: {problem}.")
    return tuple(rows)


def agent_problems(rows: Sequence[Agent]) -> Iterator[tuple[int, str]]:
    """Yield the problems of rows, each with its row number."""
    for number, row in enumerate(rows, 1):
        if problem := next(_problems_of_fields(row), ""):
            yield number, problem
            return  # tokens may be too long to compile their patterns
    patterns = pattern_set(agent_pattern(row.token, row.exact) for row in rows)
    for person in _people():
        for index in patterns.Match(person.lower()) or ():
            known = f"token {rows[index].token!r} also occurs in people's user agents, such as {person!r}"
            yield index + 1, f"{known}; use a token that only this agent sends"
    for index, row in enumerate(rows):
        first = min(patterns.Match(readable_user_agent(row.example).lower()) or (), default=None)
        if first is None:
            yield index + 1, f"token {row.token!r} is not in the example {row.example!r}; copy one from your log"
        elif first != index:
            before = f"token {rows[first].token!r} of row {first + 1} is also in the example, and comes first"
            yield index + 1, f"{before}; put the longer token first, and each token only once"


def _problems_of_fields(row: Agent) -> Iterator[str]:
    """Yield the problems of a row's fields, apart from wrong types and words that are not allowed."""
    is_ai = CATEGORY_OF_KIND[row.agent_kind] in AI_CATEGORIES
    if len(row.token) > MAX_TOKEN:
        yield f"token has {len(row.token):,} characters; keep at most {MAX_TOKEN}"
    if row.agent_kind in _NOT_BY_AGENT:
        yield f"agent_kind {row.agent_kind!r} is not for agents; use another agent_kind"
    if row.confidence not in _CONFIDENCES:
        yield f"confidence is {row.confidence!r}; use {', '.join(_CONFIDENCES)}; address checks set the other values"
    if is_ai and row.ai_source is None:
        yield f"ai_source is missing; name the AI product, since agent_kind is {row.agent_kind!r}"
    if row.ai_source is not None and not is_ai:
        yield f"ai_source is {row.ai_source!r}, but agent_kind {row.agent_kind!r} is not AI; correct one of them"
    for method in row.verify:
        way, _, name = method.partition(":")
        if way == "ip" and isinstance(row, OwnAgent) and name not in {one.name for one in load(IpList, "ip_lists")}:
            yield f"verify has {method!r}, but no address list has the name {name!r}; remove it"


@cache
def _people() -> frozenset[str]:
    """Return people's user agents: the examples in the tables."""
    examples = {row.example for row in load(Browser, "browsers")} | {row.example for row in load(Device, "devices")}
    examples |= {row.example for row in load(Lifetime, "lifetimes")}
    return frozenset(examples | {row.example for row in load(NotCrawler, "notcrawlers")})
