"""Text with code in it, as markup."""

from service.pages.markup import with_code
from tests.support.tables import examples


@examples("text", "expected")
def test_what_stands_between_backticks_is_code_and_everything_is_escaped(text, expected):
    assert str(with_code(text)) == expected
