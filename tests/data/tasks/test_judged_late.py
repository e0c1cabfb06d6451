"""Judging days by superseded browsers and the behaviour of their visitors."""

import pytest

from tests.support.judged import CHROME, FILES, asked, judged, readers

LATE, NEXT = CHROME(139), CHROME(140)
"""A version that had been superseded for half a year, and the next version."""
LATE_PHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 "
    "Mobile/15E148 Safari/604.1"
)
"""A browser that was superseded in September 2024 and updates itself later than others."""
SUPPORTED = "Mozilla/5.0 (X11; rv:128.0) Gecko/20100101 Firefox/128.0"
FILE_ALONE = FILES[1:]


def late(path, user_agent=LATE, **columns):
    return asked(path, user_agent=user_agent, **columns)


BARE = {
    "a page where somebody loads one with files": ([late("/"), *readers(1)], True),
    "a page and the icon of the site": ([late("/"), late("/favicon.ico"), *readers(1)], True),
    "a page by the version after that": ([late("/", NEXT), *readers(1)], False),
    "a page by a phone": ([late("/", LATE_PHONE), *readers(1)], False),
    "a page by a version with extended support": ([late("/", SUPPORTED), *readers(1)], False),
    "a page with one of its files": ([late("/"), late("/a.css"), *readers(1)], False),
    "a page that is missing": ([late("/", status=404), *readers(1)], False),
    "a page and a link that redirects": ([late("/"), late("/a", status=302, short_code="a"), *readers(1)], False),
    "a page where the log has no files": ([late("/"), *readers(1, FILES[:1])], False),
    "a page where files are loaded without one": ([late("/"), *readers(1, FILE_ALONE)], False),
    "a page where files are loaded elsewhere": ([late("/"), *readers(1, domain="www.example")], False),
}


@pytest.mark.parametrize(("visits", "is_bare"), BARE.values(), ids=BARE)
def test_whether_a_late_browser_is_bare_depends_on_its_requests(lake, visits, is_bare):
    assert ("superseded_bare" in judged(lake, visits)[1]) is is_bare


UNSERVED = {
    "a page that is refused": ([late("/", status=403), *readers(1)], True),
    "a page that is missing": ([late("/a/b", status=404), *readers(1)], True),
    "a redirect that is not followed": ([late("/", status=301), *readers(1)], True),
    "the icon of the site": ([late("/favicon.ico"), *readers(1)], True),
    "a file without a page or a referrer": ([late("/a.css", referrer=None), *readers(1)], True),
    "a file with a referrer": ([late("/a.css", referrer="go.example"), *readers(1)], False),
    "a refused page by a phone": ([late("/", LATE_PHONE, status=403), *readers(1)], True),
    "a refused page by the version after that": ([late("/", NEXT, status=403), *readers(1)], False),
    "a refused page where no visitor is served": ([late("/", status=403), *readers(1, status=301)], False),
    "a refused page with a file": ([late("/", status=403), late("/a.css"), *readers(1)], False),
    "a redirect to a page of another domain": (
        [late("/", status=301), late("/", domain="www.example"), *readers(1)],
        False,
    ),
    "a link that was followed": ([late("/a", status=302, short_code="a"), *readers(1)], False),
    "a link that is missing": ([late("/a", status=404, short_code="a"), *readers(1)], False),
    "an error of the server": ([late("/", status=502), *readers(1)], False),
}


@pytest.mark.parametrize(("visits", "is_unserved"), UNSERVED.values(), ids=UNSERVED)
def test_a_late_browser_that_is_served_nothing_is_unserved(lake, visits, is_unserved):
    assert ("superseded_unserved" in judged(lake, visits)[1]) is is_unserved


def test_an_agent_under_its_own_name_is_never_late(lake):
    visits = [late("/", status=403, bot_category="other_bot"), *readers(1)]
    assert judged(lake, visits)[1] == set()
