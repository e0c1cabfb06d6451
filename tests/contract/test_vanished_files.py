"""Files that vanish between the moment a query is told of them and the moment it reads them."""

from datetime import UTC, datetime

import pytest

from data.maintenance.compaction import Compactor
from queries import Warehouse
from tests.visits import land, visit

DAYS = {"start_date": "2026-03-02", "end_date": "2026-03-08"}
LONG_AFTER = datetime(2027, 1, 1, tzinfo=UTC)


@pytest.fixture
def merged_under_readers(lake, monkeypatch):
    """Merges the files of the lake and deletes the old ones as soon as the first query was told of them."""
    told = Warehouse.variables

    def variables(warehouse, scope):
        snapshot = told(warehouse, scope)
        compactor = Compactor(lake, lambda: LONG_AFTER)
        if compactor.run().partitions:
            past = datetime(9000, 1, 1, tzinfo=UTC)
            assert Compactor(lake, lambda: past).sweep() == 3
        return snapshot

    monkeypatch.setattr(Warehouse, "variables", variables)


@pytest.mark.parametrize("name", ["traffic-overview", "dashboard"])
def test_a_query_whose_files_are_gone_is_asked_again_with_those_of_now(lake, client, merged_under_readers, name):
    for hour in range(3):
        land(lake, "acme", [visit(visited_at=datetime(2026, 3, 4, hour))])
    answer = client.get(f"/analytics/{name}", params=DAYS)
    assert answer.status_code == 200
    told = answer.json()
    assert told.get("overview", told)["total_visits"] == 3


def test_a_file_that_is_gone_for_good_is_an_error_and_no_smaller_answer(lake, client):
    land(lake, "acme", [visit(), visit()])
    (file,) = lake.manifest.live_files("acme")
    (lake.root / file.path).unlink()
    assert client.get("/analytics/traffic-overview", params=DAYS).status_code == 500
