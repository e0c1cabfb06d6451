"""The parts of the documents that are generated from the code. `uv run python -m tests.docs` writes them.

A generated part stands between `<!-- name: … -->` and `<!-- end -->`; test_docs.py fails when one is out of date.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from data import visits
from data.logs.reported import SCHEMA as REPORTED
from queries import CATALOG, JOBS, Entry
from service.settings import SETTINGS

ROOT: Final = Path(__file__).parent.parent
README: Final = ROOT / "README.md"
FLOORS: Final = tuple(ROOT / floor / "README.md" for floor in ("data", "queries", "service"))
DOCUMENTS: Final = (README, *FLOORS, *sorted(ROOT.glob("benchmarks/*.md")), ROOT / "CHANGELOG.md")
"""The documents whose commands, links and settings are checked."""

RELATIONS: Final = ("relations", "daily", "monthly")
"""The folders of queries/ in which relations are defined."""


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = tuple(heads)
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join("|" + "|".join(f" {cell} " if cell != "---" else cell for cell in line) + "|" for line in lines)


def endpoint_table() -> str:
    answers = [*((f"/analytics/{entry.name}", entry) for entry in CATALOG), ("/jobs", JOBS)]
    return table(
        ("path", "answer", "fields"), ((f"`{path}`", entry.description, fields_of(entry)) for path, entry in answers)
    )


def fields_of(entry: Entry) -> str:
    names = [name for name, _ in entry.members] if entry.shape == "parts" else [field.name for field in entry.fields]
    return ", ".join(f"`{name}`" for name in names)


def setting_table() -> str:
    return table(
        ("variable", "default", "meaning"),
        ((f"`{one.variable}`", f"`{one.default}`" if one.default else "", one.meaning) for one in SETTINGS),
    )


def column_table() -> str:
    """From `data.visits.COLUMNS`, which says what a column means, or from the schema where there is no such table."""
    if columns := getattr(visits, "COLUMNS", None):
        return table(("column", "type", "meaning"), ((f"`{one.name}`", f"{one.type}", one.meaning) for one in columns))
    return table(("column", "type"), ((f"`{field.name}`", f"{field.type}") for field in visits.VISITS))


def relation_table() -> str:
    files = [path for folder in RELATIONS for path in sorted((ROOT / "queries" / folder).glob("*.sql"))]
    return table(("relation", "what it counts"), ((f"`{path.stem}`", first_comment(path)) for path in files))


def first_comment(path: Path) -> str:
    """The sentence in the comment lines with which a SQL file begins."""
    lines = re.match(r"(?:--.*\n)+", path.read_text("utf-8"))[0].splitlines()
    return " ".join(line.removeprefix("--").strip() for line in lines if not line.startswith("-- Serves:"))


def reported_table() -> str:
    return table(
        ("field", "meaning"), ((f"`{name}`", field["description"]) for name, field in REPORTED["properties"].items())
    )


BLOCKS: Final[dict[str, Callable[[], str]]] = {
    "endpoints": endpoint_table,
    "settings": setting_table,
    "columns": column_table,
    "relations": relation_table,
    "reported": reported_table,
}
_BLOCK: Final = re.compile(r"(<!-- (\w+): .*? -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def generated(text: str) -> str:
    """The text of a document with its generated parts as the code has them now."""
    return _BLOCK.sub(lambda found: f"{found[1]}{BLOCKS[found[2]]()}\n{found[4]}", text)


if __name__ == "__main__":
    for document in DOCUMENTS:
        document.write_text(generated(document.read_text("utf-8")), "utf-8")
