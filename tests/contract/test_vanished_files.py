"""Files that vanish between the moment a query is told of them and the moment it reads them."""

from datetime import UTC, datetime

import pytest

from data.maintenance.compaction import Compactor
from queries import Warehouse
from tests.support.visits import land, visit

DAYS = {"start_date": "2026-03-02", "end_date": "2026-03-08"}
LONG_AFTER = datetime(2027, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(("name", "times"), [("traffic-overview", 3), ("dashboard", 1)])
def test_a_query_whose_files_are_gone_is_asked_again_with_those_of_now(lake, opened, monkeypatch, times, name):
    """The files are merged, and the old ones deleted, as soon as a query was told of them; the server does neither."""
    taken, snapshots = Warehouse.variables, []

    def variables(warehouse, scope):
        snapshots.append(taken(warehouse, scope))
        if len(snapshots) <= times:
            land(lake, "acme", [visit(visited_at=datetime(2026, 3, 4, len(snapshots)))])
            assert Compactor(lake, lambda: LONG_AFTER).run().partitions == 1
            assert Compactor(lake, lambda: datetime(9000, 1, 1, tzinfo=UTC)).sweep() == 2
        return snapshots[-1]

    land(lake, "acme", [visit(visited_at=datetime(2026, 3, 4))])
    monkeypatch.setattr(Warehouse, "variables", variables)
    monkeypatch.setattr("service.maintenance.START_DELAY_SECONDS", 600.0)
    with opened(lake) as client:
        answer = client.get(f"/analytics/{name}", params=DAYS)
    assert answer.status_code == 200
    found = answer.json()
    assert found.get("overview", found)["total_visits"] == 1 + times
    assert len(snapshots) > times
