"""Visitors without headers that their browser always sends count as programs, if other visitors sent these headers."""

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from data.ingest.importer import Importer, Options
from data.signals import SIGNALS
from data.store.lake import Lake
from data.tasks.compaction import Compactor
from queries import Reader
from tests import recount
from tests.support.lakes import rows_of
from tests.support.visits import land, visit

NOON = datetime(2026, 3, 4, 12)
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/145.0.0.0 Safari/537.36"
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS {} like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/145.0"
PAGE, BARE = "https fetch_sent language_sent", "https fetch_absent language_absent"


def page(visitor, facts, second=0, **columns):
    """Return a visit with these facts, by a current browser."""
    bits = sum(recount.BITS[name] for name in facts.split()) or None
    at = NOON + timedelta(seconds=second)
    return visit(**{"visitor": visitor, "signals": bits, "visited_at": at, "user_agent": CHROME, **columns})


PEOPLE = [page(number, PAGE, number) for number in (1, 2, 3)]


def signals_of(lake, visitor=9):
    """Return the names of a visitor's signals after judging the day."""
    Compactor(lake, lambda: datetime(2026, 3, 5, 8, tzinfo=UTC)).run()
    bits = [row["signals"] for row in rows_of(lake) if row["visitor"] == visitor]
    return {signal.name for signal in SIGNALS if any(one & signal.bit for one in bits)}


BOTH, FETCH, LANGUAGE = {"no_fetch_metadata", "no_language"}, {"no_fetch_metadata"}, {"no_language"}
JUDGED = {
    "a page without any": ([page(9, BARE)], BOTH),
    "a page without any known fact": ([page(9, "")], set()),
    "headers that are not logged": ([page(9, "https")], set()),
    "a page with language only": ([page(9, "https fetch_absent language_sent")], FETCH),
    "a page with Sec-Fetch only": ([page(9, "https fetch_sent language_absent")], LANGUAGE),
    "over plain http": ([page(9, "plain_http fetch_absent language_absent")], LANGUAGE),
    "a scheme that is not known": ([page(9, "fetch_absent language_sent")], set()),
    "a reload and a page": ([page(9, BARE), page(9, PAGE, 1)], set()),
    "a file with them": ([page(9, BARE), page(9, f"{PAGE} file", 1)], set()),
    "a page with them on another domain": ([page(9, BARE), page(9, PAGE, domain="b.example")], set()),
    "files and WebSockets alone": ([page(9, f"{BARE} file")], set()),
    "a browser that is older": ([page(9, BARE, user_agent=CHROME.replace("145", "79"))], set()),
    "an iPhone whose system is older": ([page(9, BARE, user_agent=IPHONE.format("16_3"))], set()),
    "Chrome of an iPhone": ([page(9, BARE, user_agent=IPHONE.format("16_4"))], BOTH),
    "where no visitor has them": ([page(9, BARE, domain="b.example")], set()),
    "on a domain with errors only": ([page(9, BARE, domain="b.example", status=403)], BOTH),
    "on a domain that answered a program": (
        [page(9, BARE, domain="b.example", status=403), page(8, BARE, domain="b.example", bot_category="other_bot")],
        set(),
    ),
    "headers that are not logged on a domain with errors only": (
        [page(9, "https", domain="b.example", status=403)], set(),
    ),
    "a visit that names its agent": ([page(9, BARE, bot_category="other_bot")], set()),
}  # fmt: skip


@pytest.mark.parametrize(("visits", "names"), JUDGED.values(), ids=JUDGED.keys())
def test_visitors_without_their_browsers_headers_are_marked(lake, visits, names):
    land(lake, "acme", [*PEOPLE, *visits])
    assert signals_of(lake) & BOTH == names


def test_headers_of_only_two_visitors_mark_no_other_visitor(lake):
    land(lake, "acme", [*PEOPLE[:2], page(2, PAGE, 5), page(9, BARE)])
    assert signals_of(lake) & BOTH == set()


def test_two_visitors_on_other_domains_mark_no_other_visitor(lake):
    elsewhere = page(2, PAGE, 5, domain="c.example")
    land(lake, "acme", [*PEOPLE[:2], elsewhere, page(9, BARE, domain="b.example", status=403)])
    assert signals_of(lake) & BOTH == set()


def test_many_visitors_without_headers_do_not_hide_each_other(lake):
    land(lake, "acme", [*PEOPLE, *(page(number, BARE) for number in range(9, 200))])
    assert signals_of(lake) >= BOTH


def test_people_stay_people_despite_visitors_without_headers(lake):
    land(lake, "acme", [*PEOPLE, page(9, BARE)])
    assert signals_of(lake, 1) == set()


def test_headers_on_one_day_do_not_affect_another(lake):
    yesterday = NOON - timedelta(days=1)
    land(lake, "acme", [*PEOPLE, page(9, BARE, visited_at=yesterday), page(9, PAGE)])
    assert signals_of(lake) & BOTH == set()


# Lines of real formats, imported, judged and counted

SENT = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Accept-Language": "de"}


def caddy_line(address, headers, second):
    """Return a line as Caddy 2 writes it by default."""
    request = {
        "client_ip": address, "proto": "HTTP/2.0", "method": "GET", "host": "go.example", "uri": "/launch",
        "headers": {name: [value] for name, value in {"User-Agent": CHROME, **headers}.items()},
        "tls": {"version": 772},
    }  # fmt: skip
    at = NOON.replace(tzinfo=UTC).timestamp() + second
    entry = {"ts": at, "logger": "http.log.access.log0", "msg": "handled request", "status": 302, "size": 0}
    return json.dumps({**entry, "request": request})


def nginx_line(address, headers, second):
    """Return a line in an nginx `log_format` that writes JSON, where headers that were not sent are empty."""
    named = {f"http_{name.lower().replace('-', '_')}": headers.get(name, "") for name in SENT}
    return json.dumps({
        "remote_addr": address, "time_iso8601": f"2026-03-04T12:00:{second:02}+00:00", "scheme": "https",
        "request": "GET /launch HTTP/2.0", "status": "302", "body_bytes_sent": "0", "http_referer": "",
        "http_user_agent": CHROME, "host": "go.example", **named,
    })  # fmt: skip


def combined_line(address, _headers, second):
    return f'{address} - - [04/Mar/2026:12:00:{second:02} +0000] "GET /launch HTTP/2.0" 302 0 "-" "{CHROME}"'


@pytest.mark.parametrize(
    ("line", "people"), [(caddy_line, 3), (nginx_line, 3), (combined_line, 4)], ids=["caddy", "nginx", "combined"]
)
def test_headers_in_a_log_reveal_a_disguised_visitor(lake, tmp_path, line, people):
    lines = [line(f"203.0.113.{number}", SENT if number < 3 else {}, number) for number in range(4)]
    (tmp_path / "access.log").write_text("\n".join(lines) + "\n", "utf-8")
    Importer(lake).run(tmp_path / "access.log", Options("acme", "go.example"))
    Compactor(lake).run()
    asked = "SELECT bot_category, agent_kind, detection_method FROM visits_in_scope"
    days = {"start_date": "2026-03-04", "end_date": "2026-03-04"}
    with closing(Reader(Lake(lake.root, must_write=False))) as reader:
        rows = reader.sql(asked, organization="acme", **days).to_pylist()
    disguised = [row for row in rows if row["bot_category"] != "human"]
    assert len(rows) - len(disguised) == people
    assert disguised == [
        {"bot_category": "other_bot", "agent_kind": "disguised", "detection_method": "behaviour"}
    ] * (4 - people)  # fmt: skip
