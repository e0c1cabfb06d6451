"""Notebooks get the API's answers as Arrow tables, and can run custom SQL for one organization."""

import os
import re
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from data import BadInput, Lake
from data.rules.releases import BrowserReleases
from queries import ENTRIES, InvalidParameter, QueryFailed, Reader, Scope, Warehouse, open_lake, template_entries
from service.demo.sample import Sample
from tests.recount import judged, recount
from tests.support.forks import ROOT
from tests.support.relog import read_log
from tests.support.tables import examples_at_once
from tests.support.visits import land, links, visit

TODAY = date(2026, 3, 8)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The folder of a lake with two organizations; acme has a link and two kinds of visits."""
    lake = Lake(tmp_path_factory.mktemp("notebook") / "lake", create=True)
    crawler = {"bot_category": "ai_training", "agent": "GPTBot", "ai_source": "ChatGPT", "agent_kind": "training"}
    land(lake, "acme", [visit(short_code="sale"), visit(short_code="sale", **crawler), visit(path="/other")])
    land(lake, "bee", [visit(path="/bee")])
    links(lake, "acme", [{"short_code": "sale", "target_url": "https://shop.example/"}])
    lake.manifest.close()
    return lake.root


@pytest.fixture(scope="module")
def reader(root):
    with Reader(Lake(root, must_write=False), clock=lambda: datetime.combine(TODAY, time(12), UTC)) as reader:
        yield reader


def rows_of(tables):
    return {name: rows_of(part) for name, part in tables.items()} if isinstance(tables, dict) else tables.to_pylist()


def as_tables(entry, answer):
    """Convert a warehouse's answer, turning a single row into a list of one row."""
    if entry.shape == "parts":
        return {name: as_tables(part, answer[name]) for name, part in entry.members}
    return answer if isinstance(answer, list) else [answer]


@pytest.fixture(scope="module")
def warehouse(root):
    lake = Lake(root, must_write=False)
    with closing(lake.manifest), closing(Warehouse(lake)) as warehouse:
        yield warehouse


@pytest.mark.parametrize("name", ENTRIES)
def test_every_answer_is_a_table_with_the_rows_of_the_api(reader, warehouse, name):
    scope = Scope("acme", date(2026, 3, 2), TODAY)
    expected = as_tables(ENTRIES[name], warehouse.answer(ENTRIES[name], warehouse.snapshot(scope)))
    assert rows_of(reader.query(name, organization="acme", range="7d")) == expected


@pytest.mark.parametrize("name", ["top-links", "ai-sources", "traffic-overview"])
def test_a_table_without_rows_has_its_columns(reader, name):
    hint = (
        "acme has no visits from 2020-01-01 to 2020-01-02: its visits are from 2026-03-04 to 2026-03-04; use start_date"
    )
    with pytest.warns(UserWarning, match=hint) as warned:
        table = reader.query(name, organization="acme", start_date="2020-01-01", end_date=date(2020, 1, 2))
    assert [one.filename for one in warned] == [__file__]
    assert isinstance(table, pa.Table)
    (entry,) = template_entries(ENTRIES[name])
    assert table.column_names == [field.name for field in entry.fields]


def test_parameters_have_the_same_meaning_as_in_the_api(reader):
    def visits(**parameters):
        return reader.query("traffic-overview", organization="acme", **parameters)["total_visits"].to_pylist()

    assert visits(range="7d") == visits(start_date=date(2026, 3, 4), end_date="2026-03-04") == [3]
    assert visits(short_code="sale") == visits(target_url="HTTPS://SHOP.EXAMPLE") == [2]
    assert visits(domain="Go.Example:443") == [3]
    bots = reader.query("bot-traffic", organization="acme", traffic_type="training-crawler")
    assert bots["agent"].to_pylist() == ["GPTBot"]


@examples_at_once("arguments", "message")
def test_unsupported_queries_are_rejected_with_a_remedy(reader, arguments, message):
    with pytest.raises(BadInput, match=re.escape(message)):
        reader.query(**{"name": "devices", "organization": "acme"} | arguments)


def test_an_invalid_value_is_rejected_as_in_the_api(reader):
    with pytest.raises(InvalidParameter, match=r"The parameter range has the unknown value '5d'. Use one of 7d, 30d"):
        reader.query("devices", organization="acme", range="5d")


def test_custom_sql_reads_only_the_visits_in_its_scope(root, reader):
    select = "SELECT path FROM visits_in_scope ORDER BY path"
    assert reader.sql(select, organization="acme")["path"].to_pylist() == ["/", "/", "/other"]
    assert reader.sql(select, organization="acme", short_code="sale")["path"].to_pylist() == ["/", "/"]
    assert reader.sql(select, organization="bee")["path"].to_pylist() == ["/bee"]
    (file,) = root.glob("visits/organization=bee/*/*.parquet")
    for text in (f"FROM read_parquet('{file}')", "CREATE TABLE t AS SELECT 1", "SELECT 1; SELECT 2"):
        with pytest.raises(QueryFailed):
            reader.sql(text, organization="acme")
    with pytest.raises(BadInput, match="the lake has no visits for 'cow'; it has visits for acme, bee"):
        reader.sql(select, organization="cow")


def test_a_folder_without_a_lake_is_rejected_and_unchanged(tmp_path):
    with pytest.raises(BadInput, match="no lake"):
        open_lake(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


def test_the_example_in_the_manual_turns_a_log_into_a_chart(tmp_path):
    today = datetime.now(UTC).date()
    Sample(900, today - timedelta(1), 20, links=30).write(tmp_path / "access.log")
    walk = "".join((ROOT / "queries/notebooks.md").read_text("utf-8").partition("lake.close()\n```\n")[:2])
    (shell,) = re.findall(r"^```sh\n(.*?)^```", walk, re.DOTALL | re.MULTILINE)
    cells = re.findall(r"^```python\n(.*?)^```", walk, re.DOTALL | re.MULTILINE)
    commands = re.sub("uv run |/var/log/nginx/", "", shell)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    runs = [
        subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False,
            env={"PATH": path, "PYTHONPATH": str(ROOT)},
        )
        for command in (["sh", "-ec", commands], [sys.executable, "-c", "".join(cells)])
    ]  # fmt: skip
    run = runs[-1]
    assert runs[0].returncode == 0, runs[0].stderr
    assert (run.returncode, run.stderr) == (0, "")

    visits = judged(read_log(tmp_path / "access.log", "acme", "go.example.com"), BrowserReleases())
    scope = Scope("acme", today - timedelta(29), today)
    days = recount("time-series", visits, scope)
    people = [(row["date"], row["human_clicks"]) for row in days]
    chart = ElementTree.parse(tmp_path / "people.svg").getroot()
    assert [bar[0].text for bar in chart] == [f"{day}: {visits} visits by people" for day, visits in people]
    assert [int(bar.attrib["height"]) for bar in chart] == [visits for _, visits in people]
    last, *paths = run.stdout.splitlines()
    assert f"'human_clicks': {people[-1][1]}" in last
    expected = recount("paths", visits, replace(scope, traffic_type="ai"))[:5]
    assert paths == [f"{row['path']} {row['visits']}" for row in expected]
