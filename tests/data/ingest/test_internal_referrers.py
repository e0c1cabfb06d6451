"""Internal and spam referrers are recognized alike in logs, in reported visits, and by reclassification."""

import json
from datetime import UTC, datetime

import pytest

from data.ingest.importer import Options
from data.ingest.live import LiveIngest
from data.logs.reported import Submission
from data.tasks.reclassification import Reclassifier
from tests.support.lakes import rows_of
from tests.support.manifests import database_of
from tests.support.user_agents import CHROME
from tests.support.visits import land, links, unpacked, visit

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
SPAM = ("other_bot", "other", "low", "referrer")
REFERRERS = {
    "https://go.example/start": "internal",
    "https://www.go.example/": "internal",
    "https://shop.example/": "internal",
    "https://sub.go.example/": "other",
    "https://www.google.com/": "search",
    "https://semalt.com/": "other",
    "": "direct",
}


@pytest.fixture
def own_lake(lake):
    """A lake with an organization that also has a link on another domain."""
    links(lake, "acme", [{"short_code": "sale", "domain": "www.shop.example", "target_url": "https://a.example/"}])
    return lake


def test_logs_and_reports_land_with_internal_referrers(own_lake, load):
    line = '192.0.2.1 - - [04/Mar/2026:10:05:03 +0000] "GET /{} HTTP/1.1" 302 5 "{}" "{}"\n'
    text = "".join(line.format(number, name, CHROME) for number, name in enumerate(REFERRERS))
    load(text, Options("acme", domain="www.go.example"))
    types = {row["path"]: row["referrer_type"] for row in rows_of(own_lake)}
    assert [types[f"/{number}"] for number in range(len(REFERRERS))] == list(REFERRERS.values())
    rows = [{"url": "https://go.example/", "user_agent": CHROME, "referrer": name} for name in REFERRERS]
    LiveIngest(own_lake, now=lambda: NOW).land([Submission("acme", [json.dumps(row).encode() for row in rows])])
    stored = unpacked(body for (body,) in database_of(own_lake.manifest).rows("SELECT body FROM pending"))
    assert [row["referrer_type"] for row in stored] == list(REFERRERS.values())
    assert [row["bot_category"] for row in stored] == [
        "other_bot" if "semalt" in name else "human" for name in REFERRERS
    ]


def test_reclassifying_finds_internal_and_spam_referrers(own_lake):
    hosts = [name.removeprefix("https://").partition("/")[0] for name in REFERRERS]
    rows = [
        visit(domain="go.example", path=f"/{number}", referrer=host or None, referrer_type="other", user_agent=CHROME)
        for number, host in enumerate(hosts)
    ]
    once = visit(domain="go.example", path="/old", referrer="sold.example", referrer_type="internal", user_agent=CHROME)
    land(own_lake, "acme", [*rows, once])
    Reclassifier(own_lake).run(["acme"])
    types = {row["path"]: row["referrer_type"] for row in rows_of(own_lake)}
    assert types == {f"/{number}": name for number, name in enumerate(REFERRERS.values())} | {"/old": "internal"}
    (spam,) = [row for row in rows_of(own_lake) if row["referrer"] == "semalt.com"]
    assert tuple(spam[name] for name in ("bot_category", "agent_kind", "confidence", "detection_method")) == SPAM
