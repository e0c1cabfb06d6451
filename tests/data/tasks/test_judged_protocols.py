"""Judging days by visitors that use HTTP/1 where others use HTTP/2 or 3."""

import pytest

from data.signals import BITS
from tests.support.judged import FILES, asked, judged, readers

SAFARI_16 = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/16.0 Safari/605.1.15"
"""A browser that supports HTTP/2, but is older than the versions in engines.toml."""
MODERN = readers(3, protocol="HTTP/2")


def old(path, **columns):
    return asked(path, **{"protocol": "HTTP/1.1"} | columns)


def with_old_readers(agents):
    """Return visits by ten browsers that load pages and files, `agents` of them over HTTP/1."""
    return [visit | {"protocol": "HTTP/2" if visit["visitor"] >= 100 + agents else "HTTP/1.1"} for visit in readers(10)]


BARE = {
    "a page by HTTP/1.1": ([old("/"), *MODERN], True),
    "a page by HTTP/1.0": ([old("/", protocol="HTTP/1.0"), *MODERN], True),
    "a page over TLS": ([old("/", signals=BITS["https"]), *MODERN], True),
    "a page and the icon of the site": ([old("/"), old("/favicon.ico"), *MODERN], False),
    "a page and a missing page": ([old("/"), old("/a/b", status=404), *MODERN], True),
    "a page where others use HTTP/3": ([old("/"), *readers(3, protocol="HTTP/3")], True),
    "a page where one browser in ten uses HTTP/1": ([old("/"), *with_old_readers(1)], True),
    "a page where two browsers in ten use HTTP/1": ([old("/"), *with_old_readers(2)], False),
    "a page where two browsers use HTTP/2": ([old("/"), *readers(2, protocol="HTTP/2")], False),
    "a page where others use HTTP/1": ([old("/"), *readers(3, protocol="HTTP/1.1")], False),
    "a page where only files come by HTTP/2": (
        [old("/"), *readers(3, FILES[1:], protocol="HTTP/2"), *readers(3, FILES[:1], protocol="HTTP/1.1")],
        False,
    ),
    "a page where only pages come by HTTP/2": (
        [old("/"), *readers(3, FILES[1:], protocol="HTTP/1.1"), *readers(3, FILES[:1], protocol="HTTP/2")],
        False,
    ),
    "a page where others are served elsewhere": ([old("/"), *readers(3, protocol="HTTP/2", domain="b.example")], False),
    "a page by HTTP/2": ([old("/", protocol="HTTP/2"), *MODERN], False),
    "a page by an unknown protocol": ([old("/", protocol=None), *MODERN], False),
    "pages by both": ([old("/"), old("/a/b", protocol="HTTP/2"), *MODERN], False),
    "a page over plain HTTP": ([old("/", signals=BITS["plain_http"]), *MODERN], False),
    "a redirect": ([old("/", status=301), *MODERN], False),
    "a page that was not sent again": ([old("/", status=304), *MODERN], False),
    "a page that is missing": ([old("/a/b", status=404), *MODERN], False),
    "a page with one of its files": ([old("/"), old("/a.css"), *MODERN], False),
    "a page and a link that redirects": ([old("/"), old("/a", status=302, short_code="a"), *MODERN], False),
    "a page by an old browser": ([old("/", user_agent=SAFARI_16), *MODERN], False),
    "a page by an unknown browser": ([old("/", user_agent="Browser"), *MODERN], False),
    "a page by an agent under its own name": ([old("/", bot_category="other_bot"), *MODERN], False),
}


@pytest.mark.parametrize(("visits", "is_bare"), BARE.values(), ids=BARE)
def test_a_page_without_files_over_http_1_is_bare(lake, visits, is_bare):
    assert ("old_protocol_bare" in judged(lake, visits)[1]) is is_bare


def test_people_behind_an_old_proxy_who_load_files_stay_people(lake):
    office = [old(path, visitor=7, version=131) for path in FILES]
    assert judged(lake, [*office, *MODERN])[7] == set()
