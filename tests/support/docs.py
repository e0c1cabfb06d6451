"""The generated parts of the documents. `uv run python -m tests.support.docs` writes them.

A generated part stands between `<!-- name: … -->` and `<!-- end -->`; test_docs.py fails when one is out of date.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from data import visits
from data.logs.reported import SCHEMA as REPORTED
from data.signals import SIGNALS
from data.visits import COLUMNS
from queries import CATALOG, DETECTORS, PARAMETERS, Entry, meaning_of, relations
from queries.prelude import sql_text
from service.http.operations import OPERATIONS
from service.jobs.records import JobRow
from service.outgoing.connection import ERRORS
from service.settings import SETTINGS

ROOT: Final = Path(__file__).parent.parent.parent
README: Final = ROOT / "README.md"
FLOORS: Final = tuple(ROOT / floor / "README.md" for floor in ("data", "queries", "service"))
HOOKS: Final = ROOT / "service/hooks/README.md"
DEPLOY: Final = ROOT / "service/deploy/README.md"
DOCUMENTS: Final = (README, *FLOORS, HOOKS, DEPLOY, ROOT / "benchmarks/README.md", ROOT / "CHANGELOG.md")
"""The documents whose commands, links and settings are checked."""

REQUIREMENTS: Final = ROOT / "traffic-requirements.txt"
"""What an installed program needs, with hashes; `python .ci/pin` writes it."""


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = tuple(heads)
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join("|" + "|".join(f" {cell} " if cell != "---" else cell for cell in line) + "|" for line in lines)


def endpoint_table() -> str:
    rows = [(f"`/analytics/{entry.name}`", entry.description, fields_of(entry)) for entry in CATALOG]
    listed = next(one for one in OPERATIONS if one.route == "GET /jobs")
    fields = ", ".join(f"`{name}`" for name in JobRow.__struct_fields__)
    return table(("path", "answer", "fields"), [*rows, ("`/jobs`", listed.summary, fields)])


def fields_of(entry: Entry) -> str:
    names = [name for name, _ in entry.members] if entry.shape == "parts" else [field.name for field in entry.fields]
    return ", ".join(f"`{name}`" for name in names)


def parameter_table() -> str:
    return table(("parameter", "meaning"), ((f"`{one.name}`", one.description) for one in PARAMETERS.values()))


def setting_table() -> str:
    return table(
        ("variable", "default", "meaning"),
        ((f"`{one.variable}`", f"`{one.default}`" if one.default else "", one.meaning) for one in SETTINGS),
    )


def column_table() -> str:
    return table(
        ("column", "type", "meaning"), ((f"`{one.name}`", f"{one.type}", meaning_of(one, "`")) for one in COLUMNS)
    )


def category_table() -> str:
    kinds = {category: [] for category in visits.BOT_CATEGORIES}
    for kind, category in visits.CATEGORY_OF_KIND.items():
        kinds[category].append(f"`{kind}`")
    rows = ((f"`{category}`", counted_as(category), ", ".join(kinds[category])) for category in kinds)
    return table(("bot_category", "counts as", "agent_kind"), rows)


def counted_as(category: str) -> str:
    return "AI" if category in visits.AI_CATEGORIES else "other" if category in visits.OTHER_CATEGORIES else "human"


def relation_table() -> str:
    return table(("relation", "what it contains"), ((f"`{name}`", meaning) for name, meaning in relations().items()))


def first_comment(path: Path) -> str:
    """The sentence in the comment lines with which a SQL file begins."""
    lines = re.match(r"(?:--.*\n)+", path.read_text("utf-8"))[0].splitlines()
    return " ".join(line.removeprefix("--").strip() for line in lines if not line.startswith("-- Serves:"))


def detector_table() -> str:
    files: dict[str, list[str]] = {}
    for detector in DETECTORS.values():
        files.setdefault(detector.entry.name, []).append(f"`{detector.type}`")
    return table(
        ("type", "what it finds"),
        (
            (", ".join(types), f"[{name}.sql]({name}.sql): {first_comment(ROOT / f'queries/{name}.sql')}")
            for name, types in files.items()
        ),
    )


def reported_table() -> str:
    return table(
        ("field", "meaning"), ((f"`{name}`", field["description"]) for name, field in REPORTED["properties"].items())
    )


def delivery_error_table() -> str:
    return table(("error", "meaning"), ((f"`{name}`", meaning) for name, meaning in ERRORS.items()))


def signal_table() -> str:
    macro = sql_text("prelude/2_signals").partition("CREATE MACRO weight_of")[2]
    words = {
        name: weight
        for weight, names in re.findall(r"-- (strong|weak): ([a-z_, ]+)", macro)
        for name in names.split(", ")
    }
    rows = ((f"`{row.name}`", str(row.bit), words.get(row.name, "none"), row.meaning) for row in SIGNALS)
    return table(("signal", "bit", "weight", "meaning"), rows)


BLOCKS: Final[dict[str, Callable[[], str]]] = {
    "endpoints": endpoint_table,
    "parameters": parameter_table,
    "settings": setting_table,
    "categories": category_table,
    "columns": column_table,
    "signals": signal_table,
    "relations": relation_table,
    "detectors": detector_table,
    "reported": reported_table,
    "errors": delivery_error_table,
}
_BLOCK: Final = re.compile(r"(<!-- (\w+): .*? -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def generated(text: str) -> str:
    """The text of a document with its generated parts as the code has them now."""
    return _BLOCK.sub(lambda found: f"{found[1]}{BLOCKS[found[2]]()}\n{found[4]}", text)


if __name__ == "__main__":
    for document in DOCUMENTS:
        document.write_text(generated(document.read_text("utf-8")), "utf-8")
