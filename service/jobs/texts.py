"""Text in jobs: text from requests is sanitized, and text from editors is checked.

Paths, agent names, hosts and codes are untrusted, and programs that follow instructions read the jobs. Titles and
summaries contain no such text except valid hosts and plain short codes. Elsewhere, it is percent-encoded ASCII of at
most 200 characters.
"""

import re
from typing import Final
from urllib.parse import quote

from data import BadInput
from service.jobs.states import TooLarge

MAX_LENGTH: Final = 200
_SHORT_CODE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CUT_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]?$")


def percent_encoded(text: str) -> str:
    """Return a string as ASCII letters, digits, `/_.~-*` and percent escapes. Existing escapes are kept, so an encoded
    path still denotes the same URL.
    """
    return quote(text, safe="/%*", errors="replace")


def sanitized(value: object) -> object:
    """Return a value from an untrusted column: strings, including those in lists, are encoded and truncated."""
    if isinstance(value, str):
        return cut(percent_encoded(value), MAX_LENGTH)
    if isinstance(value, list | tuple):
        return [sanitized(one) for one in value]
    return value


def cut(encoded: str, length: int) -> str:
    """Return a percent-encoded string truncated to `length`, without an incomplete escape at the end."""
    return encoded if len(encoded) <= length else _CUT_ESCAPE.sub("", encoded[:length])


def is_short_code(text: str) -> bool:
    """Return whether a string is 1 to 64 letters, digits, `_` and `-`, so that it cannot be a sentence."""
    return _SHORT_CODE.fullmatch(text) is not None


def check_text(name: str, text: str, max_length: int) -> str:
    """Return an editor's text. Raises TooLarge beyond `max_length` characters, BadInput for NUL and lone surrogates."""
    if len(text) > max_length:
        raise TooLarge(f"{name} has {len(text):,} characters; the maximum is {max_length:,}.")
    if "\0" in text or text.encode(errors="ignore").decode() != text:
        raise BadInput(f"{name} contains NUL or half a surrogate pair; send plain Unicode text.")
    return text


def check_line(name: str, text: str, max_length: int) -> str:
    """Return an editor's single line of text: 1 to `max_length` printable characters. Raises TooLarge or BadInput."""
    if not check_text(name, text, max_length).strip() or not text.isprintable():
        raise BadInput(f"{name} must be one line of printable characters.")
    return text
