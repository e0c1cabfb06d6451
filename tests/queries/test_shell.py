"""DuckDB's own shell returns the same rows for the same templates, after the script that `traffic views` prints.

Every template is run in the first two scopes, but only every sixth in the others, which differ only in their scripts,
unless `TRAFFIC_FAULTS=all` is set.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from data import BOT_CATEGORIES, Lake
from queries import RollupBuilder, Scope, Snapshot, TrafficValue, Warehouse, script, template
from tests.faults.trials import IS_LONG
from tests.support.sql import TEXTS
from tests.support.visits import land, links, visit

SHELL = Path(sys.executable).parent / "duckdb"
SUBJECT = {
    "number": 0, "domain": "bücher.example", "path": "/it's", "short_code": None, "agent": "Claude-User",
    "operator": None, "ai_source": None,
}  # fmt: skip
DAYS = (date(2026, 2, 27), date(2026, 3, 9))
SCOPES = {
    "all": Scope("it-s_7", *DAYS),
    "filtered": Scope("it-s_7", *DAYS, short_code="a'b", domain="bücher.example", traffic_type="ai"),
    "without a domain": Scope("it-s_7", *DAYS, no_domain=True),
    "nobody": Scope("nobody", *DAYS),
}
FEW_ASKED = () if IS_LONG else ("without a domain", "nobody")

pytestmark = pytest.mark.skipif(not SHELL.exists(), reason="duckdb-cli of the dev dependencies is not installed")


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    lake = Lake(tmp_path_factory.mktemp("lake") / "the analyst's", create=True)
    visits = [
        visit(
            bot_category=category, visited_at=datetime(2026, 3, day, 5, 59, 59, 999_999), visitor=-(2**63) + day % 2,
            ai_source=source, agent=source, short_code=code, domain="bücher.example", country=country, utm_term=code,
            status=404, path=f"/{code}", confidence="high",
        )
        for category in BOT_CATEGORIES
        for day, source, code, country in ((2, "ChatGPT", "a'b", "CI"), (8, None, 'a"b', None), (9, "", None, "DE"))
    ]  # fmt: skip
    visits += [
        visit(
            bot_category="ai_assistant", agent="Claude-User", visited_at=datetime(2026, 3, 2 + number % 2),
            domain="bücher.example", path="/it's", confidence="verified", status=status,
        )
        for number in range(20)
        for status in (404, 403, 403, 502)
    ]  # fmt: skip
    land(lake, "it-s_7", [row for row in visits if row["day"].day != 9])
    RollupBuilder(lake).run()
    land(lake, "it-s_7", [row for row in visits if row["day"].day == 9])  # the only day without a rollup
    links(lake, "it-s_7", [{"short_code": "a'b", "target_url": "https://shop.example/it's"}])
    values = [TrafficValue(category, 1_234, "EUR's") for category in BOT_CATEGORIES]
    warehouse = Warehouse(lake, values)
    yield warehouse
    warehouse.close()
    lake.manifest.close()


class Prepared(NamedTuple):
    """One scope: the snapshot for the script, and the shell's rows for each template that is run in it."""

    snapshot: Snapshot
    in_shell: dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module", params=SCOPES)
def prepared(request, warehouse: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    snapshot = replace(warehouse.snapshot(SCOPES[request.param]), subjects=[SUBJECT])
    file = tmp_path_factory.mktemp("script") / "prelude.sql"
    file.write_text(script(snapshot), "utf-8")
    names = [*TEXTS][:: 6 if request.param in FEW_ASKED else 1]
    return Prepared(snapshot, dict(zip(names, in_shell(file, map(template, names)), strict=True)))


def test_the_duckdb_shell_returns_the_same_rows(warehouse, prepared):
    for name, said in prepared.in_shell.items():
        answer = warehouse.answer(TEXTS[name], prepared.snapshot)
        rows = [answer] if isinstance(answer, dict) else answer
        shown_rows = [{field: shown(value) for field, value in row.items()} for row in rows]
        assert (name, said) == (name, shown_rows)


@pytest.mark.parametrize("prepared", ["all"], indirect=True)
def test_detectors_and_measures_return_rows_in_the_shell(prepared):
    names = ("broken_link", "broken_link.measure", "blocked_agent", "server_errors")
    assert [name for name in names if not prepared.in_shell[f"jobs/{name}"]] == []


def in_shell(file: Path, statements: Iterable[str]) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of each template in one shell that is started with a script."""
    command = [SHELL, "-bail", "-init", file, "-json", "-c", "\n".join(statements)]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    left = ran.stdout.strip()
    while left:
        rows, end = json.JSONDecoder().raw_decode(left)
        yield rows
        left = left[end:].strip()


def shown(value: Any) -> Any:
    """Return a value as the shell writes it in JSON: a day or a time is a string."""
    return str(value) if isinstance(value, date) else value
