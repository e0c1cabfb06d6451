"""Days with request headers have more evidence: marks or a note say so if a chart or a comparison covers both kinds of
days."""

import json
import tarfile
from contextlib import closing
from datetime import UTC, date, datetime

import pytest

from data.ingest.importer import Importer, Options
from data.signals import BITS
from data.tasks.compaction import Compactor
from queries import Warehouse
from service.dashboard.report import Report
from service.dashboard.series import apart
from tests.conftest import NOW
from tests.support.forks import ROOT
from tests.support.lakes import opened as opened_lake
from tests.support.visits import land, visit

WITH, WITHOUT = BITS["language_sent"], BITS["https"]
GAINED = "logs have request headers from here on, so more bots are recognized"
LOST = "logs lack request headers from here on, so fewer bots are recognized"
ALL = "?start_date=2026-03-01&end_date=2026-03-15"
LACKS = "request headers, so fewer bots are recognized on these days, and more are counted as people."


def days_of(*days, signals):
    return [visit(visited_at=datetime(2026, 3, day, 12), visitor=day, signals=signals) for day in days]


@pytest.fixture(scope="module")
def shared_lake(shared_lake):
    """A lake with request headers from 8 to 12 March and on the 15th. The 11th also has visits without headers; the 4th
    and 5th have no visits."""
    land(shared_lake, "acme", days_of(1, 2, 3, 6, 7, 11, 13, 14, signals=WITHOUT))
    land(shared_lake, "acme", days_of(8, 9, 10, 11, 12, 15, signals=WITH))
    Compactor(shared_lake, lambda: NOW).run()
    return shared_lake


def marks(page):
    """Return the marks about evidence, each with its address."""
    links = [link for one in page.all("ol", class_="marks") for link in one.all("a")]
    return [(link.text, link["href"]) for link in links if "are recognized" in link.text]


def test_first_days_with_and_without_headers_are_marked(browser):
    found = marks(browser.read(ALL))
    assert [text for text, _ in found] == [f"8 Mar 2026: {GAINED}", f"13 Mar 2026: {LOST}"]


def test_a_mark_links_to_the_page_about_left_out_visits(browser):
    links = {link for _, link in marks(browser.read(f"{ALL}&domain=go.example"))}
    assert links == {f"/app/left-out{ALL}&domain=go.example"}
    assert browser.get(links.pop()).status_code == 200


def test_days_without_visits_in_between_are_not_marked(browser):
    assert marks(browser.read("?start_date=2026-03-02&end_date=2026-03-07")) == []


def test_shown_days_that_all_have_headers_have_no_mark(browser):
    assert marks(browser.read("?start_date=2026-03-08&end_date=2026-03-12")) == []


def test_today_has_no_mark(browser):
    assert marks(browser.read("?start_date=2026-03-13&end_date=2026-03-15")) == []


def test_the_chart_of_a_link_is_marked(lake, browsing):
    for signals, days in ((WITHOUT, (1, 2)), (WITH, (3, 4))):
        land(lake, "acme", [one | {"short_code": "sale"} for one in days_of(*days, signals=signals)])
    with browsing(lake) as browser:
        (mark,) = marks(browser.read(f"link{ALL}&short_code=sale"))
    assert mark == (f"3 Mar 2026: {GAINED}", f"/app/left-out{ALL}&short_code=sale")


def test_days_have_no_marks_if_behaviour_is_off(lake, browsing):
    land(lake, "acme", days_of(1, 2, signals=WITHOUT) + days_of(3, 4, signals=WITH))
    lake.manifest.behaviour.switch("acme", on=False)
    with browsing(lake) as browser:
        assert "request headers" not in browser.read(ALL).text


SPANS = [
    ("start_date=2026-03-08&end_date=2026-03-08", f"1 compared day lacks {LACKS}"),
    ("start_date=2026-03-09&end_date=2026-03-10", f"1 compared day lacks {LACKS}"),
    ("start_date=2026-03-08&end_date=2026-03-10", f"2 compared days lack {LACKS}"),
    ("start_date=2026-03-10&end_date=2026-03-10", ""),
    ("start_date=2026-03-07&end_date=2026-03-07", ""),
]


@pytest.mark.parametrize(("days", "note"), SPANS)
def test_an_overview_notes_that_compared_days_lack_headers(browser, days, note):
    page = browser.read(f"?{days}")
    assert "Changes cover complete days" in page.text
    assert [one.text for one in page.all("p", class_="note") if "headers" in one.text] == [note] * bool(note)


@pytest.mark.parametrize(("days", "note"), SPANS)
def test_compared_tables_note_that_days_lack_headers(browser, days, note):
    (text,) = [one.text for one in browser.read(f"people?{days}&compare=before").all("p", class_="note compare")]
    assert "Tables show complete days" in text
    assert (LACKS in text) == bool(note)
    assert note in text


def test_a_page_that_compares_twice_has_the_note_once(browser):
    assert browser.read(f"?{SPANS[0][0]}&compare=before").text.count(LACKS) == 1


def test_a_page_that_compares_nothing_lacks_the_note(browser):
    assert LACKS not in browser.read(f"people?{SPANS[0][0]}").text


def test_a_report_notes_that_compared_days_lack_headers(shared_lake):
    days = {"start_date": "2026-03-08", "end_date": "2026-03-10"}
    with closing(Warehouse(shared_lake)) as warehouse:
        report = Report.load(shared_lake, warehouse, "acme", days, NOW.date())
    assert f"2 compared days lack {LACKS}\n" in report.text()
    assert f"2 compared days lack {LACKS}" in report.html(NOW)


@pytest.mark.parametrize(("has_headers", "what"), [(True, "request headers and networks"), (False, "networks")])
def test_a_lake_from_1_0_0_marks_its_first_day_with_evidence(tmp_path, browsing, has_headers, what):
    request = {"remote_ip": "198.51.100.7", "method": "GET", "host": "go.example", "uri": "/", "headers": {}}
    told = {"ts": datetime(2026, 3, 14, 12, tzinfo=UTC).timestamp(), "status": 200, "request": request}
    line = '198.51.100.7 - - [14/Mar/2026:10:05:00 +0000] "GET / HTTP/1.1" 200 1 "-" "Chrome"'
    (tmp_path / "access.log").write_text(
        f"{json.dumps(told | {'logger': 'http.log.access'})}\n" if has_headers else f"{line}\n"
    )
    with tarfile.open(ROOT / "tests/fixtures/lake-1.0.0.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    with opened_lake(tmp_path / "lake") as lake:
        assert set(lake.manifest.files.facts_by_day("acme", date.min, date.max).values()) == {0}
        importer = Importer(lake, lambda: NOW)
        with closing(importer.readers):
            importer.run(tmp_path / "access.log", Options("acme", "go.example"))
        Compactor(lake, lambda: NOW).run()
        with browsing(lake) as browser:
            assert [text for text, _ in marks(browser.read(ALL))] == [
                f"14 Mar 2026: logs have {what} from here on, so more bots are recognized"
            ]


def test_numbers_of_marks_never_overlap():
    assert apart([0, 1, 2, 15, 29], 30) == {0: "1–3", 15: "4", 29: "5"}
    assert apart([0, 3, 6], 30) == {0: "1", 3: "2", 6: "3"}
