"""`traffic retain`: what it prints where, where it has its number of days from, and what is left."""

import re
import time
from datetime import UTC, datetime, timedelta

import pytest

from data.maintenance import erasure as erasing
from data.maintenance import retention as retaining
from service.commands import confirmation
from tests.service.commands.runs import refused
from tests.support.visits import land, visit

DAYS = {"start_date": "2026-03-02", "end_date": "2026-03-08"}


@pytest.fixture(autouse=True)
def grace(monkeypatch):
    """No wait, unless a test says otherwise."""
    for module in (erasing, retaining):
        monkeypatch.setattr(module, "GRACE", timedelta(0))
    monkeypatch.delenv("TRAFFIC_RETENTION_DAYS", raising=False)


@pytest.fixture
def retain(traffic, lake):
    """Runs `traffic retain` over the lake of a test."""
    return lambda *flags: traffic("retain", "--yes", "--lake", lake.root, *flags)


def days_ago(days):
    return (datetime.now(UTC) - timedelta(days=days)).replace(tzinfo=None)


@pytest.fixture
def filled(lake):
    """Old and young visits of two organizations, and young ones of a third."""
    for name, ages in (("acme", (40, 40, 39, 2)), ("other", (400, 0)), ("young", (1,))):
        land(lake, name, [visit(visited_at=days_ago(age)) for age in ages])
    return lake


def visits_of(lake):
    return {name: sum(file.visits for file in lake.manifest.live_files(name)) for name in lake.manifest.organizations()}


def table(out):
    return [re.split(r"\s{2,}", line.strip()) for line in out.splitlines()]


def test_the_table_goes_to_stdout_and_the_total_to_stderr(today, filled, retain):
    before = today - timedelta(days=30)
    rows = [["organization", "days", "visits", "files"], ["acme", "2", "3", "2"], ["other", "1", "1", "1"]]
    dry = retain("--days", 30, "--dry-run")
    assert (dry.code, table(dry.out)) == (0, rows)
    assert dry.err == f"4 visits of 2 organizations, all before {before}, would be deleted.\n"
    assert visits_of(filled) == {"acme": 4, "other": 2, "young": 1}
    run = retain("--days", 30)
    assert (run.code, table(run.out)) == (0, rows)
    assert run.err.splitlines()[-1] == f"4 visits of 2 organizations, all before {before}, are deleted."
    assert visits_of(filled) == {"acme": 1, "other": 1, "young": 1}
    there = list(filled.root.glob("visits/organization=[!_]*/*/*.parquet"))
    assert len(there) == 3 + 2  # those with visits, and a record of what was removed for each of two organizations
    assert (filled.root / "manifest.sqlite-wal").stat().st_size == 0
    assert retain("--days", 30) == (0, "", f"0 visits of 0 organizations, all before {before}, are deleted.\n")


def test_the_setting_says_how_many_days_and_the_flag_goes_before_it(filled, retain, monkeypatch):
    monkeypatch.setenv("TRAFFIC_RETENTION_DAYS", "30")
    assert table(retain("--days", "100").out)[1:] == [["other", "1", "1", "1"]]
    assert table(retain().out)[1:] == [["acme", "2", "3", "2"]]


@pytest.mark.parametrize("setting", ["", " "])
def test_without_a_number_of_days_it_names_flag_and_setting(filled, retain, monkeypatch, setting):
    for run in (retain(), retain("--days", "")):
        assert {"--days", "TRAFFIC_RETENTION_DAYS"} <= set(re.findall(r"[\w-]+", refused(run)))
        monkeypatch.setenv("TRAFFIC_RETENTION_DAYS", setting)
    assert visits_of(filled) == {"acme": 4, "other": 2, "young": 1}


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", "100000", "30d"])
def test_a_number_of_days_that_is_none_is_refused(filled, retain, text):
    assert repr(text) in refused(retain(f"--days={text}"))
    assert visits_of(filled) == {"acme": 4, "other": 2, "young": 1}


def test_it_waits_until_no_query_reads_the_files(filled, retain, monkeypatch):
    slept = []
    for module in (erasing, retaining):
        monkeypatch.setattr(module, "GRACE", timedelta(seconds=15))
    old = filled.root / filled.manifest.live_files("other")[0].path

    def sleep(seconds):
        slept.append(seconds)
        assert old.exists()

    monkeypatch.setattr(time, "sleep", sleep)
    assert "in 15 s" in retain("--days", "30").err
    assert sum(slept) == 15
    assert not old.exists()
    del slept[:]
    retain("--days", "30")
    retain("--days", "1", "--dry-run")
    assert slept == []


def test_a_held_answer_is_not_given_once_its_days_are_too_old(lake, client):
    land(lake, "acme", [visit()] * 3)

    def visits():
        return client.get("/analytics/traffic-overview", params=DAYS).json()["total_visits"]

    assert visits() == visits() == 3
    retaining.apply_retention(lake, 30, datetime(2026, 4, 20, tzinfo=UTC))
    assert visits() == 0


def test_long_after_the_newest_visit_the_clock_is_doubted_and_only_trust_clock_overrides(lake, retain, traffic):
    land(lake, "acme", [visit(visited_at=days_ago(age)) for age in (40, 4)])
    line = refused(traffic("retain", "--days", "30", "--lake", lake.root))
    assert "--yes" in line
    dry = retain("--days", 30, "--dry-run")
    assert dry.code == 0
    assert f"the newest visit is of {days_ago(4).date()}" in dry.err
    assert dry.err.splitlines()[0].endswith("Is the date right?")
    assert "--trust-clock" in refused(retain("--days", 30))
    assert visits_of(lake) == {"acme": 2}
    assert retain("--days", 30, "--trust-clock").code == 0
    assert visits_of(lake) == {"acme": 1}
    assert "Is the date right?" not in retain("--days", 3).err  # the last run was today
    assert visits_of(lake) == {"acme": 0}


def test_only_one_organization_is_deleted_from_where_one_is_named(filled, retain):
    dry = retain("--days", 30, "--org", "other", "--dry-run")
    assert table(dry.out)[1:] == [["other", "1", "1", "1"]]
    assert retain("--days", 30, "--org", "other").code == 0
    assert visits_of(filled) == {"acme": 4, "other": 1, "young": 1}


def test_where_nobody_can_be_asked_it_wants_yes_or_dry_run(filled, traffic):
    line = refused(traffic("retain", "--days", 30, "--lake", filled.root))
    assert {"--yes", "--dry-run"} <= set(re.findall(r"--[a-z-]+", line))
    assert visits_of(filled) == {"acme": 4, "other": 2, "young": 1}


@pytest.mark.parametrize(("answer", "left"), [("n", 4), ("y", 1)])
def test_on_a_terminal_it_shows_what_would_go_and_asks(filled, traffic, monkeypatch, answer, left):
    monkeypatch.setattr(confirmation, "can_ask", lambda: True)
    monkeypatch.setattr("sys.stdin.readline", lambda: f"{answer}\n", raising=False)
    run = traffic("retain", "--days", 30, "--lake", filled.root)
    assert table(run.out)[1] == ["acme", "2", "3", "2"]
    assert "4 visits of 2 organizations, all before" in run.err
    assert "would be deleted.\nDelete them? This cannot be undone. [y/N]" in run.err
    assert (run.code, visits_of(filled)["acme"]) == (0 if answer == "y" else 130, left)
