"""Browsers that send `Sec-Fetch-*` and `Accept-Language`, by their user agents."""

import pytest
import re2

from data.rules.engines import BrowserEngines
from data.rules.tables import HeaderSupport, load

ENGINES = load(HeaderSupport, "engines")
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{} Safari/537.36"
MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS {} like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) {}"
SENDS = {
    CHROME.format("79.0.3945.88"): False,
    CHROME.format("80.0.3987.87"): True,
    CHROME.format("145.0.0.0") + " Edg/145.0.0.0": True,
    CHROME.format("9" * 5000): True,
    "Mozilla/5.0 (X11; Linux x86_64; rv:89.0) Gecko/20100101 Firefox/89.0": False,
    "Mozilla/5.0 (X11; Linux x86_64; rv:90.0) Gecko/20100101 Firefox/90.0": True,
    MAC + "Version/16.3 Safari/605.1.15": False,
    MAC + "Version/16.4.1 Safari/605.1.15": True,
    MAC + "Version/26.0 Safari/605.1.15": True,
    MAC + "CriOS/130 Version/11.1.1 Safari/605.1.15": False,  # Chrome on an iPad that requests desktop pages
    MAC: False,  # a view inside an app, without its version
    IPHONE.format("16_3", "Version/16.3 Mobile/15E148 Safari/604.1"): False,
    IPHONE.format("16_3_1", "CriOS/126.0.6478.54 Mobile/15E148 Safari/604.1"): False,
    IPHONE.format("15_8", "FxiOS/120.0 Mobile/15E148 Safari/605.1.15"): False,
    IPHONE.format("16_4", "EdgiOS/122.0.2365.99 Version/16.0 Mobile/15E148 Safari/604.1"): True,
    IPHONE.format("17_5", "FxiOS/126.0 Mobile/15E148 Safari/605.1.15"): True,
    IPHONE.format("18_6", "Version/26.1 Mobile/15E148 Safari/604.1"): True,
    CHROME.format("120.0.0.0") + " MicroMessenger/8.0": False,
    "Mozilla/5.0 (Linux; Tizen 7.0; SMART-TV) AppleWebKit/537.36 Chrome/94.0.4606.31 TV Safari/537.36": False,
    "curl/8.5.0": False,
}  # fmt: skip


@pytest.mark.parametrize(("user_agent", "sends"), SENDS.items(), ids=range(len(SENDS)))
def test_a_browser_sends_all_headers_since_a_certain_version(user_agent, sends):
    assert BrowserEngines().sends_headers(user_agent) is sends


@pytest.mark.parametrize("row", ENGINES, ids=[row.name for row in ENGINES])
def test_the_example_of_an_engine_is_decided_by_its_row(row):
    assert next(other for other in ENGINES if re2.search(other.pattern, row.example.lower())) == row
    assert BrowserEngines().sends_headers(row.example) is bool(row.since)


@pytest.mark.parametrize("row", ENGINES, ids=[row.name for row in ENGINES])
def test_an_engine_has_a_version_part_for_each_pattern_group(row):
    assert re2.compile(row.pattern).groups == len(row.since)
