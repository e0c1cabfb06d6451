"""A cluster reads a published lake from objects and a few rows sent with the query; too many rows are rejected."""

from datetime import date, datetime

import pytest

from data.buckets.target import Bucket
from data.publish.publisher import LakePublisher
from data.visits import VISITS
from queries import ClusterUnavailable, FilesGone, Scope, cluster_sources
from queries.cluster_sources import PublishedCopy
from queries.snapshot import for_cluster, live_files, snapshot_of
from service.core.settings import cluster_options, read_settings
from tests.support.manifests import database_of
from tests.support.visits import land, links, visit

ACME = Scope("acme", date(2026, 3, 1), date(2026, 3, 31))


@pytest.fixture
def there(tmp_path):
    return str(tmp_path / "copy")


@pytest.fixture
def copy(lake, there):
    return PublishedCopy(lake, there)


def snapshot(lake, scope=ACME):
    live = live_files(lake, scope)
    return for_cluster(lake, snapshot_of(lake, scope, live), live)


def keep(lake, *paths):
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, 2), path=path) for path in paths])


def test_published_visits_are_read_and_the_rest_is_sent(lake, there, copy):
    keep(lake, "/a", "/b")
    links(lake, "acme", [{"short_code": "a", "target_url": "https://x.example/"}])
    sent = copy.sources(snapshot(lake))
    assert (sent.visits, sent.links) == ([], [])
    assert (sent.sent_visits["path"].to_pylist(), sent.sent_links["short_code"].to_pylist()) == (["/a", "/b"], ["a"])
    LakePublisher(lake, there).publish("acme")
    keep(lake, "/c")
    read = copy.sources(snapshot(lake))
    assert all(path.startswith(f"{there}/acme/") for path in (*read.visits, *read.links))
    assert (len(read.visits), len(read.links), len(read.sent_links)) == (1, 1, 0)
    assert read.sent_visits["path"].to_pylist() == ["/c"]
    assert read.sent_visits.schema.equals(VISITS)


@pytest.mark.parametrize("limit", ["MAX_SENT_ROWS", "MAX_SENT_BYTES"])
def test_too_many_rows_to_send_are_rejected_with_a_remedy(lake, there, copy, monkeypatch, limit):
    keep(lake, "/a", "/b", "/c")
    monkeypatch.setattr(cluster_sources, limit, 2)
    with pytest.raises(ClusterUnavailable, match=rf"of acme are not published at {there} yet.*traffic publish"):
        copy.sources(snapshot(lake))
    LakePublisher(lake, there).publish("acme")
    assert len(copy.sources(snapshot(lake)).visits) == 1


def test_a_file_deleted_after_being_listed_raises_files_gone(lake, copy):
    keep(lake, "/a")
    listed = snapshot(lake)
    (lake.root / listed.landed[0].path).unlink()
    with pytest.raises(FilesGone):
        copy.sources(listed)


def test_an_unreachable_target_raises_cluster_unavailable(lake, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    name = "s3://bucket/lake"
    keep(lake, "/a")
    with database_of(lake.manifest).transaction() as db:
        db.execute(
            "INSERT INTO copies (target, organization, version, erasures, followed) VALUES (?, 'acme', 0, 0, 0)", [name]
        )
    assert Bucket(name).name == name
    with pytest.raises(ClusterUnavailable, match="s3://bucket/lake cannot be used"):
        PublishedCopy(lake, name).sources(snapshot(lake))


@pytest.mark.parametrize(
    ("publish", "engine_lake", "expected"),
    [
        ("", "", ("", False)),
        ("", "/mnt/lake", ("/mnt/lake", False)),
        ("s3://bucket/lake/", "", ("s3://bucket/lake", True)),
        ("s3://bucket/lake", "s3://bucket/lake", ("s3://bucket/lake", True)),
        ("s3://bucket/lake", "/mnt/lake", ("/mnt/lake", False)),
    ],
)
def test_a_cluster_reads_the_published_copy_unless_given_a_lake(publish, engine_lake, expected):
    names = {"TRAFFIC_PUBLISH": publish, "TRAFFIC_ENGINE_LAKE": engine_lake, "TRAFFIC_ENGINE": "sc://spark.example"}
    options = cluster_options(read_settings(names))
    assert (options.folder, options.is_published) == expected
