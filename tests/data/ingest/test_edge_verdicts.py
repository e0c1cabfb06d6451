"""Cloudflare's verdicts on the senders of requests: the kinds of bots, and the results kept in history."""

import json

import pytest

from data.ingest.importer import Importer, Options
from data.rules.edge import KINDS
from data.tasks.reclassification import Reclassifier
from data.visits import CATEGORY_OF_KIND
from tests.support.lakes import rows_of
from tests.support.user_agents import CHROME, GPTBOT
from tests.support.visits import land, visit

CURL = "curl/8.9.1"
REQUESTS = [
    ({}, CHROME, (None, None, None)),
    ({"VerifiedBotCategory": "AI Crawler"}, CHROME, ("training", None, "edge")),
    ({"VerifiedBotCategory": "Newest Category"}, CHROME, ("other", None, "edge")),
    ({"VerifiedBotCategory": "Search Engine Crawler"}, GPTBOT, ("training", "GPTBot", "user_agent")),
    ({"VerifiedBotCategory": "AI Search"}, "", ("ai_search_index", None, "edge")),
    ({"VerifiedBotCategory": ""}, CHROME, (None, None, None)),
    ({"ClientIPClass": "monitoringService"}, CHROME, ("monitor", None, "edge")),
    ({"ClientIPClass": "searchEngine"}, CHROME, ("search", None, "edge")),
    ({"ClientIPClass": "scan"}, CHROME, (None, None, None)),
    ({"BotScore": 1}, CHROME, ("other", None, "edge")),
    ({"BotScore": 2}, CHROME, (None, None, None)),
    ({"BotScore": 0}, CHROME, (None, None, None)),
    ({"BotScore": 1, "VerifiedBotCategory": "Page Preview"}, CHROME, ("preview", None, "edge")),
    ({"BotScore": 1}, GPTBOT, ("training", "GPTBot", "user_agent")),
    ({"BotScore": 1, "ClientRequestURI": "/.env"}, CHROME, ("scanner", None, "path")),
]
"""The fields of a line, its user agent, and the kind, agent and method of its visit."""
WANTED = {str(number): says for number, (*_, says) in enumerate(REQUESTS)}


def line(number, fields, agent):
    request = {
        "EdgeStartTimestamp": "2026-03-04T10:05:03Z", "ClientIP": "198.51.100.7",
        "ClientRequestHost": f"{number}.example", "ClientRequestMethod": "GET", "ClientRequestURI": "/",
        "EdgeResponseStatus": 200, "ClientRequestUserAgent": agent,
    }  # fmt: skip
    return f"{json.dumps(request | fields)}\n"


def results(rows):
    return {row["domain"].partition(".")[0]: (row["agent_kind"], row["agent"], row["detection_method"]) for row in rows}


@pytest.fixture
def imported(lake, tmp_path):
    (tmp_path / "a.log").write_text("".join(line(number, *asked[:2]) for number, asked in enumerate(REQUESTS)))
    Importer(lake).run(tmp_path / "a.log", Options("acme", log_format="cloudflare"))
    return lake


def test_the_edges_verdict_decides_if_no_other_rule_names_a_bot(imported):
    assert results(rows_of(imported)) == WANTED


def test_reclassifying_keeps_the_verdict_from_the_edge(imported):
    rows = [{name: value for name, value in row.items() if name != "rules_version"} for row in rows_of(imported)]
    land(imported, "other", [visit(**row) for row in rows])
    Reclassifier(imported).run(["other"])
    assert results(rows_of(imported, "other")) == WANTED


def test_each_edge_category_maps_to_a_known_agent_kind():
    assert set(KINDS.values()) <= CATEGORY_OF_KIND.keys()
