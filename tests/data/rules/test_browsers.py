"""One name for one browser, however its user agents and ua-parser call it."""

import pytest

from data.rules.devices import DeviceRules
from data.rules.tables import Browser, load

ROWS = load(Browser, "browsers")
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"


@pytest.fixture(scope="module")
def browser():
    rules = DeviceRules()
    return lambda user_agent: rules.device_info(user_agent)[2]


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_the_example_of_a_row_has_its_name(browser, row):
    assert browser(row.example) == row.name


def test_no_name_of_ua_parser_stands_in_two_rows():
    names = [name for row in ROWS for name in row.names]
    assert len(set(names)) == len(names)


def test_safari_on_a_phone_has_one_name_in_every_app_and_others_the_one_that_ua_parser_gives_them(browser):
    for rest in (" Version/17.5 Mobile/15E148 Safari/604.1", " Mobile/15E148", " Mobile/15E148 Safari/604.1"):
        assert browser(IPHONE + rest) == "Mobile Safari"
    assert browser("MobileSafari/8617.2.4.10.8 CFNetwork/1492.0.1 Darwin/23.3.0") == "Mobile Safari"
    linux = "Mozilla/5.0 (X11; Linux x86_64)"
    assert browser(f"{linux} AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36") == "Chrome"
    assert browser(f"{linux[:-1]}; rv:140.0) Gecko/20100101 Firefox/140.0") == "Firefox"
