"""`traffic export`: one file for each endpoint and day, whole or not there, and never written for nothing."""

import csv
import io
import re
import signal
from datetime import datetime, timedelta

import duckdb
import pyarrow.parquet as pq
import pytest

from queries import ENTRIES, Reader, template_entries
from tests.support.forks import ROOT
from tests.support.visits import land, visit

FORMULA = '=HYPERLINK("https://evil.example")'
AGES = (9, 3, 2, 1)
"""How many days ago acme had visits, beside today."""
MANUAL = ROOT / "service/commands/README.md"
SOME = {"devices": 1, "weekly-trend": 2}
"""Endpoints that are quick to answer, with the number of files of each."""
NAMES = len([leaf for name in ENTRIES if name != "dashboard" for leaf in template_entries(ENTRIES[name])])


@pytest.fixture(scope="module")
def ago(today):
    """The day that was so many days ago."""
    return lambda days: today - timedelta(days=days)


@pytest.fixture(scope="module")
def shared_lake(shared_lake, ago):
    """Visits of today and of four days before, of one organization, and of another one yesterday."""
    for number, age in enumerate([*AGES, 0], 1):
        moment = datetime(*ago(age).timetuple()[:3])
        land(
            shared_lake,
            "acme",
            [visit(visited_at=moment, short_code=f"code-{number}", path='/a,"b', utm_campaign=FORMULA)] * number,
        )
    land(shared_lake, "bee", [visit(visited_at=datetime(*ago(1).timetuple()[:3]))])
    return shared_lake


@pytest.fixture
def export(traffic, shared_lake, tmp_path):
    """Exports acme's answers into a folder."""
    return lambda *flags: traffic("export", "--org", "acme", "--to", tmp_path / "to", *flags)


def files_in(folder):
    """The path and the bytes of every file in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def place(name, day, suffix="parquet"):
    return f"{name}/organization=acme/day={day}/rows.{suffix}"


def test_yesterday_is_one_file_for_each_endpoint_with_the_rows_of_the_api(export, shared_lake, ago, tmp_path):
    assert export("--range", "yesterday").code == 0
    assert len(files_in(tmp_path / "to")) == NAMES
    reader = Reader(shared_lake)
    for name, entry in ENTRIES.items():
        if name == "dashboard":
            continue
        answer = reader.query(name, organization="acme", start_date=ago(1), end_date=ago(1))
        for part, table in (answer if entry.members else {"": answer}).items():
            written = pq.ParquetFile(tmp_path / "to" / place(f"{name}/{part}".rstrip("/"), ago(1))).read()
            assert (written.column_names, written.to_pylist()) == (table.column_names, table.to_pylist())


def test_a_csv_file_has_the_bytes_that_a_query_prints_and_a_formula_is_text_unless_it_is_raw(
    export, traffic, ago, tmp_path
):
    for flags, text in ((), f"'{FORMULA}"), (("--raw",), FORMULA):
        assert export("--endpoints", "utm-campaigns,ai-sources", "--format", "csv", "--again", *flags).code == 0
        written = files_in(tmp_path / "to")
        body = written[place("utm-campaigns", ago(1), "csv")]
        assert [row["utm_campaign"] for row in csv.DictReader(io.StringIO(body.decode()))] == [text]
        days = ("--start-date", ago(1), "--end-date", ago(1))
        printed = traffic("query", "utm-campaigns", "--org", "acme", *days, "--format", "csv", *flags)
        assert printed.out.encode() == body
        empty = b"ai_source,visits,percentage,agent_fetches,ai_referrals\r\n"
        assert written[place("ai-sources", ago(1), "csv")] == empty


def test_folders_are_read_as_one_table(export, ago, tmp_path):
    export("--all", "--endpoints", "top-links")
    section = MANUAL.read_text("utf-8").partition("\n## Files for other programs\n")[2].partition("\n## ")[0]
    (query,) = re.findall(r"^```sql\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    rows = duckdb.sql(query.replace("exports/", f"{tmp_path / 'to'}/")).fetchall()
    assert rows == [(ago(age), f"code-{number}", number) for number, age in enumerate(AGES, 1)]


KILLED = """
import itertools, os, signal
import data.disk.files as files

calls, name = itertools.count(), {name!r}
original = getattr(files, name)
def killing(*arguments, **flags):
    if next(calls) == {call}:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*arguments, **flags)
setattr(files, name, killing)
"""


@pytest.mark.parametrize(("name", "call", "output"), [("sync", 16, "parquet"), ("move_durably", 6, "csv")])
def test_an_export_that_is_killed_between_two_steps_leaves_whole_files_and_goes_on(
    export, forks, shared_lake, tmp_path, name, call, output
):
    flags = ("--all", "--endpoints", ",".join(SOME), "--format", output)
    words = ("export", "--org", "acme", "--to", tmp_path / "to", "--lake", shared_lake.root, *flags)
    run = forks.start(*words, before=KILLED.format(name=name, call=call))
    _, told = run.communicate()
    assert run.returncode == -signal.SIGKILL, told
    # what was written is whole and stays, the next run adds the rest only, and one that nobody kills writes the same
    left = {path: body for path, body in files_in(tmp_path / "to").items() if not path.startswith(".")}
    assert len(left) > 0
    assert export(*flags).code == 0
    whole = files_in(tmp_path / "to")
    assert len(whole) == sum(SOME.values()) * len(AGES)
    assert left.items() <= whole.items()
    assert export(*flags, "--again").err.endswith(f"{len(whole)} files written, 0 kept.\n")
    assert files_in(tmp_path / "to") == whole
