"""Link tags: short labels by which an organization groups its links."""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from data.errors import BadInput

MAX_TAGS: Final = 20
"""Maximum number of tags per link."""
MAX_TAG_LENGTH: Final = 64
TAG_RULE: Final = f"1 to {MAX_TAG_LENGTH} characters, without line breaks and other control characters"
_TAG: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_MAX_SHOWN: Final = 40
"""Maximum number of characters of an invalid tag that the error message shows."""


def check_tags(tags: Iterable[object], where: str) -> tuple[str, ...]:
    """Return tags sorted and stripped of surrounding spaces.

    Raises BadInput for an invalid or repeated tag, or too many tags. `where`, such as "line 3", begins the message.
    """
    checked = list[str]()
    for tag in tags:
        text = tag.strip() if isinstance(tag, str) else ""
        if not is_tag(text):
            shown = repr(f"{text[:_MAX_SHOWN]}…" if len(text) > _MAX_SHOWN else tag)
            raise BadInput(f"{where}: {shown} is not a valid tag; use {TAG_RULE}.")
        if text in checked:
            raise BadInput(f"{where}: the tag {text!r} is given twice; give it once.")
        checked.append(text)
        if len(checked) > MAX_TAGS:
            raise BadInput(f"{where}: there are too many tags; a link may have at most {MAX_TAGS}.")
    return tuple(sorted(checked))


def is_tag(text: str) -> bool:
    """Return whether a link may have this tag."""
    return len(text) <= MAX_TAG_LENGTH and bool(_TAG.fullmatch(text)) and text == text.strip()


def split_tags(text: str, separator: str = ",") -> list[str]:
    """Return the tags in one cell of a table: a tag that contains the separator or a quote is quoted, as in CSV."""
    try:
        rows = list(csv.reader([text], delimiter=separator, skipinitialspace=True))
    except csv.Error:
        return [text]  # rejected later, since it is not a tag
    return [tag for tag in (rows[0] if rows else []) if tag.strip()]


def tags_in(value: object, separator: str) -> list[object] | None:
    """Return the tags in a value from an export (a cell, or a list of strings or of objects with a `name`); None for
    any other value.
    """
    if isinstance(value, str):
        return [*split_tags(value, separator)]
    if not isinstance(value, list):
        return None
    return [tag.get("name") if isinstance(tag, Mapping) else tag for tag in value]


def joined_tags(tags: Iterable[str]) -> str:
    """Join tags into one cell that `split_tags` can read."""
    cell = io.StringIO()
    csv.writer(cell, lineterminator="").writerow(tags)
    return cell.getvalue()


def campaign_of(target_url: str) -> str:
    """Return the utm_campaign of a URL, without surrounding spaces; "" if there is none."""
    try:
        query = urlsplit(target_url).query
        return next((value.strip() for name, value in parse_qsl(query) if name == "utm_campaign"), "")
    except ValueError:
        return ""
