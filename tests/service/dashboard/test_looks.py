"""How many panels a page has, and the words on them, as an owner reads them."""

from datetime import datetime

import pytest

from data import BOT_CATEGORIES
from tests.support.visits import land, visit


@pytest.fixture
def seen(lake):
    """A lake with one visit."""
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, 14))])
    return lake


def test_the_page_of_ai_has_six_cards_at_most(seen, browsing):
    with browsing(seen) as browser:
        assert 3 < len(browser.read("ai").all("section")) <= 6


def test_values_are_shown_where_one_is_set(seen, browsing, tmp_path):
    worth = "".join(f"{category} = {int(category == 'human')}\n" for category in BOT_CATEGORIES)
    (tmp_path / "values.toml").write_text(f'currency = "EUR"\n[value_per_visit]\n{worth}')
    shown = []
    for settings in ({}, {"values": tmp_path / "values.toml"}):
        with browsing(seen, **settings) as browser:
            shown.append([one["id"] for one in browser.read("domains").all("section")])
    assert shown == [["domain-breakdown"], ["domain-breakdown", "traffic-value-breakdown"]]
