"""`traffic import` beside the clock and other programs; what it prints otherwise is in transcripts/import.txt."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from data.ingest.importer import Importer, Options
from data.logs.formats import FORMATS
from data.maintenance import erasure
from queries import DEFAULT_RANGE, RANGES
from service.commands.importing import OLD
from tests.support.lakes import rows_of
from tests.support.user_agents import CHROME

pytestmark = pytest.mark.usefixtures("one_reader")


@pytest.fixture
def run(lake, tmp_path, traffic):
    """Runs `traffic import` on a text; what it told, and its exit code."""

    def run(text, *flags):
        path = tmp_path / "access.log"
        path.write_text(text, "utf-8")
        flags = ("--org", "acme", "--domain", "go.example", *flags)
        code, printed, told = traffic("import", path, *flags)
        assert printed == ""
        return told, code

    return run


def line(path, at=datetime(2026, 3, 4, 10, 5, 3)):
    return f'203.0.113.7 - - [{at:%d/%b/%Y:%H:%M:%S} +0000] "GET {path} HTTP/1.1" 200 5 "-" "{CHROME}"\n'


def test_lines_of_the_day_after_tomorrow_are_counted_and_not_read(lake, run):
    now = datetime.now(UTC)
    told, code = run("".join(line("/a", now + timedelta(hours=hours)) for hours in (-1, 23, 25, 50)))
    assert (code, "2 visits imported from 4 lines" in told) == (0, True)
    assert "  2 lines not read" in told
    assert "the first is line 3: more than a day in the future\n" in told
    assert "  2 lines of them more than a day in the future: check the clock" in told
    assert "warning" not in told


@pytest.mark.parametrize("flags", [["--dry-run"], []])
def test_an_import_and_its_dry_run_warn_of_old_visits_and_name_the_range_that_has_them(run, flags):
    assert timedelta(days=RANGES[DEFAULT_RANGE]) == OLD
    recent = datetime.now(UTC) - timedelta(days=60)
    warning = "warning: its newest visit is older than the default range of queries, 30d: ask with "
    told, code = run(line("/go/abc") * 19 + line("/abc"), *flags)
    assert (code, "few of its paths" in told) == (0, False)  # 5 % are enough
    assert f"{warning}--start-date 2026-03-04 --end-date 2026-03-04\n" in told
    told, _ = run(line("/abc", recent), *flags)
    assert f"{warning}--range 90d or --start-date {recent:%Y-%m-%d} --end-date {recent:%Y-%m-%d}\n" in told


def test_a_log_that_landed_without_a_domain_is_erased_and_lands_again_with_one(
    lake, run, traffic, tmp_path, monkeypatch
):
    monkeypatch.setattr(erasure, "GRACE", timedelta(0))
    (tmp_path / "access.log").write_text(line("/a"))
    Importer(lake).run(tmp_path / "access.log", Options("acme"))  # where none was asked for
    assert "already imported, without a domain, nothing changed" in run(line("/a"))[0]
    told, code = run(line("/a"), "--again")
    (command,) = re.findall("`traffic (erase --org acme .*?)`", told)
    assert (code, command) == (2, "erase --org acme --no-domain --since 2026-03-04 --before 2026-03-05")
    assert traffic(*command.split(), "--yes").code == 0
    told, code = run(line("/a"), "--again")
    assert (code, "1 visit imported from 1 line" in told) == (0, True)
    assert [(row["domain"], row["path"]) for row in rows_of(lake)] == [("go.example", "/a")]


def test_the_help_names_every_format_and_shows_how_logs_are_described(traffic):
    told = " ".join(traffic("import", "--help").out.split())
    assert [name for name in (*FORMATS, "$remote_addr [$time_local]", "time=ts,ip=") if name not in told] == []
