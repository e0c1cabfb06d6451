"""Tool results as text for a conversation: an explanation, then JSON, truncated to fit.

Referrers, paths, campaigns and user agents are untrusted, and a language model reads them: they are escaped to ASCII,
truncated to MAX_TEXT_LENGTH, and marked as data.
"""

import json
from typing import Final

CHARACTERS_OF_TOKEN: Final = 4
DEFAULT_TOKENS: Final = 4_000
"""Default size of one result in tokens: about as much as fits into a conversation."""
MAX_TOKENS: Final = 25_000
MAX_TEXT_LENGTH: Final = 200
"""Maximum number of characters in one value; the rest is replaced by an ellipsis."""
MAX_ENCODED_ROWS: Final = 5_000
"""Maximum number of rows encoded to see how many fit; a row has at least 20 characters."""
_NOTE_LENGTH: Final = 250
"""Characters reserved for the note about truncation."""


def text_of(meaning: str, answer: object, tokens: int = DEFAULT_TOKENS) -> str:
    """Return `meaning`, then the answer as JSON: the first rows that fit into the tokens, but at least one. If rows are
    left out, a hint says how to get more.

    In an object, all lists are truncated to the same length.
    """
    room = max(CHARACTERS_OF_TOKEN * tokens - len(meaning) - _NOTE_LENGTH, 0)
    if not isinstance(answer, list):
        max_rows = MAX_ENCODED_ROWS
        text = json.dumps(_cut(answer, max_rows))
        needed = len(text)
        while len(text) > room and max_rows > 1:
            max_rows //= 2
            text = json.dumps(_cut(answer, max_rows))
        more_rows = max_rows * room // len(text)
        if max_rows < more_rows < 2 * max_rows and len(longer := json.dumps(_cut(answer, more_rows))) <= room:
            max_rows, text = more_rows, longer
        if max_rows < MAX_ENCODED_ROWS:
            meaning += f" Only the first {max_rows:,} rows of each list, to save room; {_rest(meaning, needed)}."
        return f"{meaning}\n{text}"
    rows, length = list[str](), 0
    for row in answer[:MAX_ENCODED_ROWS]:
        rows.append(json.dumps(_cut(row)))
        length += len(rows[-1]) + 2
    needed, kept = length, len(rows)
    while kept > 1 and length > room:
        kept -= 1
        length -= len(rows[kept]) + 2
    if kept < len(answer):
        needed = needed * len(answer) // len(rows)
        meaning += f" Only the first {kept:,} of {len(answer):,} rows, to save room; {_rest(meaning, needed)}."
    return f"{meaning}\n[{', '.join(rows[:kept])}]"


def object_with_content(meaning: str, answer: dict[str, object], content: str | None, tokens: int) -> str:
    """Return an object with its content, which is trusted and may fill half of the room, not only MAX_TEXT_LENGTH."""
    half = CHARACTERS_OF_TOKEN * tokens // 2
    encoded = json.dumps(content)
    if len(encoded) > half:
        meaning += f" Its content is truncated; {_rest(meaning, 2 * len(encoded))}, or read it over HTTP."
        while len(encoded) > half:
            content = (content or "")[: len(content or "") * half // len(encoded) - 1]
            encoded = json.dumps(content)
    text = text_of(meaning, answer, tokens - len(encoded) // CHARACTERS_OF_TOKEN - 10)
    return f'{text[:-1]}, "content": {encoded}}}'


def _rest(meaning: str, needed: int) -> str:
    """Return a hint on how to get the rest, or at least more, of an answer whose full text has `needed` characters."""
    tokens = (needed + len(meaning) + _NOTE_LENGTH) // CHARACTERS_OF_TOKEN // 500 * 500 + 500
    if tokens <= MAX_TOKENS:
        return f"call again with max_tokens {tokens} for all"
    return f"request fewer days, add a filter, or set max_tokens to {MAX_TOKENS} for more"


def _cut(value: object, max_rows: int = MAX_ENCODED_ROWS) -> object:
    """Return the value with its strings truncated to MAX_TEXT_LENGTH, and its lists to `max_rows`."""
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT_LENGTH else f"{value[: MAX_TEXT_LENGTH - 1]}…"
    if isinstance(value, list):
        return [_cut(part, max_rows) for part in value[:max_rows]]
    if isinstance(value, dict):
        return {name: _cut(part, max_rows) for name, part in value.items()}
    return value
