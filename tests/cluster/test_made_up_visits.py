"""Every answer from Sail about randomly generated visits equals one machine's answer.

The test covers three lakes, with `TRAFFIC_FAULTS=10` ten times as many, and with `TRAFFIC_FAULTS=all` 40.
"""

from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given

from queries import ClusterOptions, Warehouse, open_cluster
from tests.faults.trials import tried
from tests.queries.test_recount import VALUES, World, questions
from tests.support.sql import LEAVES


@pytest.fixture(scope="module")
def world(shared_lake):
    world = World(shared_lake)
    yield world
    world.warehouse.close()


@pytest.fixture(scope="module")
def engine(world, sail):
    options = ClusterOptions(sail.address, from_visits=0, seconds=600)
    with closing(open_cluster(world.lake, Warehouse(world.lake, VALUES), options, VALUES)) as engine:
        yield engine


@tried(3, 40)
@given(questions())
def test_every_answer_equals_that_of_one_machine(world, engine, question):
    scope = world.case(question).scope
    for name, entry in LEAVES.items():
        asked = scope if entry.takes_traffic_type else replace(scope, traffic_type=None)
        found = engine.answer(entry, engine.snapshot(asked))
        assert repr(found) == repr(world.warehouse.answer(entry, world.warehouse.snapshot(asked))), name
