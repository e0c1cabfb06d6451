"""Generated visits equal those imported from their log, and are always the same."""

from datetime import date

import duckdb
import pytest

from benchmarks.made import drawing as drawing_module
from benchmarks.made.drawing import Drawing
from benchmarks.made.lakes import digest, land_organization, shares
from data import Lake
from data.ingest.importer import Importer, Options
from data.visits import VISITS, VISITS_OF_DAYS
from service.demo.sample import Sample
from tests.support.manifests import database_of

SAMPLE = Sample(3_000, date(2026, 10, 31), days=12, links=40)
UNTOLD = ("domain", "country", "visitor")
"""Columns that a combined log does not contain, and columns that differ in every lake."""


@pytest.fixture(scope="module")
def drawing():
    drawing = Drawing(SAMPLE, "acme", browsers=300)
    yield drawing
    drawing.close()


def test_generated_visits_equal_an_import_of_their_log(drawing, lake, tmp_path):
    (days,) = drawing.parts()
    log = tmp_path / "made.log"
    log.write_text("".join(f"{line}\n" for line in drawing.lines(days)))
    made = drawing.visits(days)
    Importer(lake).run(log, Options("acme"))
    engine = duckdb.connect()
    engine.read_parquet(lake.visit_files("acme", date.min, date.max)).create_view("landed")
    engine.register("made", made)

    told = ", ".join(name for name in VISITS.names if name in made.schema.names and name not in UNTOLD)
    assert len(made) == SAMPLE.visits
    assert {*VISITS_OF_DAYS.names} - {*made.schema.names} == {"protocol", "bytes_sent", "utc_offset", "signals"}
    differing = engine.sql(
        f"(SELECT {told} FROM made EXCEPT ALL SELECT {told} FROM landed) "
        f"UNION ALL (SELECT {told} FROM landed EXCEPT ALL SELECT {told} FROM made)"
    )
    assert differing.fetchall() == []


def test_generated_visits_are_correlated_and_of_every_kind(drawing):
    (days,) = drawing.parts()
    engine = duckdb.connect()
    engine.register("made", drawing.visits(days))
    ((categories, domains, wanderers, probes, pages, hottest),) = engine.sql(
        "SELECT count(DISTINCT bot_category), count(DISTINCT domain), "
        "(SELECT count(*) FROM (SELECT visitor FROM made GROUP BY day, visitor "
        "HAVING count(DISTINCT (user_agent, country)) > 1)), "
        "count(*) FILTER (is_malicious), count(*) FILTER (short_code IS NULL), max(links.visits) "
        "FROM made LEFT JOIN (SELECT short_code, count(*) AS visits FROM made GROUP BY short_code) AS links "
        "USING (short_code)"
    ).fetchall()
    assert (categories, domains, wanderers) == (7, 3, 0)
    assert probes > 10
    assert pages > 50
    assert hottest > 5 * SAMPLE.visits / SAMPLE.links


def test_an_interrupted_lake_build_is_resumed_not_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(drawing_module, "AT_ONCE", 200)  # for several batches
    sample = Sample(600, date(2026, 10, 31), days=4)
    lakes = [Lake(tmp_path / name, create=True) for name in ("one", "two")]
    for lake in lakes:
        land_organization(lake, "acme", sample, browsers=300)
    whole, other = map(digest, lakes)
    assert whole == other
    assert len(lakes[0].manifest.logs.batches("acme", "")) == sample.days
    with database_of(lakes[0].manifest).transaction() as db:  # as if it had not reached the last days
        db.execute("DELETE FROM files WHERE day >= '2026-10-30'")
        db.executemany("DELETE FROM batches WHERE visits = ?", [(visits,) for _, visits in sample.daily()[2:]])
    assert digest(lakes[0]) != whole
    land_organization(lakes[0], "acme", sample, browsers=300)
    assert digest(lakes[0]) == whole


def test_the_measured_organization_has_an_average_share():
    found = shares(100_000, 20)
    assert found["acme"] == 5_000
    assert len(found) == 20
    assert abs(sum(found.values()) - 100_000) < 20
    assert found["org-1"] > 5_000 > found["org-19"]
