"""The operator's table of agents in a lake: which files are rejected, and when changes take effect."""

import os
from datetime import UTC, datetime

import pytest

from data.errors import BadInput
from data.rules.lake_tables import rules_version
from data.store.agents_file import MAX_BYTES, own_agents
from data.store.lake_tables import CurrentTables, lake_tables, rules_version_of
from data.store.status import status_of
from tests.support.own_agents import MONITOR, table_of
from tests.support.visits import land, visit

NOW = datetime(2026, 3, 1, 11, tzinfo=UTC)

OTHER = {**MONITOR, "token": "Partner-Bot/", "agent": "Partner", "example": "Partner-Bot/1"}


def names(rows):
    return [row.agent for row in rows]


def test_a_lake_without_a_table_has_no_own_agents(lake):
    assert own_agents(lake) == ()


def test_own_agents_are_read_from_the_table_in_the_lake(lake):
    lake.own_agents.write_bytes(table_of(MONITOR, OTHER))
    assert names(own_agents(lake)) == ["Intranet Monitor", "Partner"]


def link(path):
    (path.parent / "elsewhere.toml").write_bytes(table_of(MONITOR))
    path.symlink_to("elsewhere.toml")


REFUSED = {
    "a symbolic link": (link, "is a symbolic link"),
    "a link to nowhere": (lambda path: path.symlink_to("nowhere"), "is a symbolic link"),
    "a pipe": (os.mkfifo, "is a folder or a device"),
    "a folder": (os.mkdir, "is a folder or a device"),
    "a large file": (lambda path: path.write_bytes(bytes(MAX_BYTES + 1)), "keep at most 1,000,000"),
    "a bad row": (lambda path: path.write_bytes(table_of(MONITOR, {"token": "a"})), "row 2"),
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_the_error_about_an_invalid_file_names_its_path(lake, make, message):
    make(lake.own_agents)
    with pytest.raises(BadInput) as refused:
        own_agents(lake)
    assert str(refused.value).startswith(str(lake.own_agents))
    assert message in str(refused.value)


def test_a_changed_table_is_read_again(lake):
    own = CurrentTables(lake)
    lake.own_agents.write_bytes(table_of(OTHER))
    assert names(own.current().own) == ["Partner"]


def test_removing_the_table_removes_its_agents(lake):
    lake.own_agents.write_bytes(table_of(MONITOR))
    own = CurrentTables(lake)
    lake.own_agents.unlink()
    assert own.current().own == ()


def test_the_last_valid_table_is_used_while_the_file_is_invalid(lake):
    lake.own_agents.write_bytes(table_of(MONITOR))
    own = CurrentTables(lake)
    lake.own_agents.write_text("[[agent]]\n")
    assert names(own.current().own) == ["Intranet Monitor"]


def test_an_invalid_table_is_logged_once(lake, caplog):
    own = CurrentTables(lake)
    lake.own_agents.write_text("[[agent]]\n")
    own.current(), own.current()
    (told,) = caplog.messages
    assert f"{lake.own_agents}, row 1" in told


def test_an_invalid_table_is_rejected_at_startup(lake):
    lake.own_agents.write_text("[[agent]]\n")
    with pytest.raises(BadInput, match="row 1"):
        CurrentTables(lake)


def test_the_rules_version_in_the_status_includes_own_agents(lake):
    lake.own_agents.write_bytes(table_of(MONITOR))
    assert status_of(lake, NOW).rules_version == rules_version(lake_tables(lake))


def test_history_without_own_agents_must_be_reclassified(lake):
    land(lake, "acme", [visit(rules_version=rules_version())])
    assert not status_of(lake, NOW).reclassify_due
    lake.own_agents.write_bytes(table_of(MONITOR))
    assert status_of(lake, NOW).reclassify_due


def test_an_invalid_table_does_not_change_the_rules_version(lake):
    lake.own_agents.write_text("[[agent]]\n")
    assert rules_version_of(lake) == status_of(lake, NOW).rules_version == rules_version()
