"""Pages that browsers prefetch: which visits count as people's after judging, also in the log of a real browser."""

from collections import Counter
from contextlib import closing
from datetime import UTC, date, datetime

import pytest

from data.ingest.importer import Importer, Options
from data.signals import BITS
from data.tasks.compaction import Compactor
from queries import ENTRIES, Reader, Scope, Warehouse
from queries.own_sql import OwnSql
from tests.support.driven import DRIVEN, needs_driven, readings
from tests.support.visits import land, visit

WHOLE = Scope("acme", date(2026, 3, 1), date(2026, 3, 10))
UNFOLLOWED = BITS["loaded_ahead"] | BITS["unfollowed"]
AGENT = {
    "bot_category": "ai_assistant",
    "agent_kind": "agentic_browser",
    "agent": "Some",
    "detection_method": "user_agent",
}


def seen(lake, **columns):
    land(lake, "acme", [visit(**columns)])
    with closing(OwnSql(lake, "acme")) as own_sql:
        (row,) = own_sql.sql("SELECT bot_category, agent_kind, detection_method FROM visits_in_scope", WHOLE).rows
    return row


@pytest.mark.parametrize(("columns", "expected"), [
    ({"signals": UNFOLLOWED}, ("other_bot", "prefetch", "header")),
    ({"signals": UNFOLLOWED, "bot_category": "ai_referral"}, ("other_bot", "prefetch", "header")),
    ({"signals": UNFOLLOWED | BITS["breadth"]}, ("other_bot", "prefetch", "header")),
    ({"signals": UNFOLLOWED | BITS["probed"]}, ("other_bot", "disguised", "behaviour")),
    ({"signals": BITS["loaded_ahead"]}, ("human", None, None)),
    ({"signals": UNFOLLOWED, **AGENT}, ("ai_assistant", "agentic_browser", "user_agent")),
])  # fmt: skip
def test_an_unopened_page_is_a_prefetch(lake, columns, expected):
    assert seen(lake, **columns) == expected


def test_a_prefetched_page_counts_as_human_if_behaviour_is_off(lake):
    lake.manifest.behaviour.switch("acme", on=False)
    assert seen(lake, signals=UNFOLLOWED) == ("human", None, None)


@pytest.fixture
def driven(lake):
    """A judged lake, in which files are set aside, with the log of a site that Chromium and programs visited."""
    Importer(lake).run(DRIVEN / "rich.log", Options("acme"))
    lake.manifest.exclusions.switch_files("acme", aside=True)
    Compactor(lake, lambda: datetime(2026, 11, 29, 8, tzinfo=UTC)).run()
    return lake


def views(lake):
    """Return how many requests of each kind count as visits by people."""
    by_request, found = readings(), Counter()
    with closing(Reader(lake)) as reader:
        rows = reader.sql(
            "SELECT visited_at, path FROM visits_in_scope WHERE bot_category IN ('human', 'ai_referral')",
            organization="acme", start_date="2026-11-28", end_date="2026-11-28",
        ).to_pylist()  # fmt: skip
    for row in rows:
        (reading,) = set(by_request[row["visited_at"].isoformat(), row["path"]])
        found[reading] += 1
    return found


@needs_driven
def test_about_45_visits_in_a_driven_log_are_by_people(driven):
    with closing(Warehouse(driven)) as warehouse:
        day = date(2026, 11, 28)
        answer = warehouse.answer(ENTRIES["traffic-overview"], warehouse.snapshot(Scope("acme", day, day)))
    assert abs(answer["human_clicks"] + answer["ai_referral_requests"] - 45) <= 3


@needs_driven
def test_a_driven_log_has_only_the_documented_errors(driven):
    assert views(driven) == Counter(
        {"page": 28, "link": 8, "error-page": 2, "early-followed": 4, "early-unfollowed": 2}
    )
