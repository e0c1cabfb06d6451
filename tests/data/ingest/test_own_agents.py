"""A lake's own agents classify everything: logs, followed logs, live visits and history."""

import json
from datetime import UTC, datetime

import pytest

from data.errors import BadInput
from data.ingest.follower import Follower
from data.ingest.importer import Importer, Options
from data.ingest.live import REFRESH_AFTER, LiveIngest
from data.logs.reported import Submission
from data.rules.own_rules import checked_exclusion
from data.store.pending import flush_all
from data.store.status import status_of
from data.tasks.reclassification import Reclassifier
from tests.support.lakes import rows_of
from tests.support.own_agents import MONITOR, USER_AGENT, table_of
from tests.support.user_agents import CHROME
from tests.support.visits import land, visit

NOW = datetime(2026, 3, 1, 11, tzinfo=UTC)
OPTIONS = Options("acme", "go.example")


def write_table(lake, *rows):
    lake.own_agents.write_bytes(table_of(*rows or [MONITOR]))


def line(path="/a", user_agent=USER_AGENT):
    return f'203.0.113.7 - - [01/Mar/2026:10:00:00 +0000] "GET {path} HTTP/1.1" 200 9 "-" "{user_agent}"\n'


def reported(path):
    return json.dumps({"path": path, "user_agent": USER_AGENT, "time": "2026-03-01T10:00:00Z"}).encode()


def agents(lake):
    return {row["path"]: row["agent"] for row in rows_of(lake)}


def test_an_import_uses_the_lakes_own_agents(lake, tmp_path):
    write_table(lake)
    (tmp_path / "a.log").write_text(line())
    Importer(lake).run(tmp_path / "a.log", OPTIONS)
    assert agents(lake) == {"/a": "Intranet Monitor"}


def test_an_import_with_an_invalid_table_is_rejected(lake):
    lake.own_agents.write_text("[[agent]]\n")
    with pytest.raises(BadInput, match=r"agents\.toml, row 1"):
        Importer(lake)


def test_a_followed_log_uses_agents_added_while_it_is_followed(lake, tmp_path):
    log = tmp_path / "a.log"
    log.write_text(line("/before"))
    follower = Follower(lake, Importer(lake), log, OPTIONS, notify=pytest.fail)
    follower.tick()
    write_table(lake)
    with log.open("a") as opened:
        opened.write(line("/after"))
    follower.tick()
    follower.close()
    assert agents(lake) == {"/before": "Intranet-Monitor", "/after": "Intranet Monitor"}


def test_live_visits_use_the_lakes_own_agents_after_a_minute(lake):
    clock = [NOW]
    intake = LiveIngest(lake, now=lambda: clock[0])
    write_table(lake)
    for minutes in (0.5, 1.1):
        clock[0] = NOW + minutes * REFRESH_AFTER
        intake.land([Submission("acme", [reported(f"/{minutes}")])])
    flush_all(lake)
    assert agents(lake)["/0.5"] != agents(lake)["/1.1"] == "Intranet Monitor"


def test_live_visits_record_the_version_of_their_rules(lake):
    write_table(lake)
    LiveIngest(lake, now=lambda: NOW).land([Submission("acme", [reported("/a")])])
    flush_all(lake)
    assert [row["rules_version"] for row in rows_of(lake)] == [status_of(lake, NOW).rules_version]


def test_an_invalid_table_does_not_stop_live_visits(lake, caplog):
    write_table(lake)
    clock = [NOW]
    intake = LiveIngest(lake, now=lambda: clock[0])
    lake.own_agents.write_text("[[agent]]\n")
    for path in ("/a", "/b"):
        clock[0] += 2 * REFRESH_AFTER
        intake.land([Submission("acme", [reported(path)])])
    flush_all(lake)
    assert agents(lake) == dict.fromkeys(("/a", "/b"), "Intranet Monitor")
    assert len(caplog.messages) == 1


def test_reclassifying_applies_the_lakes_own_agents_to_history(lake):
    land(lake, "acme", [visit(path="/a", user_agent=USER_AGENT), visit(path="/b", user_agent=CHROME)])
    write_table(lake)
    Reclassifier(lake).run(["acme"])
    assert agents(lake) == {"/a": "Intranet Monitor", "/b": None}


def test_reclassifying_drops_the_agents_of_a_removed_table(lake):
    land(lake, "acme", [visit(path="/a", user_agent=USER_AGENT)])
    write_table(lake)
    Reclassifier(lake).run(["acme"])
    lake.own_agents.unlink()
    Reclassifier(lake).run(["acme"])
    assert agents(lake) == {"/a": "Intranet-Monitor"}  # its name in the user agent


@pytest.mark.parametrize("is_excluding", [False, True])
def test_reclassified_visits_are_no_longer_due(lake, is_excluding):
    land(lake, "acme", [visit(path="/a", user_agent=USER_AGENT)])
    write_table(lake)
    if is_excluding:
        lake.manifest.exclusions.add("acme", checked_exclusion("path", "/admin"))
    Reclassifier(lake).run(["acme"])
    assert not status_of(lake, NOW).reclassify_due
    assert not Reclassifier(lake).run(["acme"]).rewritten
