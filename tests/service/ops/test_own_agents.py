"""A lake's own agents (agents.toml) in commands, `traffic doctor`, the server and MCP tools."""

import asyncio
from contextlib import ExitStack, closing

import pytest

from data.errors import BadInput
from data.recovery.backup import back_up
from data.store.lake_tables import lake_tables, rules_version_of
from service.core.control_database import ControlDatabase
from service.jobs.daily import detect_jobs
from service.mcp.sources import classify, lake_sources
from service.mcp.tools import Toolbox
from service.ops.owner_checks import check_own_agents
from tests.support.own_agents import MONITOR, USER_AGENT, table_of
from tests.support.runs import run
from tests.support.visits import land, visit


def write_table(lake):
    lake.own_agents.write_bytes(table_of(MONITOR))


def listed(lake, *flags):
    found = run("agents", "list", *flags, "--lake", lake.root)
    assert found.code == 0, found.err
    return found.out


def test_own_agents_can_be_listed_alone(lake):
    write_table(lake)
    assert len(listed(lake, "--own").splitlines()) == 1 + len(["Intranet Monitor"])


def test_own_agents_are_listed_before_shipped_agents(lake):
    write_table(lake)
    _, first, second, *_ = listed(lake).splitlines()
    assert (first.split()[0], second.split()[0]) == ("own", "shipped")


def test_an_empty_list_of_own_agents_names_their_file(lake):
    found = run("agents", "list", "--own", "--lake", lake.root)
    assert str(lake.own_agents) in found.err.replace("\n", "")


@pytest.mark.parametrize(
    "words", [("agents", "list"), ("reclassify",), ("classify", "--user-agent", "a"), ("mcp", "--org", "acme")]
)
def test_a_command_names_the_row_that_makes_a_table_invalid(lake, words):
    land(lake, "acme", [visit()])
    lake.own_agents.write_bytes(table_of(MONITOR, {**MONITOR, "agent_kind": "robot"}))
    found = run(*words, "--lake", lake.root)
    assert found.code == 2
    assert f"{lake.own_agents}, row 2: agent_kind is 'robot'" in found.err.replace("\n", " ")


def test_classify_uses_own_agents(lake):
    write_table(lake)
    assert (
        'own agents.toml: "Intranet-Monitor/"' in run("classify", "--user-agent", USER_AGENT, "--lake", lake.root).out
    )


def test_assistants_see_own_agents(lake):
    write_table(lake)
    assert classify({"user_agent": USER_AGENT}, lake_tables(lake))["agent"] == "Intranet Monitor"


def test_assistants_see_the_rules_version_with_own_agents(lake):
    write_table(lake)
    with ExitStack() as held:
        toolbox = Toolbox(lake_sources(lake, "acme", held))
        text = asyncio.run(toolbox.call("classify", {"user_agent": USER_AGENT}))
    assert f"rules {rules_version_of(lake)}." in text
    assert "Intranet Monitor" in text


def test_a_detection_run_records_own_agents_in_its_rules_version(lake):
    land(lake, "acme", [visit()])
    write_table(lake)
    detect_jobs(lake, "acme", "", "2026-03-15T12:00:00+00:00")
    with closing(ControlDatabase(lake)) as control:
        assert control.rows("SELECT rules_version FROM detection_runs") == [(rules_version_of(lake),)]


def test_doctor_counts_the_rows_of_a_lakes_own_agents(lake):
    write_table(lake)
    assert check_own_agents(lake) == ("ok", "own agents", f"{lake.own_agents} has 1 row.")


def test_doctor_reports_an_invalid_row_and_continues(lake):
    lake.own_agents.write_bytes(table_of({**MONITOR, "confidence": "certain"}))
    found = run("doctor", "--lake", lake.root)
    assert f"broken   own agents    {lake.own_agents}, row 1: confidence is 'certain'" in found.out
    assert "API keys" in found.out


def test_a_server_with_an_invalid_table_does_not_start(lake, opened):
    lake.own_agents.write_text("[[agent]]\n")
    with pytest.raises(BadInput, match="row 1"), opened(lake, organization=None):
        pass


def test_a_backup_contains_own_agents(lake, tmp_path):
    write_table(lake)
    back_up(lake, tmp_path / "copy")
    assert (tmp_path / "copy/agents.toml").read_bytes() == lake.own_agents.read_bytes()
