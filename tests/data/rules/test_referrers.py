"""The hosts and types of referrers."""

import time
import timeit
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.rules.referrers import MAX_HOST_LENGTH, ReferrerTable, host_and_path
from data.rules.tables import Referrer, load
from tests.support.tables import examples_at_once


@pytest.fixture(scope="module")
def places():
    return ReferrerTable(load(Referrer, "referrers"))


@pytest.fixture(scope="module")
def place(places):
    """Return the type and the AI product of a Referer header, according to the shipped table."""

    def found(referrer):
        address = host_and_path(referrer)
        known = places.find(*address) if address else None
        return (known.referrer_type, known.ai_source) if known else (None, None)

    return found


@examples_at_once("referrer", "host", "path")
def test_a_referrer_has_a_host_and_a_path_or_neither(referrer, host, path):
    assert host_and_path(referrer) == (host and (host, path))


GATEWAYS = [
    "eur01.safelinks.protection.outlook.com", "urldefense.com", "urldefense.proofpoint.com", "protect-us.mimecast.com",
    "url.us.m.mimecastprotect.com", "linkprotect.cudasvc.com", "secure-web.cisco.com",
]  # fmt: skip


@pytest.mark.parametrize("host", GATEWAYS)
def test_a_referrer_from_a_mail_gateway_is_email(place, host):
    assert place(f"https://{host}/v3/x") == ("email", None)


@pytest.mark.parametrize("host", ["teams.microsoft.com", "statics.teams.cdn.office.net", "app.slack.com"])
def test_a_referrer_from_a_work_messenger_is_social(place, host):
    assert place(f"https://{host}/") == ("social", None)


def test_a_host_may_have_the_maximum_length():
    name = ("a" * 49 + ".") * 5 + "com"
    assert len(name) == MAX_HOST_LENGTH
    assert host_and_path(f"https://{name}/") == (name, "/")
    assert host_and_path(f"https://b{name}/") is None


@pytest.mark.parametrize(
    "referrer",
    [("http://", "@", " "), ("http://", "a@", " "), ("http://", "a.", " "), ("", "a.", " "), ("http://", "[", ""),
     ("http://", "a:", ""), ("http://a", "/", "\n")],
    ids=["ats", "users", "labels", "bare labels", "brackets", "ports", "slashes"],
)  # fmt: skip
def test_the_cost_of_a_hostile_referrer_grows_linearly(referrer):
    """For thirty times the length, a backtracking reader would need nine hundred times the work."""
    begin, middle, end = referrer

    def work(length):
        text = begin + middle * length + end
        return min(timeit.repeat(lambda: host_and_path(text), number=5, repeat=5, timer=time.process_time))

    assert work(60_000) < 300 * max(work(2_000), 1e-5)


@given(st.text(st.characters(), max_size=80) | st.text("htps:/@.[]a1%?#\\ ", max_size=40))
def test_any_text_gives_a_valid_host_and_path_or_neither(referrer):
    found = host_and_path(referrer)
    if found:
        host, path = found
        assert host == host.lower()
        assert 0 < len(host.removeprefix("android-app://")) <= MAX_HOST_LENGTH
        assert not host.endswith(".")
        assert not path or path[0] in "/\\"


@given(host=st.from_regex(r"[a-z0-9-]{1,20}(\.[a-z0-9-]{1,20}){0,4}", fullmatch=True), path=st.text(max_size=20))
def test_looking_up_any_host_twice_gives_the_same_row(places, host, path):
    assert places.find(host, path) is places.find(host, path)


# The table


@examples_at_once("what", "rows", "asked")
def test_a_referrer_gets_the_row_for_its_host_and_path(what, rows, asked):
    places = ReferrerTable(
        Referrer(host, kind, evidence="https://a.example", checked=date(2026, 11, 20)) for host, kind in rows.items()
    )
    for host, path, kind in asked:
        found = places.find(host, path)
        assert (found and found.referrer_type) == kind, (what, host, path)


@examples_at_once("referrer", "referrer_type", "ai_source")
def test_referrers_are_recognized_but_lookalikes_are_not(place, referrer, referrer_type, ai_source):
    assert place(referrer) == (referrer_type, ai_source)
