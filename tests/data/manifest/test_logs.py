"""The import that a log continues is chosen from the imports of its beginning."""

import pytest

from data.manifest.logs import Batch, continued_batch

HEADER = Batch(1, "a.example", size=40)
"""An import of a file with only a header, with which many other files also begin."""
FIRST = Batch(2, "a.example", size=100, visits=3)
LONGER = Batch(3, "a.example", size=300, visits=9)
ELSEWHERE = Batch(4, "b.example", size=300, visits=9)


@pytest.mark.parametrize(
    ("prefixes", "size", "expected"),
    [
        ([], 500, None),
        ([FIRST, HEADER], 500, FIRST),
        ([LONGER, FIRST], 500, LONGER),
        ([ELSEWHERE, LONGER], 500, LONGER),
        ([LONGER, ELSEWHERE], 500, LONGER),
        ([HEADER], 500, None),
        ([HEADER], 40, Batch(1, "", size=40)),
    ],
)
def test_the_longest_import_with_visits_is_continued(prefixes, size, expected):
    assert continued_batch(prefixes, size, "a.example") == expected
