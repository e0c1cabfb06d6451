"""Judging days by networks: the behaviour of visitors from hosting networks, and browsers from bots' networks."""

import pytest

from data.signals import BITS
from tests.support.judged import CHROME, FILES, judged, readers
from tests.support.judged import asked as asked_by

SUPPORTED = "Mozilla/5.0 (X11; rv:128.0) Gecko/20100101 Firefox/128.0"
HOSTED = BITS["from_hosting"]


def asked(path, visitor=1, version=144, signals=HOSTED, **columns):
    """Return a visitor's request, by default from a hosting network and for a page that was served."""
    return asked_by(path, visitor, version, signals, **columns)


def fleet(visitors, path="/", **columns):
    return [asked(path, number, **columns) for number in range(1, visitors + 1)]


def elsewhere(visitors):
    """Return visits by this many visitors from other networks, with the fleet's user agent."""
    return [asked("/", 10 + number, signals=None) for number in range(visitors)]


BARE = {
    "a page where three load files": ([asked("/"), *readers(3)], True),
    "a page and the icon of the site": ([asked("/"), asked("/favicon.ico"), *readers(3)], True),
    "a page that did not change": ([asked("/", status=304), *readers(3)], True),
    "a page with one of its files": ([asked("/"), asked("/a.css"), *readers(3)], False),
    "a page where two load files": ([asked("/"), *readers(2)], False),
    "a page where three load one file each": ([asked("/"), *readers(3, FILES[:2])], False),
    "a page where files are loaded elsewhere": ([asked("/"), *readers(3, domain="www.example")], False),
    "a page of no hosting network": ([asked("/", signals=None), *readers(3)], False),
    "a page of a network of VPNs": ([asked("/", signals=BITS["from_vpn"]), *readers(3)], False),
    "a link that redirects": ([asked("/a", status=302, short_code="a"), *readers(3)], False),
}


@pytest.mark.parametrize(("visits", "is_bare"), BARE.values(), ids=BARE)
def test_a_hosted_visitor_without_files_is_bare(lake, visits, is_bare):
    assert ("hosting_bare" in judged(lake, visits)[1]) is is_bare


SINGLE = {
    "one page": ([asked("/")], True),
    "one page after a redirect": ([asked("/", status=301), asked("/")], True),
    "one page and the icon of the site": ([asked("/"), asked("/favicon.ico")], True),
    "three pages": ([asked("/"), asked("/b/c"), asked("/d/e")], False),
    "one page with a file": ([asked("/"), asked("/a.css")], False),
    "one page that is missing": ([asked("/b/c", status=404)], False),
    "one page of a link": ([asked("/a", short_code="a")], False),
    "one page of no hosting network": ([asked("/", signals=None)], False),
    "one page of a network of VPNs": ([asked("/", signals=BITS["from_vpn"])], False),
}


@pytest.mark.parametrize(("visits", "is_single"), SINGLE.values(), ids=SINGLE)
def test_a_hosted_visitor_with_one_page_is_single(lake, visits, is_single):
    assert ("hosting_single" in judged(lake, visits)[1]) is is_single


UNSERVED = {
    "a page that is missing": ([asked("/", status=404)], True),
    "a redirect of the root": ([asked("/", status=301)], True),
    "the icon of the site": ([asked("/favicon.ico")], True),
    "an unknown status": ([asked("/", status=None)], True),
    "a page that was served": ([asked("/x", status=404), asked("/")], False),
    "a link that was followed": ([asked("/x", status=404), asked("/a", status=302, short_code="a")], False),
    "a file of a page elsewhere": ([asked("/x", status=404), asked("/a.png")], False),
    "no hosting network": ([asked("/", status=404, signals=None)], False),
}


@pytest.mark.parametrize(("visits", "is_unserved"), UNSERVED.values(), ids=UNSERVED)
def test_a_hosted_visitor_that_is_served_nothing_is_unserved(lake, visits, is_unserved):
    assert ("hosting_unserved" in judged(lake, visits)[1]) is is_unserved


FLEETS = {
    "three with a page each": ([*fleet(3), *readers(1)], True),
    "two with a page each": ([*fleet(2), *readers(1)], False),
    "three with four pages": ([*fleet(3), asked("/b"), *readers(1)], True),
    "three with five pages": ([*fleet(3), asked("/b"), asked("/c"), *readers(1)], False),
    "three where the log has no files": (fleet(3), False),
    "three and as many of other networks": ([*fleet(3), *elsewhere(3), *readers(1)], True),
    "three and more of other networks": ([*fleet(3), *elsewhere(4), *readers(1)], False),
    "three of whose agent one loads a file": ([*fleet(3), asked("/a.css", 10, signals=None), *readers(1)], False),
    "three who follow a link": ([*fleet(3, "/a", status=302, short_code="a"), *readers(1)], False),
    "three of several agents": ([asked("/", n, 140 + n) for n in (1, 2, 3)] + readers(1), False),
}  # fmt: skip


@pytest.mark.parametrize(("visits", "is_fleet"), FLEETS.values(), ids=FLEETS)
def test_hosted_visitors_with_one_agent_are_a_fleet(lake, visits, is_fleet):
    assert ("hosting_fleet" in judged(lake, visits)[1]) is is_fleet


SUPERSEDED = {
    "half a year after the next version": ({"user_agent": CHROME(139)}, True),
    "the version after that": ({"user_agent": CHROME(140)}, False),
    "a version with extended support": ({"user_agent": SUPPORTED}, False),
    "no hosting network": ({"user_agent": CHROME(139), "signals": None}, False),
    "a network of VPNs": ({"user_agent": CHROME(139), "signals": BITS["from_vpn"]}, False),
}  # fmt: skip


@pytest.mark.parametrize(("columns", "is_superseded"), SUPERSEDED.values(), ids=SUPERSEDED)
def test_a_hosted_visit_by_an_old_browser_is_superseded(lake, columns, is_superseded):
    assert ("hosting_superseded" in judged(lake, [asked("/a.css", **columns)])[1]) is is_superseded


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ({}, {"bot_network"}),
        ({"bot_category": "ai_referral"}, {"bot_network"}),
        ({"bot_category": "search_crawler"}, set()),
        ({"signals": BITS["from_vpn"]}, set()),
    ],
)
def test_a_browser_from_the_network_of_a_bot_is_a_bot(lake, columns, names):
    assert judged(lake, [asked("/", **{"signals": BITS["from_bot"]} | columns)]) == {1: names}
