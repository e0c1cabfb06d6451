"""Sample traffic: how much of it there is, and when."""

import re
from datetime import date

from service.demo.sample import Sample


def test_a_last_day_that_is_not_over_has_fewer_visits_and_none_in_the_future():
    whole = list(Sample(3_000, date(2026, 3, 10), days=5, links=20).lines())
    until_six = list(Sample(3_000, date(2026, 3, 10), days=5, links=20, last_second=6 * 3_600).lines())
    assert len(whole) == len(until_six) == 3_000
    clocks = [re.search(r"\[10/Mar/2026:(\S+) ", line) for line in until_six]
    today = [clock[1] for clock in clocks if clock]
    assert 100 < len(today) < sum("[10/Mar/2026:" in line for line in whole) / 3
    assert today == sorted(today)
    assert today[-1] < "06:00:00"


def test_what_is_missing_by_itself_is_asked_of_every_host_or_by_scanners():
    lines = "\n".join(Sample(3_000, date(2026, 3, 10), days=5, links=20).lines())
    missing = set(re.findall(r'"GET ([^ ?]+)\S* HTTP/1.1" 404 ', lines))
    assert missing == {"/robots.txt", "/favicon.ico", "/wp-login.php", "/.env", "/sitemap.xml"}
