"""The generated parts of the documents, and operators.sql. `uv run python -m tests.support.docs` writes them.

A generated part is between `<!-- name: … -->` and `<!-- end -->`; test_docs.py fails if a part is out of date.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

from data import visits
from data.logs.reported import Reported
from data.rules.tables import Agent, load
from data.signals import CONVICTING, REASONS_ASIDE, REQUEST_FACTS, SIGNALS
from queries import CATALOG, DETECTORS
from service.core.settings import SETTINGS

ROOT: Final = Path(__file__).parent.parent.parent
README: Final = ROOT / "README.md"
HOUSE: Final = ROOT / "HOUSE.md"
FLOORS: Final = tuple(ROOT / floor / "README.md" for floor in ("data", "queries", "service"))
HOOKS: Final = ROOT / "service/hooks/README.md"
BENCHMARKS: Final = ROOT / "benchmarks/README.md"
TESTS: Final = ROOT / "tests/README.md"
ROOMS: Final = tuple(path for floor in FLOORS for path in sorted(floor.parent.rglob("*.md")) if path != floor)
DOCUMENTS: Final = (README, HOUSE, *FLOORS, *ROOMS, BENCHMARKS, TESTS, ROOT / "CHANGELOG.md")
"""The documents whose commands, links, settings and sizes are checked, in the order in which their commands are run."""

REQUIREMENTS: Final = ROOT / "traffic-requirements.txt"
"""The packages that an installed program needs, with hashes; `python .ci/pin` writes it."""


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = tuple(heads)
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join("|" + "|".join(f" {cell} " if cell != "---" else cell for cell in line) + "|" for line in lines)


def endpoint_table() -> str:
    rows = [(f"`{entry.name}`", first_sentence(entry.description)) for entry in CATALOG]
    return table(("under `/analytics/`", "answer"), rows)


def first_sentence(text: str) -> str:
    """Return text up to its first full stop."""
    return re.match(r".*?\.(?= |$)", text)[0]


def setting_table() -> str:
    return table(
        ("variable", "default", "meaning"),
        ((f"`{one.variable}`", f"`{one.default}`" if one.default else "", one.meaning) for one in SETTINGS),
    )


def category_table() -> str:
    kinds = {category: [] for category in visits.BOT_CATEGORIES}
    for kind, category in visits.CATEGORY_OF_KIND.items():
        kinds[category].append(f"`{kind}`")
    rows = ((f"`{category}`", counted_as(category), ", ".join(kinds[category])) for category in kinds)
    return table(("bot_category", "counts as", "agent_kind"), rows)


def counted_as(category: str) -> str:
    return "AI" if category in visits.AI_CATEGORIES else "other" if category in visits.OTHER_CATEGORIES else "human"


def detector_table() -> str:
    rows = []
    for detector in DETECTORS.values():
        title = re.split(r":? \{| on \{", detector.title)[0]
        rows.append((f"`{detector.type}`", f"[{title}]({detector.entry.name.removeprefix('jobs/')}.sql)"))
    return table(("type", "title of its jobs"), rows)


def reported_table() -> str:
    fields = msgspec.json.schema(Reported)["$defs"]["Reported"]["properties"]
    return table(("field", "meaning"), ((f"`{name}`", field["description"]) for name, field in fields.items()))


def signal_table() -> str:
    rows = ((f"`{row.name}`", str(row.bit), row.set_at, "yes" * row.convicts, row.meaning) for row in SIGNALS)
    return table(("signal", "bit", "set at", "convicts", "meaning"), rows)


def fact_table() -> str:
    return table(("fact", "bit", "meaning"), ((f"`{row.name}`", str(row.bit), row.meaning) for row in REQUEST_FACTS))


def reason_table() -> str:
    return table(("reason", "bit", "meaning"), ((f"`{row.name}`", str(row.bit), row.meaning) for row in REASONS_ASIDE))


HOURS: Final = {
    "Spark": "(60 * hour(visited_at) + minute(visited_at) + coalesce(utc_offset, 0) + 1440) % 1440 div 60",
    "DataFusion": "(60 * date_part('hour', visited_at) + date_part('minute', visited_at)"
    " + coalesce(utc_offset, 0) + 1440) % 1440 / 60",
    "ClickHouse": "intDiv((60 * toHour(visited_at, 'UTC') + toMinute(visited_at, 'UTC')"
    " + coalesce(utc_offset, 0) + 1440) % 1440, 60)",
}
"""The local hour of a visit, in the SQL of each engine that reads a published copy."""


def expression_table() -> str:
    convicted = dict.fromkeys(HOURS, f"(signals & {CONVICTING})") | {"ClickHouse": f"bitAnd(signals, {CONVICTING})"}
    is_disguised = {
        name: f"bot_category IN ('human', 'ai_referral') AND {bits} <> 0" for name, bits in convicted.items()
    }
    rows = (
        (name, f"`{hour}`", f"`CASE WHEN {is_disguised[name]} THEN 'other_bot' ELSE bot_category END`")
        for name, hour in HOURS.items()
    )
    return table(("engine", "hour", "class"), rows)


BLOCKS: Final[dict[str, Callable[[], str]]] = {
    "endpoints": endpoint_table,
    "settings": setting_table,
    "categories": category_table,
    "signals": signal_table,
    "facts": fact_table,
    "reasons": reason_table,
    "expressions": expression_table,
    "detectors": detector_table,
    "reported": reported_table,
}
_BLOCK: Final = re.compile(r"(<!-- (\w+): .*? -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def generated(text: str) -> str:
    """Return the text of a document with its generated parts updated from the code."""
    return _BLOCK.sub(lambda found: f"{found[1]}{BLOCKS[found[2]]()}\n{found[4]}", text)


OPERATORS: Final = ROOT / "queries/names/operators.sql"


def operators_sql() -> str:
    """Return the SQL that creates the table of operators: the names of AI agents and AI sources that differ from the
    name of their operator, each with the operator."""
    known = [row for row in load(Agent, "agents") if row.ai_source and row.operator != "unknown"]
    named = {(name, row.operator) for row in known for name in (row.agent, row.ai_source)}
    rows = sorted((row for row in named if row[0] not in {row[1], "Other AI"}), key=lambda row: row[0].lower())
    lines = "".join(f"    ('{name}', '{operator}'),\n" for name, operator in rows)
    return (
        "-- The operator of an AI agent or an AI source, by its name, if the operator has another name.\n"
        "-- Written from data/rules/agents.toml, which has the evidence, by `uv run python -m tests.support.docs`.\n"
        "CREATE TABLE operators AS SELECT * FROM (VALUES\n"
        + lines.removesuffix(",\n")
        + "\n) AS names(name, operator);\n"
    )


if __name__ == "__main__":
    OPERATORS.write_text(operators_sql(), "utf-8")
    for document in DOCUMENTS:
        document.write_text(generated(document.read_text("utf-8")), "utf-8")
