"""Link tags are kept by edits, folding, backups, rebuilds and copies; files from earlier versions have none."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import duckdb
import pyarrow.parquet as pq
import pytest

from data.links.exports import read_export
from data.links.index import LinkIndex
from data.links.links import LinkEdit, change_links, edit_links, first_links, link_of, links_of, new_link, remove_link
from data.publish.publisher import LakePublisher
from data.publish.verification import verify_copies
from data.recovery.backup import back_up
from data.recovery.verification import verify_lake
from data.store.layout import LINKS
from data.store.link_files import LinkPaths, find_links, fold_links, link_batches, read_links
from queries import Warehouse
from queries.scope import Scope
from queries.shell import script
from queries.snapshot import take_snapshot
from tests.support.lakes import opened, rebuilt
from tests.support.visits import links

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TAGS = {"a": ("mail", "spring"), "b": (), "c": ("mail",), "d": ("<b>", "spring")}
FIRST = [{"short_code": code, "target_url": f"https://shop.example/{code}", "tags": TAGS[code]} for code in "abc"]


@pytest.fixture
def tagged(lake):
    """A lake with three links in its base file, one of them changed since, and a fourth in its file of changes."""
    links(lake, "acme", [row | {"tags": row["tags"] or None} for row in FIRST])
    put(lake, "c", tags=[])
    put(lake, "c", tags=["mail"])
    put(lake, "d", tags=["spring", "<b>"])
    return lake


def put(lake, code, target="", tags=None):
    link = new_link(code, "", target or f"https://shop.example/{code}", NOW, tags)
    edit_links(lake, "acme", [LinkEdit(code, "", link)])


def tags_of(lake):
    return {link.short_code: link.tags for link in links_of(lake, "acme")}


def test_every_reader_of_links_returns_their_tags(tagged):
    assert tags_of(tagged) == TAGS
    assert {link.short_code: link.tags for link in first_links(tagged, "acme", "", 9)[0]} == TAGS
    assert {code: link_of(tagged, "acme", code, "").tags for code in TAGS} == TAGS


def test_changing_the_tags_of_a_link_keeps_its_creation_time(tagged):
    before = link_of(tagged, "acme", "a", "")
    later = new_link("a", "", before.target_url, NOW + timedelta(1), ["x"])
    assert edit_links(tagged, "acme", [LinkEdit("a", "", later)]) == [(before, replace(before, tags=("x",)))]
    assert link_of(tagged, "acme", "a", "") == replace(before, tags=("x",))


def test_an_edit_without_tags_keeps_tags(tagged):
    put(tagged, "a", "https://shop.example/later")
    put(tagged, "d", "https://shop.example/later")
    assert tags_of(tagged) == TAGS


def test_an_edit_sees_tags_from_earlier_edits(tagged):
    tag = new_link("a", "", "https://shop.example/a", NOW, ["new"])
    move = new_link("a", "", "https://shop.example/moved", NOW)
    edit_links(tagged, "acme", [LinkEdit("a", "", tag), LinkEdit("a", "", move)])
    link = link_of(tagged, "acme", "a", "")
    assert (link.target_url, link.tags) == ("https://shop.example/moved", ("new",))


def test_a_link_added_again_has_no_tags(tagged):
    remove_link(tagged, "acme", "a", "")
    assert "a" not in tags_of(tagged)
    put(tagged, "a")
    assert tags_of(tagged)["a"] == ()


def test_folding_keeps_tags(tagged):
    fold_links(tagged, "acme")
    assert tags_of(tagged) == TAGS


def test_a_backup_keeps_tags(tagged, tmp_path):
    back_up(tagged, tmp_path / "backup")
    with opened(tmp_path / "backup") as copy:
        assert tags_of(copy) == TAGS
        assert verify_lake(copy).findings == []


def test_a_rebuild_restores_tags_from_files_alone(tagged):
    with rebuilt(tagged) as again:
        assert tags_of(again) == TAGS


def test_a_published_copy_contains_tags(tagged, tmp_path):
    LakePublisher(tagged, str(tmp_path / "copy")).publish("acme")
    (path,) = (tmp_path / "copy").rglob("links/*.parquet")
    found = {row["short_code"]: tuple(row["tags"] or ()) for row in pq.read_table(path, partitioning=None).to_pylist()}
    assert found == TAGS
    assert list(verify_copies(tagged)) == []


def sql_tags(lake, **files):
    Warehouse(lake)  # which writes the seeds
    snapshot = take_snapshot(lake, Scope("acme", date(2026, 3, 1), date(2026, 3, 2)))
    with duckdb.connect() as shell:
        shell.execute(script(replace(snapshot, **files)))
        return dict(shell.execute("SELECT short_code, tags FROM links_in_scope").fetchall())


def test_sql_returns_tags_or_null_if_there_are_none(tagged):
    assert sql_tags(tagged) == {code: [*tags] or None for code, tags in TAGS.items()}


@pytest.fixture
def untagged(tagged, tmp_path):
    """Write copies of the lake's link files as earlier versions wrote them, without tags; return their paths."""
    live = tagged.manifest.links.live("acme")
    paths = LinkPaths(str(tmp_path / "whole.parquet"), str(tmp_path / "old.changes.parquet"))
    for file, path in zip(live, paths, strict=True):
        pq.write_table(pq.read_table(tagged.root / file.path, partitioning=None).drop_columns("tags"), path)
    return paths


def test_files_without_tags_are_read(untagged):
    rows = [read_links(untagged), find_links(untagged, set("abcd"))]
    for table in rows:
        assert (table.schema, len(table), table["tags"].null_count) == (LINKS, 4, 4)
    assert [batch.schema for batch in link_batches(untagged, 9)] == [LINKS]


def test_sql_reads_files_without_tags(tagged, untagged):
    seeds = {"links": (tagged.seed_links,), "link_changes": (tagged.seed_link_changes,)}
    files = {name: (*seed, path) for (name, seed), path in zip(seeds.items(), untagged, strict=True)}
    assert sql_tags(tagged, **files) == dict.fromkeys("abcd")


@pytest.fixture
def imported(tagged, tmp_path):
    """Return a function that imports CSV text and returns the tags of all links afterwards."""

    def imported(text, **how):
        file = tmp_path / "links.csv"
        file.write_text(text)
        change_links(tagged, "acme", read_export(file, NOW).links, NOW, **how)
        return tags_of(tagged)

    return imported


PLAIN = "short_code,target_url\na,https://shop.example/a\nc,https://moved.example\n"
WITH_TAGS = (
    'short_code,target_url,tags\na,https://shop.example/a,new\nc,https://moved.example,\ne,https://x.example,"y,x"\n'
)


@pytest.mark.parametrize("is_replacing", [False, True])
def test_an_import_without_tags_keeps_the_tags_of_its_links(imported, is_replacing):
    others = {} if is_replacing else {code: TAGS[code] for code in "bd"}
    assert imported(PLAIN, replace=is_replacing) == others | {code: TAGS[code] for code in "ac"}


@pytest.mark.parametrize("is_replacing", [False, True])
def test_an_import_with_tags_sets_the_tags_of_its_links(imported, is_replacing):
    others = {} if is_replacing else {code: TAGS[code] for code in "bd"}
    assert imported(WITH_TAGS, replace=is_replacing) == others | {"a": ("new",), "c": (), "e": ("x", "y")}


def test_added_tags_keep_the_tags_of_an_import(imported):
    found = imported(PLAIN, added_tags=lambda link: ["mail", link.short_code])
    assert found == TAGS | {"a": ("a", "mail", "spring"), "c": ("c", "mail")}


def test_an_import_that_changes_nothing_writes_nothing(tagged, imported):
    before = tagged.manifest.links.live("acme")
    imported(PLAIN.replace("moved.example", "shop.example/c"))
    assert tagged.manifest.links.live("acme") == before


def test_an_index_resolves_the_targets_of_tagged_links(tagged):
    assert LinkIndex(tagged).links("acme").short_code_of("https://shop.example/d") == "d"


def words(lake, tag):
    return LinkIndex(lake).links("acme").with_tag(tag)


def test_an_index_has_the_links_with_a_tag(tagged):
    assert words(tagged, "spring") == ("a d", 2)
    assert words(tagged, "Spring") == words(tagged, "x") == ("", 0)


def test_a_tag_index_includes_domains_if_its_links_have_domains(tagged):
    edit_links(tagged, "acme", [LinkEdit("d", "go.example", new_link("d", "go.example", "https://x.example", NOW))])
    assert words(tagged, "spring") == ("/a /d ?go.example/d a d", 2)
    tag = new_link("a", "b.example", "https://x.example", NOW, ["new"])
    edit_links(tagged, "acme", [LinkEdit("a", "b.example", tag)])
    assert words(tagged, "new") == ("a b.example/a", 1)


def test_a_tag_with_too_many_links_is_only_counted(tagged, monkeypatch):
    monkeypatch.setattr("data.links.index.MAX_TAGGED", 1)
    assert words(tagged, "spring") == ("", 2)
    assert words(tagged, "<b>") == ("d", 1)


def test_no_link_is_found_by_tag_if_links_have_no_tags(lake):
    assert LinkIndex(lake).links("acme").with_tag("a") == ("", 0)
    links(lake, "acme", [{"short_code": "a", "target_url": "https://shop.example/"}])
    assert words(lake, "a") == ("", 0)
