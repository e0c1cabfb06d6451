"""What tests of the service share: servers that behave as a script says, and processes of own SQL."""

from types import SimpleNamespace

import pytest

import queries.own_sql
from tests.service.outgoing.receivers import Receiver


@pytest.fixture
def receiver():
    """Makes receivers."""
    made = []

    def receiver(*scripts, **how):
        made.append(Receiver(*scripts, **how))
        return made[-1]

    yield receiver
    for one in made:
        one.close()


@pytest.fixture(scope="module")
def forked_own_sql(forks):
    """Own SQL in processes that need not load its engine first; tests/queries/test_own_sql.py starts whole ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queries.own_sql, "subprocess", SimpleNamespace(Popen=forks.own_sql))
        yield
