"""Reads files of links: our own CSV, and exports from the link shorteners in link_formats.toml."""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
import tomli

from data.errors import BadInput
from data.hosts import normalized_host
from data.links.links import COLUMNS, Link, parse_link
from data.links.tags import tags_in

AUTO: Final = "auto"
_FIELDS: Final = ("short_code", "short_url", "target_url", "domain", "created_at", "tags")
_TIMES: Final = (
    "%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y", "%Y/%m/%d", "%Y/%m/%d %H:%M:%S", "%Y-%m-%d %H:%M:%S UTC",
    "%Y-%m-%d %H:%M:%S %z", "%Y-%m-%d %I:%M %p", "%b %d, %Y %H:%M", "%b %d, %Y %I:%M %p", "%b %d, %Y, %I:%M %p",
    "%B %d, %Y %I:%M %p", "%B %d, %Y, %I:%M %p", "%a %b %d %Y %H:%M:%S GMT%z",
)  # fmt: skip
"""Time formats of exports and spreadsheets, in addition to ISO 8601. In each, it is clear which part is the month."""
_SECONDS: Final = {10: 1, 13: 1_000}
"""The divisor that converts a time to seconds since 1970, by its number of digits."""
_UNDECODABLE: Final = re.compile("[\udc80-\udcff]")  # a byte that is not UTF-8, as surrogateescape decodes it


class LinkShape(msgspec.Struct, frozen=True):
    """A row of link_formats.toml: the columns or members that make up a link in one kind of file."""

    format: str
    kind: str
    target_url: str
    evidence: str
    short_code: str = ""
    short_urls: tuple[str, ...] = ()
    domain: str = ""
    created_at: str = ""
    tags: str = ""
    tags_separator: str = ","
    items: tuple[str, ...] = ()
    total: tuple[str, ...] = ()

    def has_columns_in(self, names: Iterable[str]) -> bool:
        """Return whether a file with these folded column names has this shape."""
        keys = [self.short_code] if self.short_code else self.short_urls
        return fold_name(self.target_url) in names and any(fold_name(key) in names for key in keys)


class LinkExport(NamedTuple):
    """The contents of a link file."""

    links: list[Link]
    left_out: list[str]  # for each link that was left out, a sentence with its line and the problem
    missing: int  # number of links that the service has but the file lacks, for example because pages are missing


class _ExportRow(NamedTuple):
    place: str  # such as "line 2"
    shape: LinkShape
    fields: Mapping[str, Any]  # by folded name


@cache
def link_shapes() -> tuple[LinkShape, ...]:
    """Return the rows of link_formats.toml."""
    rows = tomli.loads(Path(__file__).with_name("link_formats.toml").read_text("utf-8"))["shape"]
    return msgspec.convert(rows, tuple[LinkShape, ...])


def format_names() -> list[str]:
    """Return the names of the formats that can be read, AUTO first."""
    return [AUTO, *dict.fromkeys(shape.format for shape in link_shapes())]


def parse_columns(text: str) -> LinkShape:
    """Parse a value of --columns, such as "short_code=Slug,target_url=Long URL". Raises BadInput."""
    given = dict(part.strip().partition("=")[::2] for part in text.split(","))
    unknown = sorted(given.keys() - set(_FIELDS))
    if unknown or not all(given.values()):
        raise BadInput(
            f"--columns {text!r}: write field=column pairs, separated by commas; the fields are {', '.join(_FIELDS)}."
        )
    if "target_url" not in given or not given.keys() & {"short_code", "short_url"}:
        raise BadInput(f"--columns {text!r}: it must name target_url and either short_code or short_url.")
    short_urls = [given.pop("short_url")] if "short_url" in given else []
    row = {**given, "short_urls": short_urls, "format": "csv", "kind": "csv", "evidence": "--columns"}
    return msgspec.convert(row, LinkShape)


def read_export(
    path: Path, now: datetime, *, format_name: str = AUTO, columns: str = "", skip_invalid: bool = False
) -> LinkExport:
    """Read the links in a file: CSV with a header line, or JSON.

    JSON may be one page of an API's response, or several pages, concatenated or in a list. `columns` maps the columns
    of a CSV file in the syntax of parse_columns. Links without a creation time count as created `now`. With
    `skip_invalid`, invalid links are left out. Raises BadInput if the file cannot be read or is not in a known format,
    or if a link is invalid; the message then names its line, or its page and its number on that page.
    """
    if format_name not in format_names():
        raise BadInput(f"--format {format_name!r} is not known; use {', '.join(format_names())}.")
    known = [shape for shape in link_shapes() if format_name in {AUTO, shape.format}]
    known = [parse_columns(columns)] if columns else known
    lines, beginning, first = _lines(path), list[str](), ""
    while not first and (line := next(lines, "")):
        beginning.append(line)
        first = line.lstrip()[:1]
    kind = "json" if first in {"{", "["} and not columns else "csv"
    known = [shape for shape in known if shape.kind == kind]
    if not known:
        raise BadInput(f"{path} is {kind.upper()}, but an export from {format_name} is not; use --format {AUTO}.")
    if kind == "csv":
        return _check_links(path, _csv_rows(path, chain(beginning, lines), known), now, skip_invalid)
    pages = list(_pages(path, "".join(chain(beginning, lines)), known))
    totals = [str(_member(page, shape.total)) for shape, page in pages if shape.total]
    total = max((int(number) for number in totals if number.isdecimal()), default=0)
    rows = []
    for number, (shape, page) in enumerate(pages, 1):
        links = _member(page, shape.items)
        for place, link in enumerate(links.values() if isinstance(links, dict) else links, 1):
            fields = {fold_name(name): value for name, value in link.items()}
            rows.append(_ExportRow(f"page {number}, link {place}", shape, fields))
    return _check_links(path, rows, now, skip_invalid)._replace(missing=max(total - len(rows), 0))


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file with their line endings, as csv needs them. Raises BadInput."""
    try:
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            for number, line in enumerate(file, 1):
                if byte := _UNDECODABLE.search(line):
                    value = f"0x{ord(byte[0]) & 0xFF:02x}"
                    raise BadInput(f"{path}, line {number}: the byte {value} is not UTF-8; save the file as UTF-8.")
                yield line
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.") from error


def _check_links(path: Path, rows: Iterable[_ExportRow], now: datetime, skip_invalid: bool) -> LinkExport:
    """Return the links of all rows. Raises BadInput for the first invalid link, unless invalid links are skipped."""
    export = LinkExport([], [], 0)
    places: dict[tuple[str, str], str] = {}
    for row in rows:
        value = row.fields.get(fold_name(row.shape.tags)) if row.shape.tags else None
        tags = tags_in(value, row.shape.tags_separator)
        for parts in _links_in(row):
            try:
                link = parse_link(parts, f"{path}, {row.place}", now, tags)
                first = places.get((link.short_code, link.domain))
                if first not in {None, row.place}:
                    raise BadInput(f"{path}, {row.place}: {link.short_code} on this domain is already in {first}.")
            except BadInput as error:
                if not skip_invalid:
                    problem = str(error).removesuffix(".")
                    raise BadInput(f"{problem}; correct it, or leave such links out with --skip-invalid.") from None
                export.left_out.append(str(error))
            else:
                if first is None:
                    places[link.short_code, link.domain] = row.place
                    export.links.append(link)
    return export


def _links_in(row: _ExportRow) -> Iterator[dict[str, str]]:
    """Yield the columns of each link in a row: a single link, or a link for each of its short URLs."""
    shape = row.shape
    urls = [url for name in shape.short_urls for url in _texts(row.fields.get(fold_name(name)))]
    created_at = row.fields.get(fold_name(shape.created_at))
    common = {"target_url": _text(row.fields.get(fold_name(shape.target_url))), "created_at": _time_in(created_at)}
    domain = _text(row.fields.get(fold_name(shape.domain)))
    if shape.short_code:
        short_code = _text(row.fields.get(fold_name(shape.short_code))).strip("/")
        host = domain or next((_split(url)[0] for url in urls), "")
        yield {**common, "short_code": short_code, "domain": host}
        return
    for url in urls or [""]:
        host, short_code = _split(url)
        yield {**common, "short_code": short_code, "domain": domain or host}


def _time_in(value: object) -> str:
    """Convert a time in a format of _TIMES, or in seconds or milliseconds since 1970, to ISO 8601. Return any other
    string unchanged, and '' for any other value.
    """
    text = str(value) if isinstance(value, int) else _text(value).partition(" (")[0]
    if text.isascii() and text.isdecimal() and len(text) in _SECONDS:
        return datetime.fromtimestamp(int(text) / _SECONDS[len(text)], UTC).isoformat()
    with suppress(ValueError):
        datetime.fromisoformat(text)
        return text  # checked first, since trying the formats takes longer than the rest of a link
    for spelling in _TIMES:
        with suppress(ValueError):
            return datetime.strptime(text, spelling).isoformat()  # without a zone, it counts as UTC
    return text


def _split(short_url: str) -> tuple[str, str]:
    """Return the host and short code of a short URL, with or without its scheme."""
    try:
        parts = urlsplit(short_url if "//" in short_url else f"//{short_url}")
    except ValueError:
        return "", ""
    return normalized_host(parts.netloc) or "", parts.path.strip("/")


def fold_name(name: str) -> str:
    """Normalize the name of a column, so that Long URL, longUrl and long_url are equal."""
    return "".join(character for character in name.lower() if character not in " _-")


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _texts(value: object) -> list[str]:
    """Return the strings in a value: a string, a list of strings, or an object with a string as its member `url`."""
    if isinstance(value, Mapping):
        value = value.get("url")
    values = value if isinstance(value, list) else [value]
    return list(dict.fromkeys(text for text in map(_text, values) if text))


def _csv_rows(path: Path, lines: Iterator[str], known: Sequence[LinkShape]) -> Iterator[_ExportRow]:
    head = next(lines, "")
    rows = csv.DictReader(chain([head], lines), delimiter=max(",;\t", key=head.count))
    try:
        names = [fold_name(name) for name in rows.fieldnames or ()]
        shape = next((shape for shape in known if shape.has_columns_in(names)), None)
        if shape is None:
            if len(known) == 1 and known[0].evidence == "--columns":
                named = [known[0].short_code, *known[0].short_urls, known[0].target_url]
                missing = next(name for name in named if name and fold_name(name) not in names)
                raise BadInput(f"{path}: its first line has no column {missing!r}.")
            missing = next(
                (name for name in ("short_code", "target_url") if fold_name(name) not in names), "target_url"
            )
            raise BadInput(
                f"{path}: its first line must name the columns of the format csv ({', '.join(COLUMNS)}) or of "
                f"a service's export; {missing} is missing. For other columns, use --columns short_code=…,target_url=…"
            )
        if len(set(names)) != len(names):
            raise BadInput(f"{path}: two of its columns have the same name; rename one of them.")
        rows.fieldnames = names
        for row in rows:
            yield _ExportRow(f"line {rows.line_num}", shape, row)
    except csv.Error as error:
        raise BadInput(f"{path} cannot be read as CSV in UTF-8: {error}.") from error


def _pages(path: Path, text: str, known: Sequence[LinkShape]) -> Iterator[tuple[LinkShape, Any]]:
    decoder, position = json.JSONDecoder(), 0
    while rest := text[position:].lstrip():
        position = len(text) - len(rest)
        try:
            document, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, getattr(error, "pos", position)) + 1
            raise BadInput(f"{path}, line {line}: this is not JSON; save the API's responses unchanged.") from error
        shape = _shape_of(document, known)
        if shape is None and isinstance(document, list):
            pages = [(_shape_of(page, known), page) for page in document]
        else:
            pages = [(shape, document)]
        for page_shape, page in pages:
            if page_shape is None:
                line = text.count("\n", 0, position) + 1
                raise BadInput(
                    f"{path}: the JSON that ends in line {line} is not a list of links; use JSON from "
                    f"{', '.join(dict.fromkeys(shape.format for shape in known))}, or CSV with --columns."
                )
            yield page_shape, page


def _shape_of(page: object, known: Sequence[LinkShape]) -> LinkShape | None:
    for shape in known:
        links = _member(page, shape.items)
        links = list(links.values()) if shape.items and isinstance(links, dict) else links
        is_list = isinstance(links, list) and all(isinstance(link, dict) for link in links)
        if is_list and (not links or shape.has_columns_in({fold_name(name) for name in links[0]})):
            return shape
    return None


def _member(value: Any, names: Sequence[str]) -> Any:  # noqa: ANN401  # any JSON value
    """Return the value at a path of nested members in a JSON value; None if a member is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
