"""A reader of a target finds every visit of the lake once, in an object or in an unpublished file."""

from collections import Counter

import pyarrow.parquet as pq
import pytest

from data import LakeDamaged
from data.buckets.target import Folder, TargetUnavailable
from data.ingest.importer import Importer, Options
from data.publish import publisher as publishing
from data.publish.reading import PublishedLake
from data.tasks.reclassification import Reclassifier
from data.tasks.retention import apply_retention
from tests.support.lakes import files_of, rows_of
from tests.support.published import NOW, at, erase, merge, out_of_reach
from tests.support.user_agents import CHROME
from tests.support.visits import land, links

CRAWLER = {"user_agent": "GPTBot/1.2"}


@pytest.fixture
def found(lake, there):
    """Check that objects and lake files have each of the lake's visits once, in its current form; return the numbers of
    objects and of files."""
    reading = PublishedLake(lake, str(there))

    def found(organization="acme"):
        files = files_of(lake, organization)
        place = reading.find(organization, files, [])
        unpublished = [lake.root / file.path for file in place.unpublished_visits]
        read = [
            pq.ParquetFile(path).read().to_pylist() for path in (*(there / key for key in place.visits), *unpublished)
        ]
        assert Counter(str(row) for rows in read for row in rows) == Counter(map(str, rows_of(lake, organization)))
        return len(place.visits), len(unpublished)

    return found


def land_open_day(lake, name):
    """Land files for a day that is still open: they can be merged, but they are not judged."""
    for number in range(13):
        land(lake, "acme", [at(NOW.day, path=f"/{name}/{number}", **CRAWLER)])


def test_each_visit_is_found_once_after_every_change(lake, publish, found):
    assert found() == (0, 0)
    land(lake, "acme", [at(2, path="/a", domain="gone.example"), at(2, path="/b", **CRAWLER)])
    land(lake, "acme", [at(5, **CRAWLER)])
    assert found() == (0, 2)
    publish()
    assert found() == (2, 0)
    steps = [
        (lambda: land(lake, "acme", [at(2, path="/late")]), (2, 1)),
        (lambda: merge(lake), (0, 2)),  # both days were judged
        (lambda: Reclassifier(lake).run(["acme"]), (0, 2)),
        (lambda: erase(lake, domain="gone.example"), (1, 1)),
        (lambda: apply_retention(lake, 7, NOW), (1, 0)),
    ]
    for step, expected in steps:
        step()
        assert found() == expected
        publish()
        assert found() == (sum(expected), 0)


def test_an_unpublished_merge_is_read_from_its_published_sources(lake, publish, found):
    land_open_day(lake, "a")
    publish()
    merge(lake)
    assert len(files_of(lake)) == 1
    assert found() == (13, 0)
    land_open_day(lake, "b")
    assert found() == (13, 13)
    merge(lake)  # published and unpublished files
    assert found() == (0, 1)
    publish()
    assert found() == (1, 0)


def test_a_changed_merge_is_not_read_from_its_published_sources(lake, publish, found):
    land_open_day(lake, "a")
    land(lake, "acme", [at(2, domain="gone.example")])
    publish()
    merge(lake)
    erase(lake, domain="gone.example")
    assert found() == (0, 1)


def test_erased_visits_are_not_found_even_if_still_published(lake, there, publish, found, monkeypatch):
    land(lake, "acme", [at(2, path="/canary", domain="gone.example"), at(2)])
    publish()
    with monkeypatch.context() as patch:
        patch.setattr(Folder, "put", out_of_reach)
        erase(lake, domain="gone.example")
        with pytest.raises(TargetUnavailable):
            publish()
        assert found() == (0, 1)
    assert b"canary" in b"".join(path.read_bytes() for path in there.rglob("*.parquet"))
    publish()
    assert found() == (1, 0)


def test_a_line_read_again_is_found_only_in_its_new_form(lake, publish, found, tmp_path):
    line = f'203.0.113.7 - - [10/Mar/2026:10:05:03 +0000] "GET /a HTTP/1.1" 200 5316 "-" "{CHROME}"\n'
    log = tmp_path / "access.log"
    log.write_text(line.removesuffix('37.36"\n'))
    Importer(lake).run(log, Options("acme", log_format="combined"))
    publish()
    before = found()
    log.write_text(line)
    Importer(lake).run(log, Options("acme", log_format="combined"))
    assert (before, found()) == ((1, 0), (0, 1))


def test_each_organizations_visits_are_found_separately(lake, publish, found):
    for name in ("acme", "other"):
        land(lake, name, [at(2, path=f"/{name}")])
    publish("other")
    assert (found("acme"), found("other")) == ((0, 1), (1, 0))


def test_a_log_without_its_oldest_versions_is_read(lake, there, publish, found, monkeypatch):
    monkeypatch.setattr(publishing, "MAX_VERSIONS", 2)
    land(lake, "acme", [at(2)])
    publish()
    assert found() == (1, 0)
    for number in range(5):
        land(lake, "acme", [at(3, path=f"/{number}")])
        publish()
    assert not (there / "acme/visits/_delta_log/00000000000000000001.json").exists()
    assert found() == (6, 0)


def test_links_are_found_once_they_are_published(lake, there, publish):
    reading = PublishedLake(lake, str(there))

    def found():
        place = reading.find("acme", [], [one.path for one in lake.manifest.links.all_live()])
        return [pq.ParquetFile(there / key).read()["short_code"].to_pylist() for key in place.links], len(
            place.unpublished_links
        )

    for code in ("a", "b"):
        links(lake, "acme", [{"short_code": code, "target_url": "https://x.example/"}])
        assert found() == ([], 1)
        publish()
        assert found() == ([[code]], 0)


def test_a_missing_live_file_counts_as_damage(lake, there, publish):
    land_open_day(lake, "a")
    publish()
    merge(lake)
    (file,) = files_of(lake)
    (lake.root / file.path).unlink()
    with pytest.raises(LakeDamaged, match="cannot be read"):
        PublishedLake(lake, str(there)).find("acme", [file], [])
