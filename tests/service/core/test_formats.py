"""How pages show the API's words, text that contains code, and sizes."""

import pytest

from data.visits import BOT_CATEGORIES, CATEGORY_OF_KIND
from service.core.pages.formats import change, humanize, percent, size, with_days
from service.core.pages.markup import with_code
from tests.support.tables import examples


@examples("word", "expected")
def test_a_word_of_the_api_becomes_readable_text(word, expected):
    assert humanize(word) == expected


WORDS = sorted({*CATEGORY_OF_KIND, *BOT_CATEGORIES})
"""Words for categories and kinds of agents."""


@pytest.mark.parametrize("word", WORDS)
def test_words_are_shown_without_underscores(word):
    assert "_" not in humanize(word)


@pytest.mark.parametrize("word", WORDS)
def test_ai_is_shown_in_capitals(word):
    assert "ai" not in humanize(word).split()


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "–"), (0.0, "0.0 %"), (0.04, "<0.1 %"), (0.05, "0.1 %"), (72.28, "72.3 %"), (99.97, "99.9 %"),
     (100.0, "100.0 %")],
)  # fmt: skip
def test_a_share_has_one_decimal_and_is_0_or_100_only_if_exact(value, expected):
    assert percent(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "–"), (0.0, "→ unchanged"), (0.4, "↑ <1 % more"), (29.4, "↑ 29 % more"), (12.5, "↑ 13 % more"),
     (-99.9, "↓ 99 % fewer"), (-100.0, "↓ 100 % fewer"), (float("inf"), "★ none before")],
)  # fmt: skip
def test_a_change_is_shown_as_a_whole_percentage(value, expected):
    assert change(value) == expected


@examples("text", "expected")
def test_text_in_backticks_is_code_and_everything_is_escaped(text, expected):
    assert str(with_code(text)) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "–"), (999, "999 B"), (1_000, "1.0 kB"), (999_949, "999.9 kB"), (999_960, "1.0 MB"), (999_999_999, "1.0 GB"),
     (5 * 10**15, "5000.0 TB")],
)  # fmt: skip
def test_a_size_never_rounds_to_a_thousand_of_its_unit(value, expected):
    assert size(value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("From 2026-02-15 to 2026-03-04, it", "From 15 Feb 2026 to 4 Mar 2026, it"),
        ("since 2026-03-14 05:00 UTC.", "since 14 Mar 2026 05:00 UTC."),
        ("on 2026-03-14.", "on 14 Mar 2026."),
        ("on 2026-02-30 at 2026-03-14.example.com/2026-03-14", "on 2026-02-30 at 2026-03-14.example.com/2026-03-14"),
    ],
)
def test_dates_in_text_are_formatted_except_in_names(text, expected):
    assert with_days(text) == expected
