"""Link files are identified by checksum, replaced completely or not at all, and searched by URL in any spelling."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from data import LakeDamaged
from data.links import index as link_index
from data.links.index import LinkIndex, normalized_url
from data.links.links import links_of
from data.store.link_files import link_files
from data.tasks.compaction import Compactor
from tests.support.lakes import failing_at, links_path, rebuilt
from tests.support.visits import links

A, B = ([{"short_code": code, "target_url": "https://shop.example"}] for code in "ab")


def files_in(lake, organization="acme"):
    return {path.name for path in lake.links_folder(organization).iterdir()}


def codes(lake):
    return [link.short_code for link in links_of(lake, "acme")]


def test_replaced_links_stay_for_a_day(lake):
    links(lake, "acme", A)
    first = links_path(lake)
    assert link_files(lake, "acme") == ((lake.seed_links, str(first)), (lake.seed_link_changes,))
    assert link_files(lake, "other") == ((lake.seed_links,), (lake.seed_link_changes,))
    links(lake, "acme", B)
    assert files_in(lake) == {first.name, links_path(lake).name}
    Compactor(lake, lambda: datetime.now(UTC) + timedelta(hours=25)).sweep()
    assert files_in(lake) == {links_path(lake).name}
    assert codes(lake) == ["b"]


def test_changed_links_are_rejected_until_imported_again(lake):
    links(lake, "acme", A)
    index = LinkIndex(lake)
    with links_path(lake).open("r+b") as file:
        file.write(b"parq")
    message = "its SHA-256 differs.; restore it from a backup, or import all links with --replace"
    for read in (links_of, link_files):
        with pytest.raises(LakeDamaged, match=message):
            read(lake, "acme")
    with pytest.raises(LakeDamaged, match=message):
        index.links("acme").short_code_of("https://shop.example")
    links(lake, "acme", B)
    assert index.links("acme").short_code_of("https://shop.example") == "b"


@pytest.mark.parametrize("step", ["move_into_lake", "insert_links"])
@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("earlier", [(), A])
def test_a_failed_import_keeps_the_earlier_links(lake, step, is_done, earlier):
    if earlier:
        links(lake, "acme", earlier)
    before = files_in(lake) if earlier else set()
    module = "data.store.link_files" if step == "move_into_lake" else "data.manifest.links"
    with failing_at(module, step, is_done=is_done):
        links(lake, "acme", B)
    assert codes(lake) == ["a"] * len(earlier)
    assert files_in(lake) == before if earlier else not lake.links_folder("acme").exists() or not files_in(lake)
    assert list(lake.staging.iterdir()) == []


def test_links_left_by_a_killed_import_are_not_read(lake):
    links(lake, "acme", A)
    links(lake, "other", B)
    left = links_path(lake).with_name(links_path(lake, "other").name)
    left.write_bytes(links_path(lake, "other").read_bytes())
    assert codes(lake) == ["a"]
    links(lake, "acme", A)
    assert not left.exists()


def test_without_a_manifest_the_last_imported_links_count(lake):
    for rows in (A, B, A, B):
        links(lake, "acme", rows)
    last = links_path(lake)
    with rebuilt(lake) as again:
        assert links_path(again) == last
        assert codes(again) == ["b"]


def test_damaged_links_are_recognized_by_name_after_a_rebuild(lake):
    links(lake, "acme", A)
    path = links_path(lake)
    links(lake, "other", B)
    path.write_bytes(links_path(lake, "other").read_bytes())
    with rebuilt(lake) as again, pytest.raises(LakeDamaged, match=path.name):
        links_of(again, "acme")


URLS = ["".join(parts) for parts in product(
    ("http://", "HTTPS://"), ("", "Me:x@"), ("shop.example", "SHOP.Example", "ΟΔΟΣ.example"), ("", ":443", ":80"),
    ("", "/", "//", "/a", "/A/"), ("", "?", "?q=/"), ("", "#", "#F"),
)]  # fmt: skip
FIRST = datetime(2026, 1, 1)


def stored(lake, urls):
    """Store links to these URLs, each created later than the previous one; return their index."""
    rows = [
        {"short_code": f"c{number}", "target_url": url, "created_at": FIRST + timedelta(hours=number)}
        for number, url in enumerate(urls)
    ]
    links(lake, "acme", rows)
    return LinkIndex(lake).links("acme")


def test_the_newest_link_to_a_url_is_found_in_any_spelling(lake):
    newest = {normalized_url(url): f"c{number}" for number, url in enumerate(URLS)}
    index = stored(lake, URLS)
    assert 100 < len(newest) < len(URLS) / 5
    for url in [*URLS[::17], "https://[", "https://elsewhere.example/a"]:
        assert index.short_code_of(url) == newest.get(normalized_url(url)), url


def test_looking_up_a_url_does_not_normalize_links(lake, monkeypatch):
    split, counts = link_index.urlsplit, []
    monkeypatch.setattr(link_index, "urlsplit", lambda url: (counts.append(url), split(url))[1])
    for count in (1, 300):
        assert stored(lake, ["https://SHOP.example"] * count).short_code_of("https://shop.example/") == f"c{count - 1}"
    assert len(counts) == 2 * 2  # the URL, and what it was normalized to
