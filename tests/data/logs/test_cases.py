"""Imports of small logs modelled on public bug reports.

In dirty.log, the status 000 means a visit without a status, as for every client that disconnected early.
"""

import pytest

from data.ingest.importer import Options
from tests.support.forks import ROOT
from tests.support.tables import tables

CASES = ROOT.parent / "shared/data/cases"
pytestmark = pytest.mark.skipif(not CASES.exists(), reason="the logs from public bug reports are missing")


@pytest.fixture
def imported(logs):
    """Import a case; return its summary and its visits."""

    def imported(name):
        summary = logs.load((CASES / name).read_bytes(), Options("acme", "dom.example", needs_domain=True))
        return summary, logs.visits()

    return imported


def values_of(visits, names):
    """Return the distinct values of some columns; for visitors, their number."""
    known = [visit | {"visitors": visit["visitor"]} for visit in visits]
    values = {name: sorted({str(visit[name]) for visit in known}) for name in names}
    return {name: len(found) if name == "visitors" else tuple(found) for name, found in values.items()}


@pytest.mark.parametrize("name", tables(__file__)["cases"])
def test_an_imported_case_has_the_expected_values(imported, name):
    (log_format, count, rejected), expected = tables(__file__)["cases"][name]
    summary, visits = imported(name)
    assert (summary.log_format, len(visits), summary.rejected) == (log_format, count, rejected)
    assert values_of(visits, expected) == expected
