"""`traffic doctor` reports on the request headers in a lake's newest logs."""

from datetime import datetime

import pytest

from data.signals import BITS
from service.ops.header_check import headers_in_words
from tests.support.visits import land, visit

WITHOUT = "were logged without Sec-Fetch-*, so files are recognized only by their paths"


@pytest.mark.parametrize("fact", ["fetch_sent", "fetch_absent"])
def test_logs_with_fetch_metadata_headers_are_reported(lake, fact):
    land(lake, "acme", [visit(signals=BITS[fact]), visit()])
    assert headers_in_words(lake) == "the newest visits were logged with Sec-Fetch-*."


def test_without_headers_the_report_links_to_the_configuration(lake):
    land(lake, "acme", [visit(signals=BITS["https"])])
    assert headers_in_words(lake).startswith(f"the newest visits of acme {WITHOUT}; data/logs/README.md#")


def test_only_the_newest_day_counts(lake):
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, 1), signals=BITS["fetch_sent"])])
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, 2))])
    assert WITHOUT in headers_in_words(lake)


def test_several_organizations_are_counted_and_one_is_named(lake):
    for name in ("acme", "bee"):
        land(lake, name, [visit()])
    assert headers_in_words(lake).startswith(f"the newest visits of 2 organizations (such as acme) {WITHOUT}")


def test_headers_of_a_damaged_file_come_from_the_manifest(lake):
    land(lake, "acme", [visit(signals=BITS["fetch_sent"])])
    (file,) = lake.manifest.files.live("acme")
    (lake.root / file.path).write_bytes(b"PAR1")
    assert headers_in_words(lake) == "the newest visits were logged with Sec-Fetch-*."


def test_a_lake_without_visits_is_reported(lake):
    assert headers_in_words(lake) == "no visits yet."
