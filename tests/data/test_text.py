"""Text formatted for people, and values parsed from people's input."""

import duckdb
import pytest

from data import BadInput
from data.text import bytes_of_memory, percentage, plural


@pytest.mark.parametrize(("count", "text"), [(0, "0 visits"), (1, "1 visit"), (2, "2 visits"), (2_000, "2,000 visits")])
def test_a_number_and_its_noun_agree(count, text):
    assert plural(count, "visit") == text


def test_an_amount_of_memory_is_parsed_as_in_duckdb():
    amounts = {"1MB": 10**6, "300MB": 3 * 10**8, "4 GB": 4 * 10**9, "2MiB": 2 << 20, "999999GiB": 999_999 << 30}
    assert {text: bytes_of_memory(text) for text in amounts} == amounts
    with duckdb.connect() as engine:
        for text, size in amounts.items():
            limits = []
            for amount in (text, f"{size}B"):
                engine.execute("SET memory_limit = $amount", {"amount": amount})
                limits += engine.execute("SELECT current_setting('memory_limit')").fetchall()
            assert limits[0] == limits[1], text
    for text in ("0MB", "", "300", "300kB", "-1MB", "1.5GB", "1000000GB", "\uff13MB", "300MB ", "300mb"):
        with pytest.raises(BadInput, match=f"^'{text}' is not an amount of memory; write it like 300MB or 4GB.$"):
            bytes_of_memory(text)


@pytest.mark.parametrize(
    ("count", "total", "text"),
    [(0, 9, "0.0 %"), (1, 9_999, "0.1 %"), (1, 3, "33.3 %"), (9_998, 9_999, "99.9 %"), (9, 9, "100.0 %")],
)
def test_only_an_exact_share_is_0_or_100_percent(count, total, text):
    assert percentage(count, total) == text
