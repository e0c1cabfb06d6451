"""Each filter by the value of a column, over HTTP; tests/queries/test_recount.py recounts all answers with several
filters."""

from datetime import datetime

import pytest

from queries import PARAMETERS
from tests.recount import WORDS, word
from tests.support.tables import tables
from tests.support.visits import land, visit

DAYS = [datetime(2026, 3, day, 9, 30) for day in (2, 3, 9)]
KINDS = tables(__file__)["KINDS"]
VISITS = [
    visit(**kind, visited_at=day) for number, kind in enumerate(KINDS) for day in DAYS if number % 4 or day != DAYS[1]
]


@pytest.fixture(scope="module")
def client(shared_lake, opened):
    for organization in ("acme", "stranger"):
        land(shared_lake, organization, VISITS)
    with opened(shared_lake) as client:
        yield client


@pytest.mark.parametrize("name", [*WORDS, "domain"])
def test_a_filter_counts_exactly_the_visits_with_its_value(client, name):
    for value in {word(row, name) for row in VISITS} | {"nowhere"}:
        counted = sum(word(row, name) == PARAMETERS[name].parse(str(value)) for row in VISITS)
        answer = client.get("/analytics/traffic-overview", params={"range": "30d", name: value}).json()
        assert answer["total_visits"] == counted, value
