"""Links as CSV: how they are read, which lines are rejected, and rejections that change nothing."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from data import BadInput, LakeDamaged
from data.links.exports import read_export
from data.links.links import Link, LinkEdit, change_links, edit_links, first_links, links_of, new_link
from service.commands import app
from tests.support.lakes import links_path
from tests.support.tables import examples, tables

NOW = datetime(2026, 3, 15, 12, tzinfo=UTC)
NAIVE = NOW.replace(tzinfo=None)


@pytest.fixture
def imported(lake, tmp_path):
    """Replace an organization's links by those in the text of a CSV file; return its links afterwards."""

    def imported(text, organization="acme"):
        file = tmp_path / "links.csv"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        changes = change_links(lake, organization, read_export(file, NOW).links, NOW, replace=True)
        found = links_of(lake, organization)
        assert changes.links == found
        return found

    return imported


@examples("text", "expected")
def test_links_are_read_from_columns_in_any_order(imported, text, expected):
    links = [
        Link(code, domain, url, datetime.fromisoformat(at) if at else NAIVE, ()) for code, domain, url, at in expected
    ]
    assert imported(text) == links


def test_an_import_replaces_only_its_organizations_links(imported, lake):
    imported("short_code,target_url\na,https://shop.example/a\n", "other")
    imported("short_code,target_url\na,https://shop.example/a\n")
    assert [link.short_code for link in imported("short_code,target_url\nb,https://shop.example/b\n")] == ["b"]
    assert [link.short_code for link in links_of(lake, "other")] == ["a"]
    assert imported("short_code,target_url\n") == []
    assert links_of(lake, "nobody") == []


FIRST = "short_code,target_url,created_at\na,https://x.example,\nb,https://x.example,2026-01-01T00:00:00Z\nc,https://x.example,\n"
LATER = NOW + timedelta(days=1)


def change(lake, tmp_path, text, **how):
    file = tmp_path / "later.csv"
    file.write_text(text)
    changes = change_links(lake, "acme", read_export(file, LATER).links, LATER, **how)
    return {name: [link.short_code for link in getattr(changes, name)] for name in changes._fields}


def codes(*parts):
    return dict(zip(("added", "changed", "unchanged", "removed"), map(list, parts), strict=True))


def test_adding_and_changing_links_keeps_all_others(imported, lake, tmp_path):
    before, later = imported(FIRST), LATER.replace(tzinfo=None)
    text = "short_code,target_url\na,https://x.example\nb,https://y.example\nd,https://x.example\n"
    for dry_run in (True, False):
        assert links_of(lake, "acme") == before
        assert change(lake, tmp_path, text, dry_run=dry_run) == codes("d", "b", "ac", "")
    found = [(link.short_code, link.target_url[8], link.created_at) for link in links_of(lake, "acme")]
    assert found == [("a", "x", NAIVE), ("b", "y", later), ("c", "x", NAIVE), ("d", "x", later)]


def test_replacing_removes_links_that_are_not_in_the_file(imported, lake, tmp_path):
    imported(FIRST)
    text = "short_code,domain,target_url\na,,https://x.example\nb,go.example,https://x.example\n"
    for dry_run, left in ((True, 3), (False, 2)):
        assert change(lake, tmp_path, text, replace=True, dry_run=dry_run) == codes("b", "", "a", "bc")
        assert len(links_of(lake, "acme")) == left
    assert [(link.short_code, link.domain) for link in links_of(lake, "acme")] == [("a", ""), ("b", "go.example")]


def test_damaged_links_can_only_be_replaced(imported, lake, tmp_path):
    imported(FIRST)
    text = "short_code,target_url,created_at\na,https://x.example,2020-01-01\nb,https://x.example,2026-01-01T00:00Z\n"
    assert change(lake, tmp_path, text) == codes("", "a", "bc", "")
    links_path(lake).write_bytes(b"no Parquet")
    with pytest.raises(LakeDamaged, match="--replace"):
        change(lake, tmp_path, FIRST)
    assert change(lake, tmp_path, FIRST, replace=True) == codes("abc", "", "", "")


def test_links_added_concurrently_are_all_stored(lake):
    def add(number):
        change_links(lake, "acme", [new_link(f"c{number}", "", "https://x.example", NOW)], NOW)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(12)))
    assert len(links_of(lake, "acme")) == 12


def test_edits_are_applied_in_order_and_return_old_and_new_links(imported, lake):
    imported(FIRST)
    a = next(link for link in links_of(lake, "acme") if link.short_code == "a")
    new, same = (new_link(code, "", url, LATER) for code, url in (("new", "https://n.example"), ("a", a.target_url)))
    moved = replace(same, target_url="https://moved.example")
    edits = [LinkEdit("new", "", new), LinkEdit("a", "", same), LinkEdit("a", "", moved), LinkEdit("a", "x", None),
             LinkEdit("new", "", None), LinkEdit("b", "", None)]  # fmt: skip
    done = edit_links(lake, "acme", edits)
    new, moved = replace(new, tags=()), replace(moved, tags=())
    assert done[:5] == [(None, new), (a, a), (a, moved), (None, None), (new, None)]
    assert done[5][0].short_code == "b"
    left = [(link.short_code, link.target_url) for link in links_of(lake, "acme")]
    assert left == [("a", "https://moved.example"), ("c", "https://x.example")]
    before = links_path(lake)
    edit_links(lake, "acme", [LinkEdit("a", "", moved), LinkEdit("b", "", None)])
    assert links_path(lake) == before


def test_the_first_links_that_contain_a_string_are_found(imported, lake):
    imported(FIRST)
    for search, most, found, has_more in (("", 3, "abc", False), ("", 2, "ab", True), ("X.EXAMPLE", 9, "abc", False)):
        links, more = first_links(lake, "acme", search, most)
        assert ("".join(link.short_code for link in links), more) == (found, has_more)
        assert first_links(lake, "acme", "y", most) == ([], False)
        assert first_links(lake, "nobody", search, most) == ([], False)


def test_first_links_builds_one_link_more_than_it_returns(lake, monkeypatch):
    change_links(lake, "acme", [new_link(f"code{n}", "", "https://x.example", NOW) for n in range(6_000)], NOW)
    made = []
    monkeypatch.setattr("data.links.links.Link", lambda **row: made.append(row) or Link(**row))
    assert len(first_links(lake, "acme", "", 5_000)[0]) == 5_000
    assert len(made) == 5_001  # the last one shows that there are more


GOOD = "short_code,target_url,domain,created_at\nkept,https://shop.example/,,2026-01-01T00:00:00Z\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [*tables(__file__)["MISTAKES"], (f"short_code,target_url\n{'x' * 257},https://shop.example/\n", "line 2"),
     (f"short_code,target_url\na,https://shop.example/{'x' * 2048}\n", "line 2"),
     (GOOD.encode("utf-16"), "line 1: the byte 0xff is not UTF-8"),
     (b"short_code,target_url\na,https://shop.example/\xe9\n", "line 2: the byte 0xe9 is not UTF-8")],
    ids=itertools.count(1),
)  # fmt: skip
def test_a_file_with_a_mistake_is_rejected_naming_its_line(imported, lake, text, told):
    before = imported(GOOD)
    with pytest.raises(BadInput, match=told) as caught:
        imported(text)
    assert "links.csv" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert links_of(lake, "acme") == before
    assert not list(lake.staging.glob("links-*"))


def test_an_invalid_organization_or_a_missing_file_is_rejected(imported, tmp_path):
    for organization in ("_seed", "a/b", "", "ä"):
        with pytest.raises(BadInput, match="organization"):
            imported(GOOD, organization)
    with pytest.raises(BadInput, match=r"nowhere\.csv"):
        read_export(tmp_path / "nowhere.csv", NOW)
    with pytest.raises(BadInput):
        read_export(tmp_path, NOW)


def test_exported_links_can_be_imported_unchanged(imported, lake):
    text = (
        "short_code,domain,target_url,created_at,tags\n"
        'a,,"https://shop.example/?q=""x"",y",2026-01-01T00:00:00.000001Z,"=1+1,""a, """"b"""""",<b>"\n'
        "größe,bücher.example,https://shop.example/ü,1999-12-31T23:59:59Z,ü|x\n"
        "=1+1,,https://shop.example/#a,,\n"
    )
    before = imported(text)
    listed = CliRunner().invoke(app, ["links", "list", "--org", "acme", "--lake", str(lake.root)])
    assert listed.exit_code == 0
    assert listed.stdout.splitlines()[0] == "short_code,domain,target_url,created_at,tags"
    assert before[1].tags == ("<b>", "=1+1", 'a, "b"')
    assert imported(listed.stdout_bytes) == before


def test_an_edit_has_at_most_two_copies_of_the_links_in_memory(lake):
    many = [Link(f"code{number}", "", f"https://example.com/target/{number}", NAIVE) for number in range(100_000)]
    change_links(lake, "acme", many, NOW)
    usual = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counted)
    try:
        edit_links(lake, "acme", [LinkEdit("one", "", new_link("one", "", "https://example.com/", NOW))])
    finally:
        pa.set_memory_pool(usual)
    assert counted.max_memory() < 20_000_000
