"""Patterns that operators write."""

import pytest

from data import BadInput
from data.rules.patterns import check_short_code_pattern
from tests.support.tables import examples


@examples("pattern", "error")
def test_an_invalid_pattern_is_one_sentence_without_noise(pattern, error, capfd):
    with pytest.raises(BadInput) as caught:
        check_short_code_pattern(pattern)
    assert str(caught.value) == error
    assert capfd.readouterr() == ("", "")
