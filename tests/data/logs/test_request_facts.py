"""The facts derived from each field in the record of a request, and from missing fields."""

import pytest

from data.logs.request_facts import RequestRecord, request_facts
from data.signals import BITS


@pytest.mark.parametrize(
    ("record", "facts"),
    [
        ({}, ""),
        ({"scheme": "https"}, "https"),
        ({"scheme": "wss"}, "https"),
        ({"scheme": "http"}, "plain_http"),
        ({"scheme": "gopher"}, ""),
        ({"purpose": "", "firefox_ai": "", "signature_agent": "", "verified_bot": ""}, ""),
        ({"purpose": "prefetch;prerender"}, "loaded_ahead"),
        ({"purpose": "preview"}, "loaded_ahead"),
        ({"firefox_ai": "1"}, "link_preview"),
        ({"accept_language": ""}, "language_absent"),
        ({"accept_language": "de"}, "language_sent"),
        ({"signature_agent": '"https://chatgpt.com"'}, "signed"),
        ({"signature_input": "sig1=()"}, "signed"),
        ({"verified_bot": "Search Engine Crawler"}, "edge_verified"),
    ],
)
def test_each_value_in_a_record_gives_a_fact_or_none(record, facts):
    assert request_facts(RequestRecord(**record)) == (BITS[facts] if facts else None)


@pytest.mark.parametrize(
    ("mode", "dest", "facts"),
    [
        (None, None, set()),
        ("", "", {"fetch_absent"}),
        ("", None, {"fetch_absent"}),
        ("navigate", "document", {"fetch_sent", "navigation"}),
        ("navigate", "empty", {"fetch_sent", "navigation"}),
        ("navigate", None, {"fetch_sent", "navigation"}),
        (None, "document", {"fetch_sent", "navigation"}),
        ("navigate", "iframe", {"fetch_sent"}),
        ("no-cors", "image", {"fetch_sent", "page_part"}),
        ("same-origin", "serviceworker", {"fetch_sent", "page_part"}),
        ("cors", "empty", {"fetch_sent", "page_part"}),
        (None, "style", {"fetch_sent", "page_part"}),
        ("no-cors", "empty", {"fetch_sent"}),
        ("same-origin", "empty", {"fetch_sent"}),
    ],
)
def test_fetch_metadata_distinguishes_pages_from_parts(mode, dest, facts):
    bits = request_facts(RequestRecord(fetch_mode=mode, fetch_dest=dest)) or 0
    assert {name for name, bit in BITS.items() if bits & bit} == facts


@pytest.mark.parametrize(
    ("mode", "site", "fact"),
    [
        (None, "cross-site", "fetch_sent"),
        ("", "none", "fetch_absent"),
        (None, "", "fetch_absent"),
    ],
)
def test_fetch_metadata_counts_as_sent_if_all_logged_headers_are(mode, site, fact):
    assert request_facts(RequestRecord(fetch_mode=mode, fetch_site=site)) == BITS[fact]


@pytest.mark.parametrize("missing", ["fetch_mode", "fetch_dest", "fetch_site"])
def test_partial_fetch_metadata_counts_as_not_sent(missing):
    record = RequestRecord(fetch_mode="navigate", fetch_dest="document", fetch_site="none")
    facts = (request_facts(record) or 0, request_facts(record._replace(**{missing: ""})) or 0)
    assert [bits & (BITS["fetch_sent"] | BITS["fetch_absent"]) for bits in facts] == [
        BITS["fetch_sent"], BITS["fetch_absent"],
    ]  # fmt: skip


SCRIPT = {"scheme": "http", "accept": "*/*", "accept_language": "de"}


@pytest.mark.parametrize(
    ("changes", "is_file"),
    [
        ({}, True),
        ({"fetch_mode": ""}, True),
        ({"accept": "application/json, text/plain, */*"}, True),
        ({"accept": "Text/HTML,*/*;q=0.8"}, False),
        ({"accept": ""}, False),
        ({"accept": None}, False),
        ({"accept_language": ""}, False),
        ({"scheme": "https"}, False),
        ({"scheme": None}, False),
        ({"fetch_mode": "navigate"}, False),
    ],
)
def test_an_accept_header_without_html_may_mean_a_file_or_data(changes, is_file):
    bits = request_facts(RequestRecord(**SCRIPT | changes)) or 0
    assert (bits & BITS["accepts_no_page"] != 0) is is_file


@pytest.mark.parametrize(
    ("score", "fact"),
    [
        ("0", 0),
        ("1", "edge_automated"),
        ("2", "edge_suspected"),
        ("29", "edge_suspected"),
        ("30", 0),
        ("", 0),
        ("x", 0),
        ("100", 0),
        ("9" * 5_000, 0),  # more digits than Python converts to an integer
    ],
)
def test_a_bot_score_counts_only_below_thirty(score, fact):
    assert request_facts(RequestRecord(bot_score=score)) == (BITS[fact] if fact else None)
