"""Target URLs and the links that lead to them, however both are spelled."""

from datetime import datetime, timedelta
from itertools import product

from data.store import link_index
from data.store.link_index import LinkIndex, normalized_url
from tests.support.visits import links

URLS = ["".join(parts) for parts in product(
    ("http://", "HTTPS://"), ("", "Me:x@"), ("shop.example", "SHOP.Example", "ΟΔΟΣ.example"), ("", ":443", ":80"),
    ("", "/", "//", "/a", "/A/"), ("", "?", "?q=/"), ("", "#", "#F"),
)]  # fmt: skip
FIRST = datetime(2026, 1, 1)


def stored(lake, urls):
    """The links to these URLs, of which each was created later than the one before."""
    rows = [
        {"short_code": f"c{number}", "target_url": url, "created_at": FIRST + timedelta(hours=number)}
        for number, url in enumerate(urls)
    ]
    links(lake, "acme", rows)
    return LinkIndex(lake).links("acme")


def test_the_newest_link_to_a_url_is_found_however_both_are_spelled(lake):
    newest = {normalized_url(url): f"c{number}" for number, url in enumerate(URLS)}
    index = stored(lake, URLS)
    assert 100 < len(newest) < len(URLS) / 5
    for url in [*URLS[::17], "https://[", "https://elsewhere.example/a"]:
        assert index.short_code_of(url) == newest.get(normalized_url(url)), url


def test_a_url_is_looked_up_without_normalizing_those_of_the_links(lake, monkeypatch):
    split, counts = link_index.urlsplit, []
    monkeypatch.setattr(link_index, "urlsplit", lambda url: (counts.append(url), split(url))[1])
    for count in (1, 300):
        assert stored(lake, ["https://SHOP.example"] * count).short_code_of("https://shop.example/") == f"c{count - 1}"
    assert len(counts) == 2 * 2  # the URL, and what it was normalized to
