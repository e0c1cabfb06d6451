"""Setting files aside while visits are written; the output of `traffic files` is in transcripts/exclusions.txt."""

from contextlib import closing
from datetime import date, datetime

import pytest

from data.ingest.importer import Importer, Options
from data.rules.own_rules import checked_exclusion
from data.signals import BEHAVIOUR_VERSION
from queries import ENTRIES, RollupBuilder, Scope, Warehouse
from service.exclusions.files import switch_files
from tests.recount import recount
from tests.support.lakes import files_of, read
from tests.support.user_agents import CHROME
from tests.support.visits import land, visit

DAYS = date(2026, 1, 1), date(2026, 1, 8)
PATHS = ("/sale", "/a.css", "/img/b.png", "/page", "/c.js")


def log_of(name, lines):
    return "".join(
        f'203.0.113.{number % 9} - - [{1 + number % 8:02}/Jan/2026:10:05:03 +0000] '
        f'"GET /{name}{PATHS[number % 5]} HTTP/1.1" 200 5 "-" "{CHROME}"\n'
        for number in range(lines)
    )  # fmt: skip


def stored(lake):
    return [
        row | {"organization": "acme", "day": file.day} for file in files_of(lake, "acme") for row in read(lake, file)
    ]


def overview(lake, scope=None):
    with closing(Warehouse(lake)) as warehouse:
        return warehouse.answer(ENTRIES["traffic-overview"], warehouse.snapshot(scope or Scope("acme", *DAYS)))


def test_a_switch_during_imports_counts_each_visit_once(lake, forks, tmp_path):
    old = {"short_code": None, "rules_version": "old"}
    land(lake, "acme", [
        visit(visited_at=datetime(2026, 1, 1 + number % 8, 9), path=PATHS[number % 5], **old) for number in range(400)
    ])  # fmt: skip
    logs = [tmp_path / f"{name}.log" for name in ("one", "two")]
    for log in logs:
        log.write_text(log_of(log.stem, 5_000))
    commands = [
        ["import", log, "--org", "acme", "--domain", "go.example", "--lake", lake.root] for log in logs
    ]  # fmt: skip
    commands.insert(1, ["files", "aside", "--org", "acme", "--yes", "--lake", lake.root])
    running = [forks.start(*words) for words in commands]
    told = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], told
    expected = recount("traffic-overview", stored(lake), Scope("acme", *DAYS), files_aside=True)
    assert overview(lake) == expected
    assert (len(stored(lake)), expected["total_visits"]) == (10_400, 10_400 * 2 // 5)


@pytest.mark.parametrize("counted_before", [False, True], ids=["from visits", "from rollups"])
def test_rules_for_networks_agents_and_paths_leave_out_visits(lake, tmp_path, counted_before):
    rules = [("address", "203.0.113.8"), ("agent", "kuma"), ("path", "/log/page")]
    for rule in rules:
        lake.manifest.exclusions.add("acme", checked_exclusion(*rule))
    log = tmp_path / "access.log"
    log.write_text(log_of("log", 400) + log_of("log", 40).replace(CHROME, "Uptime-Kuma/1.23"))
    importer = Importer(lake)
    importer.run(log, Options("acme", "go.example"))
    importer.readers.close()
    lines = log.read_text().splitlines()
    left = [line for line in lines if not any(own in line for own in ("203.0.113.8 ", "Kuma", "/log/page "))]
    if counted_before:
        assert RollupBuilder(lake).run() == 1
    assert overview(lake)["total_visits"] == len(left) < len(lines)


def test_closed_days_are_counted_before_the_switch_returns(lake):
    land(lake, "acme", [visit(path="/a.css", short_code=None), visit(path="/sale")])
    switch_files(lake, "acme", aside=True)
    assert RollupBuilder(lake).run() == 0
    assert lake.manifest.rollups.all_live("acme") != []


def test_days_that_the_switch_marks_are_judged(lake):
    land(lake, "acme", [visit(path="/a.css", short_code=None, rules_version="old"), visit(path="/sale")])
    switch_files(lake, "acme", aside=True)
    assert {file.behaviour_version for file in files_of(lake, "acme")} == {BEHAVIOUR_VERSION}


def test_an_organization_sets_only_its_own_files_aside(lake):
    for organization in ("acme", "bee"):
        land(lake, organization, [visit(path="/a.css", short_code=None, visited_at=datetime(2026, 1, 2))])
    switch_files(lake, "acme", aside=True)
    totals = [overview(lake, Scope(name, *DAYS))["total_visits"] for name in ("acme", "bee")]
    assert totals == [0, 1]
