"""Text with code in it, as markup."""

import pytest

from service.pages.markup import with_code


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("Use `traffic sign-in` now, then `traffic status`.",
         "Use <code>traffic sign-in</code> now, then <code>traffic status</code>."),
        ("`<b>` & <i>", "<code>&lt;b&gt;</code> &amp; &lt;i&gt;"),
        ("one ` alone", "one ` alone"),
        ("`a` and ` alone", "<code>a</code> and ` alone"),
    ],
)  # fmt: skip
def test_what_stands_between_backticks_is_code_and_everything_is_escaped(text, expected):
    assert str(with_code(text)) == expected
