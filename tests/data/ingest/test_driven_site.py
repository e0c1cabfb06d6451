"""Facts about requests to a site that Chromium and programs visited, compared with the known senders."""

import csv
import json
from collections import Counter

import pytest

from data.ingest.importer import Importer, Options
from data.signals import BITS
from data.tasks.compaction import Compactor
from tests.support.driven import DRIVEN, needs_driven
from tests.support.lakes import rows_of

SPECIAL = {
    21: {"fetch_sent", "loaded_ahead"},  # <link rel=prefetch>: no-cors, empty
    29: {"fetch_sent", "loaded_ahead"},
    63: {"fetch_sent"},  # an image that a service worker fetched: no-cors, empty
    109: {"fetch_sent", "page_part", "loaded_ahead"},  # a script of a prerendered page
}
"""Facts from Sec-Fetch-* and Sec-Purpose that the labels of these lines do not contain."""


def expected(number, reading, scheme):
    """Return the facts expected of a line in the driven site's log, by the label of its sender."""
    reading = reading.removeprefix("headless:")
    if reading == "program":
        return {scheme, "fetch_absent", "language_absent"}
    facts = {scheme, "language_sent"}
    if number in SPECIAL:
        return facts | SPECIAL[number]
    facts |= {"loaded_ahead"} if reading.startswith("early-") else set()
    is_part = reading in {"file", "fetch", "worker-script"} or reading.startswith("early-file")
    if scheme == "plain_http" or reading == "websocket":  # browsers send no Sec-Fetch-* there
        return facts | {"fetch_absent"} | ({"accepts_no_page"} if is_part else set())
    return facts | {"fetch_sent", "page_part" if is_part else "navigation"}


@needs_driven
def test_a_driven_log_has_the_facts_about_its_clients(logs):
    logs.load((DRIVEN / "rich.log").read_bytes())
    lines = map(json.loads, (DRIVEN / "rich.log").read_text("utf-8").splitlines())
    labels = csv.DictReader((DRIVEN / "rich.log.labels.csv").read_text("utf-8").splitlines())
    wanted, found = Counter(), Counter()
    for line, label in zip(lines, labels, strict=True):
        scheme = "https" if line["scheme"] == "https" else "plain_http"
        facts = expected(int(label["line"]), label["reading"], scheme)
        wanted[line["time_iso8601"][:19], label["path"].partition("?")[0], *sorted(facts)] += 1
    for visit in logs.visits():
        names = sorted(
            name for name, bit in BITS.items() if visit["signals"] & bit and name not in {"attacked", "file"}
        )
        found[visit["visited_at"].isoformat(), visit["path"], *names] += 1
    assert (found - wanted, wanted - found) == ({}, {})


@needs_driven
@pytest.mark.parametrize("name", ["norealip_rich.log", "edge_rich.log"])
def test_the_scheme_in_a_log_behind_a_proxy_is_ignored(logs, name):
    logs.load((DRIVEN / name).read_bytes())
    found = {visit["signals"] & ~BITS["from_bot"] for visit in logs.visits()}  # some forge a bot's address
    assert found == {BITS["fetch_absent"] | BITS["language_absent"]}


@needs_driven
def test_people_in_a_driven_log_send_every_header(lake):
    Importer(lake).run(DRIVEN / "rich.log", Options("acme", "go.acme.example"))
    assert Compactor(lake).run().judged == 1
    lacking = [row for row in rows_of(lake) if row["signals"] & (BITS["no_fetch_metadata"] | BITS["no_language"])]
    assert Counter(row["path"] for row in lacking if row["status"] == 200) == {"/": 1}  # the scanner's
    assert len({row["visitor"] for row in lacking}) == 1
