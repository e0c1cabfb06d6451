"""Parameters are rows of one table: commands, assistants and notebooks accept each of them and answer like HTTP."""

import json
from datetime import date, datetime

import pytest

from data import Lake
from data.links.index import LinkIndex
from queries import PARAMETERS, Reader
from service.reports.filters import Filters
from tests.conftest import NOW
from tests.support.visits import land, links, visit

DAY = datetime(2026, 3, 10, 9, 30)
COLUMNS = {
    "domain": "to.example", "short_code": "launch", "country": "DE", "device_type": "mobile", "browser": "Safari",
    "operating_system": "iOS", "referrer": "news.example", "ai_source": "Claude", "agent": "GPTBot",
    "operator": "OpenAI", "path": "/launch", "status": 404, "utm_source": "mail", "utm_campaign": "Autumn",
}  # fmt: skip
VALUES = {name: str(value) for name, value in COLUMNS.items()} | {
    "range": "30d",
    "start_date": "2026-03-01",
    "end_date": "2026-03-15",
    "target_url": "https://shop.example/",
    "tag": "<b>spring",
    "traffic_group": "bots",
    "traffic_type": "other_bot",
}
"""A value for each parameter; the value of a filter matches one visit in four."""
DAYS = {"start_date": "2026-02-20", "end_date": "2026-03-15"}
ENDPOINT = "bot-traffic"
"""An endpoint that accepts every parameter."""


@pytest.fixture(scope="module")
def filled(shared_lake):
    other = {name: None for name in COLUMNS if name != "status"}
    bot = {"bot_category": "ai_training", "visited_at": DAY}
    rows = [visit(**(other | bot)), visit(**(other | bot)), visit(**(other | bot | {"status": 200}))]
    land(shared_lake, "acme", [*rows, visit(**(COLUMNS | bot | {"bot_category": "other_bot"}))])
    links(shared_lake, "acme", [{"short_code": "launch", "target_url": "https://shop.example/", "tags": ["<b>spring"]}])
    return shared_lake


@pytest.fixture(scope="module")
def client(filled, opened):
    with opened(filled) as client:
        yield client


@pytest.fixture(scope="module")
def reader(filled):
    with Reader(Lake(filled.root, must_write=False), clock=lambda: NOW) as reader:
        yield reader


def flags_of(values):
    return [f"--{name.replace('_', '-')}={value}" for name, value in values.items()]


def asked(name):
    return ({} if name in DAYS or name == "range" else DAYS) | {name: VALUES[name]}


def over_http(client, name):
    return client.get(f"/analytics/{ENDPOINT}", params=asked(name)).json()


def by_assistant(client, name):
    call = {"name": "query", "arguments": {"endpoint": ENDPOINT, **asked(name)}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    return json.loads(client.post("/mcp", json=message).json()["result"]["content"][0]["text"].partition("\n")[2])


def test_the_tests_have_a_value_for_every_parameter():
    assert VALUES.keys() == PARAMETERS.keys()


@pytest.mark.parametrize("name", [name for name, row in PARAMETERS.items() if row.kind != "days"])
def test_every_interface_has_every_filter(client, filled, reader, traffic, name):
    answer = over_http(client, name)
    assert sum(row["visits"] for row in answer) == 1
    assert by_assistant(client, name) == answer
    printed = traffic("query", ENDPOINT, "--org", "acme", "--format", "json", *flags_of(asked(name)))
    assert json.loads(printed.out) == answer
    table = reader.query(ENDPOINT, organization="acme", **asked(name))
    assert [(row["agent"], row["visits"]) for row in table.to_pylist()] == [("GPTBot", 1)]


def test_views_and_reports_show_their_filters(filled, traffic):
    for values in (
        DAYS | COLUMNS | {"traffic_group": "bots", "traffic_type": "other_bot"},
        {"range": "30d", "target_url": VALUES["target_url"]},
        {"range": "30d", "tag": VALUES["tag"]},
    ):
        script = traffic("views", "--org", "acme", *flags_of(values)).out
        names = {"short_code" if name == "target_url" else name for name in values} - {"range", *DAYS}
        assert [name for name in names if f"SET VARIABLE {name} = '" not in script] == []
    flags = flags_of(DAYS | COLUMNS)
    text = traffic("report", "--org", "acme", "--format", "text", *flags).out
    assert [f"{PARAMETERS[name].label}: {value}" in text for name, value in COLUMNS.items()] == [True] * len(COLUMNS)


@pytest.mark.parametrize(
    ("today", "days", "label"),
    [
        (date(2026, 11, 30), {}, None),
        (date(2026, 12, 1), dict.fromkeys(("start_date", "end_date"), "2026-12-01"), "Today"),
        (date(2026, 12, 2), {"start_date": "2026-12-01", "end_date": "2026-12-02"}, "This month"),
    ],
    ids=["a range that is a month, too", "the first of a month", "a month"],
)
def test_at_most_one_preset_is_selected(filled, today, days, label):
    presets = Filters.of(days, "acme", today, LinkIndex(filled)).presets(None)
    assert next((name for name, _, is_shown in presets if is_shown), None) == label
    assert sum(is_shown for _, _, is_shown in presets) <= 1
