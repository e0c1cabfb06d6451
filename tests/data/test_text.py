"""Text for people."""

import pytest

from data.text import plural


@pytest.mark.parametrize(("count", "text"), [(0, "0 visits"), (1, "1 visit"), (2, "2 visits"), (2_000, "2,000 visits")])
def test_a_number_and_its_noun_agree(count, text):
    assert plural(count, "visit") == text
