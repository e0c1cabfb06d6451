"""`traffic behaviour`: what signals say of visits with a browser's name, and the switch that lets them count or not."""

from datetime import datetime

import pytest

from data.maintenance.compaction import Compactor
from tests.support.visits import land, visit

OLD = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/79.0.3945.88 Safari/537.36"
DAYS = ("--start-date", "2026-03-04", "--end-date", "2026-03-05")


@pytest.fixture
def behaviour(lake, traffic):
    """A judged day of an outdated browser that probes too, of a person, of many pages, and a day that waits."""
    many = [
        visit(visited_at=datetime(2026, 3, 4, 13, 0, number), path=f"/{number}", visitor=3, bot_category="ai_referral")
        for number in range(30)
    ]
    old = {"visited_at": datetime(2026, 3, 4, 12), "user_agent": OLD, "visitor": 1}
    probe = visit(**old, path="/.env", status=404, is_malicious=True, bot_category="other_bot")
    land(lake, "acme", [visit(**old), probe, visit(visited_at=datetime(2026, 3, 4, 12), visitor=2), *many])
    Compactor(lake).run()
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, 5), signals=1)])
    return lambda *arguments: traffic("behaviour", *arguments, "--org", "acme")


def test_it_explains_which_signals_visits_have_and_which_of_them_count_as_bots(behaviour):
    run = behaviour("explain", *DAYS, "--format", "json")
    rows = {row["signal"]: (row["visits"], row["alone"], row["bots"]) for row in run.json}
    found = {"attacked": (1, 1, 0), "probed": (1, 0, 1), "outdated": (1, 0, 1), "breadth": (30, 30, 0)}
    assert {name: counts for name, counts in rows.items() if counts != (0, 0, 0)} == found
    assert "33 visits imported as people's; 1 of them count as bots; 1 are of days that are not judged yet." in run.err


def test_switched_off_it_explains_what_would_count_and_nothing_does(behaviour, lake, traffic):
    def bots():
        run = traffic("query", "disguised", "--org", "acme", *DAYS, "--format", "json")
        return [row["visits"] for row in run.json if row["signal"] == "total"]

    assert bots() == [1]
    assert behaviour("off").err == "Behaviour is off for acme.\n"
    assert "1 of them would count as bots;" in behaviour("explain", *DAYS).err
    assert bots() == []
    assert behaviour("on").err == "Behaviour is on for acme.\n"
    assert bots() == [1]
