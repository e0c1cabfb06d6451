"""Exports from link shorteners are read in every format, and errors are reported with their place."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from data import BadInput
from data.links.exports import format_names, link_shapes, read_export
from tests.support.memory import traced_peak
from tests.support.tables import examples_at_once

NOW = datetime(2026, 3, 15, 12, tzinfo=UTC)
NAIVE = NOW.replace(tzinfo=None)


@pytest.fixture
def read(tmp_path):
    """Read a string, a tuple of lines, or an object as JSON, as if it were a file."""

    def read(content, **how):
        path = tmp_path / "export"
        texts = {str: lambda: content, tuple: lambda: "".join(f"{line}\n" for line in content)}
        path.write_text(texts.get(type(content), lambda: json.dumps(content))())
        return read_export(path, NOW, **how)

    return read


def as_rows(links):
    """Return links in the form that the tables use, with a creation time only if it is not NOW."""
    return tuple(
        (link.short_code, link.domain, link.target_url)
        + (() if link.created_at == NAIVE else (link.created_at.isoformat(),))
        for link in links
    )


@examples_at_once("format_name", "content", "links")
def test_an_export_is_recognized_and_read(read, format_name, content, links):
    assert as_rows(read(content).links) == links
    assert as_rows(read(content, format_name=format_name).links) == links
    for other in set(format_names()) - {"auto", format_name}:
        with pytest.raises(BadInput):
            read(content, format_name=other)


@examples_at_once("content", "tags")
def test_tags_in_an_export_are_read(read, content, tags):
    assert tuple(link.tags for link in read(content).links) == tags


def test_columns_may_name_the_tags_column(read):
    (link,) = read(
        ("slug,url,labels", 'a,https://x.example,"b, a"'), columns="short_code=slug,target_url=url,tags=labels"
    ).links
    assert link.tags == ("a", "b")


def test_every_export_format_has_an_example_and_evidence(request):
    examples = request.path.with_suffix(".json").read_text("utf-8")
    rows = json.loads(examples)["test_an_export_is_recognized_and_read"]
    assert sorted(row[0] for row in rows) == sorted(shape.format for shape in link_shapes())
    assert all(shape.evidence for shape in link_shapes())


TIMES = {
    "2024-03-01": "2024-03-01T00:00:00",
    "2024-03-01T12:00:00+02:00": "2024-03-01T10:00:00",
    "2024-03-01 10:00:00 UTC": "2024-03-01T10:00:00",
    "2024-03-01 12:00:00 +0200": "2024-03-01T10:00:00",
    "2024/03/01 10:00:00": "2024-03-01T10:00:00",
    "Mar 1, 2024": "2024-03-01T00:00:00",
    "March 1, 2024": "2024-03-01T00:00:00",
    "Mar 1, 2024, 1:05 PM": "2024-03-01T13:05:00",
    "1 Mar 2024": "2024-03-01T00:00:00",
    "Fri Mar 01 2024 12:00:00 GMT+0200 (Central European Standard Time)": "2024-03-01T10:00:00",
    "1709287200": "2024-03-01T10:00:00",
    "1709287200123": "2024-03-01T10:00:00.123000",
}


@pytest.mark.parametrize("text", TIMES)
def test_a_time_is_read_in_the_formats_that_services_use(read, text):
    (link,) = read(("short_code,target_url,created_at", f'a,https://a.example/,"{text}"')).links
    assert link.created_at.isoformat() == TIMES[text]


@pytest.mark.parametrize("text", ["01/03/2024", "13/31/2024", "Mar 2024", "Smarch 1, 2024", "170928720", "soon"])
def test_an_ambiguous_or_invalid_time_is_rejected(read, text):
    with pytest.raises(BadInput, match=f"line 2: created_at '{text}' is not a valid time"):
        read(("short_code,target_url,created_at", f'a,https://a.example/,"{text}"'))


def test_a_number_in_json_counts_as_a_time(read):
    (link,) = read([{"slashtag": "a", "destination": "https://a.example/", "createdAt": 1709287200000}]).links
    assert link.created_at.isoformat() == "2024-03-01T10:00:00"


@examples_at_once("columns", "content", "links")
def test_any_csv_is_read_by_its_columns(read, columns, content, links):
    assert as_rows(read(content, columns=columns).links) == links


@examples_at_once("columns", "complaint")
def test_impossible_columns_are_rejected(read, columns, complaint):
    with pytest.raises(BadInput, match=complaint):
        read(("Slug,Long URL", "a,https://shop.example/a"), columns=columns)


@examples_at_once("how", "content", "complaint")
def test_problems_are_reported_with_their_location(read, how, content, complaint):
    with pytest.raises(BadInput) as caught:
        read(content, **how)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def shlink(*codes, total=None):
    links = [
        {"shortCode": code, "shortUrl": f"https://s.example/{code}", "longUrl": "https://x.example"} for code in codes
    ]
    return {"shortUrls": {"data": links, "pagination": {"totalItems": total or len(codes)}}}


@pytest.mark.parametrize(
    "text",
    [
        "".join(json.dumps(page) for page in (shlink("a", total=2), shlink("b", total=2))),
        "\n".join(json.dumps(page, indent=2) for page in (shlink("a", total=2), shlink("b", total=2), shlink(total=2))),
        json.dumps([shlink("a", total=2), shlink("b", total=2)]),
    ],
)
def test_pages_may_be_concatenated_or_in_a_list(read, text):
    export = read(text)
    assert ([link.short_code for link in export.links], export.missing) == (["a", "b"], 0)


def test_links_on_missing_pages_are_counted(read):
    assert read(shlink("a", "b", total=115)).missing == 113


def test_links_that_cannot_be_kept_are_left_out_and_reported(read, tmp_path):
    export = read(shlink("a", "b/c", "a", "d"), skip_invalid=True)
    assert [link.short_code for link in export.links] == ["a", "d"]
    place = f"{tmp_path / 'export'}, page 1, link"
    rule = "is not a valid short code; use 1 to 256 characters except space, /, ?, #."
    assert export.left_out == [
        f"{place} 2: 'b/c' {rule}", f"{place} 3: a on this domain is already in page 1, link 1."
    ]  # fmt: skip


def test_csv_rows_are_read_one_at_a_time(tmp_path):
    path, note = tmp_path / "export", "x" * 100_000
    rows = (f"c{number},https://x.example,{note}\n" for number in range(100))
    path.write_text("".join(("short_code,target_url,note\n", *rows)))
    exports = []
    peak = traced_peak(lambda: exports.append(read_export(path, NOW)))
    assert len(exports[0].links) == 100
    assert peak < path.stat().st_size / 2


@pytest.mark.parametrize("content", ["short_code,target_url\na,https://x.example\n", json.dumps(shlink("a"))])
def test_links_are_read_from_a_pipe(content):
    readable, writable = os.pipe()
    with os.fdopen(readable, "rb"):
        with os.fdopen(writable, "w") as file:
            file.write(content)
        assert [link.short_code for link in read_export(Path(f"/dev/fd/{readable}"), NOW).links] == ["a"]
