"""Requests reported in JSON: each becomes the same visit as a log line for the same request."""

import json
import random
import sqlite3
import tracemalloc
from collections import Counter
from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.ingest.importer import Importer, Options
from data.ingest.live import REFRESH_AFTER, LiveIngest
from data.ingest.submissions import CHUNK, MAX_DAYS, STEP_SECONDS, PreparedVisits
from data.ingest.visitor_ids import LIFETIME, daily_salts, visitor_hash
from data.logs.reported import Submission
from data.store import pending
from data.visits import VISITS
from tests.faults.trials import tried
from tests.support.addresses import FETCHED, PROXIES, ROAMING, country_database, fetch_lists
from tests.support.lakes import files_of, opened, read, rows_of
from tests.support.manifests import database_of
from tests.support.reported import REPORTED
from tests.support.tables import tables
from tests.support.user_agents import CHROME, GOOGLEBOT, GPTBOT, IPHONE
from tests.support.visits import links

NOW = datetime(2026, 4, 20, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def countries(tmp_path_factory):
    """A database of countries."""
    networks = {"81.2.69.0/24 2a01:4f8::/32": "DE", "20.42.10.0/24": "US"}
    records = {network: {"country": {"iso_code": code}} for network, code in networks.items()}
    return country_database(tmp_path_factory.mktemp("countries") / "countries.mmdb", records)


@pytest.fixture(scope="module")
def twins(tmp_path_factory, countries):
    """A lake for imported logs and a lake for reported visits, with the same salts."""
    folder = tmp_path_factory.mktemp("twins")
    how = {"now": lambda: NOW, "proxies": PROXIES, "countries": countries}
    with opened(folder / "logged", create=True) as logged, opened(folder / "sent", create=True) as sent:
        fetch_lists(logged)
        fetch_lists(sent)
        daily_salts(logged.salts, [], NOW)
        sent.salts.symlink_to(logged.salts)
        yield logged, Importer(logged, **how), sent, LiveIngest(sent, **how)


@pytest.fixture
def intake(lake):
    """A live intake with its own lake."""
    return LiveIngest(lake, now=lambda: NOW)


@pytest.mark.parametrize("row", [b'{"url":"/a"}', b"not JSON"])
def test_a_step_ends_after_the_chunk_that_exceeds_its_time(intake, monkeypatch, row):
    times, prepared = count(0, STEP_SECONDS / 2), PreparedVisits(Submission("acme", [row] * 1_000))
    monkeypatch.setattr("data.ingest.live.perf_counter", lambda: next(times))
    intake.prepare(prepared)
    assert prepared.accepted + len(prepared.refused) == 2 * CHUNK


def send(intake, *rows, organization="acme"):
    """Land rows, given as dicts, from one sender."""
    (landed,) = intake.land([Submission(organization, [json.dumps(row).encode() for row in rows])])
    return landed


def landed(lake, organization="acme"):
    """Move pending visits into files, and return every visit of an organization, with its day."""
    pending.flush_all(lake)
    return [visit | {"day": file.day} for file in files_of(lake, organization) for visit in read(lake, file)]


def column(lake, name):
    """Return each visit's value in a column, by path."""
    return {visit["path"]: visit[name] for visit in landed(lake)}


def counted(visits):
    """Count the visits by all their values except the protocol, which only a log has."""
    return Counter(tuple(sorted((visit | {"protocol": None}).items(), key=str)) for visit in visits)


# The same request, in a log and in JSON


def line_of(request):
    """Return a request as a log line, with its virtual host if it has a domain."""
    host = f"{request['domain']}:443 " if request["domain"] else ""
    query = f"?{request['query']}" if request["query"] else ""
    country = f' "{request["country"]}"' if request["country"] else ""
    agent = request["user_agent"].replace("\\", "\\\\").replace('"', '\\"')
    return (
        f"{host}{request['ip'] or '-'} - - [{request['time']:%d/%b/%Y:%H:%M:%S +0000}] "
        f'"{request["method"]} {request["path"]}{query} HTTP/1.1" {request["status"]} {request["bytes_sent"]} '
        f'"{request["referrer"] or "-"}" "{agent or "-"}"{country}\n'
    )


def row_of(request, form):
    """Return a request as a reported row, with its URL in one of several forms."""
    target = request["path"] + (f"?{request['query']}" if request["query"] else "")
    alike = ("ip", "method", "status", "bytes_sent", "user_agent", "referrer", "country")
    row = {"time": f"{request['time'].isoformat()}Z", **{name: request[name] for name in alike}}
    if form == "absolute" and request["domain"]:
        row["url"] = f"https://somebody@{request['domain']}:8443{target}#part"
    else:
        row |= {"domain": request["domain"], "path" if form == "path" else "url": target}
    if form == "sparse":
        usual = {"method": "GET", "status": 200}
        row = {name: value for name, value in row.items() if value and value != usual.get(name)}
        row["time"] = request["time"].replace(tzinfo=UTC).timestamp()
    return row


AGENTS = (CHROME, IPHONE, GPTBOT, ROAMING, GOOGLEBOT, "curl/8.9.1", "", "-", "facebookexternalhit/1.1",
          "Яндекс 浏览器", "Mozilla/5.0 (compatible; ClaudeBot/1.0; +claudebot@anthropic.com)", "ChatGPT-User/1.0",
          "claude-code/2.1", "Mozilla%2F5.0%20Firefox", 'He said "hi" (twice)', " ' spaces ' ", "x" * 3_000,
          "GPTBot/1.0" * 300)  # fmt: skip
REFERRERS, IPS = tables(__file__)["referrers"], tables(__file__)["ips"]
QUERIES = (*tables(__file__)["queries"], f"utm_source={'%C3%A9' * 300}")
PATHS = (*tables(__file__)["paths"], "/" + "x" * 64, "/" + "x" * 65)
WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.just("\0"), max_size=20)
REQUESTS = st.fixed_dictionaries(
    {
        "time": st.builds(
            lambda day, seconds: datetime.combine(day, time()) + timedelta(seconds=seconds),
            st.sampled_from((date(2026, 2, 10), date(2026, 3, 15), date(2026, 4, 14), date(2026, 4, 15))),
            st.integers(0, 86_399),
        ),
        "ip": st.sampled_from(IPS),
        "method": st.sampled_from(("GET", "GET", "GET", "POST", "HEAD", "OPTIONS", "PROPFIND")),
        "domain": st.sampled_from(("go.example", "Go.Example", "xn--caf-dma.example")),
        "path": st.sampled_from(PATHS)
        | WORDS.map(lambda text: "/" + "".join(letter for letter in text if letter not in '"\\?#')),
        "query": st.sampled_from(QUERIES),
        "status": st.sampled_from((200, 301, 404, 500, 999)),
        "bytes_sent": st.integers(0, 1 << 40),
        "user_agent": st.sampled_from(AGENTS) | WORDS.filter(lambda text: "\\" not in text),
        "referrer": st.sampled_from(REFERRERS)
        | WORDS.filter(lambda text: not set('"\\') & set(text)).map("https://{}/".format),
        "country": st.sampled_from(("", "", "FR", "XX", "T1")),
    }
)
NAMES = count()
some = tried(5)
CHANCE = random.Random(7)
EVERYTHING = [
    {
        "time": datetime(2026, 3, 20, 1, 2, 3), "domain": "go.example", "status": 200, "country": "",
        "ip": CHANCE.choice(IPS), "method": CHANCE.choice(("GET", "GET", "POST", "HEAD")), "path": CHANCE.choice(PATHS),
        "query": CHANCE.choice(QUERIES), "bytes_sent": CHANCE.randrange(1, 100_000),
        "user_agent": CHANCE.choice(AGENTS), "referrer": CHANCE.choice(REFERRERS),
    }
    for _ in range(150)
]  # fmt: skip


def assert_same(twins, requests, forms, log_format):
    logged_lake, importer, sent_lake, intake = twins
    organization = f"example-{next(NAMES)}"
    log = logged_lake.root.parent / "access.log"
    log.write_text("".join(map(line_of, requests)), "utf-8")
    assert importer.run(log, Options(organization, log_format=log_format)).visits == len(requests)
    rows = [row_of(request, form) for request, form in zip(requests, forms, strict=True)]
    assert send(intake, *rows, organization=organization) == (len(requests), [])
    told = landed(logged_lake, organization)
    assert counted(landed(sent_lake, organization)) == counted(told)
    return told


FORMS = ("absolute", "path", "url", "sparse")


@given(st.lists(st.tuples(REQUESTS, st.sampled_from(FORMS)), min_size=1, max_size=80))
@some
def test_a_reported_row_and_a_log_line_give_the_same_visit(twins, reported):
    requests, forms = zip(*reported, strict=True)
    assert_same(twins, requests, forms, "vhost-combined")


@given(st.lists(st.tuples(REQUESTS, st.sampled_from(FORMS), st.booleans()), min_size=1, max_size=40))
@some
def test_rows_and_lines_without_domain_or_address_agree(twins, reported):
    requests = [
        request | {"domain": "", "ip": request["ip"] if has_address else ""} for request, _, has_address in reported
    ]
    assert_same(twins, requests, [form for _, form, _ in reported], "combined")


def test_rows_and_lines_with_every_kind_of_result_agree(twins):
    """Otherwise, the tests above might compare only empty results."""
    forms = [FORMS[number % 4] for number in range(len(EVERYTHING))]
    visits = assert_same(twins, EVERYTHING, forms, "vhost-combined")
    told = {name: {visit[name] for visit in visits} for name in VISITS.names}
    assert told["bot_category"] == {
        "human", "ai_assistant", "ai_training", "ai_coding_agent", "ai_referral", "search_crawler", "other_bot",
    }  # fmt: skip
    assert told["confidence"] >= {"verified", "contradicted", "high", "medium", "low", None}
    assert told["detection_method"] >= {"ip_range", "user_agent", "referrer", "utm", "heuristic", None}
    assert told["country"] == {"DE", "US", None}
    assert told["device_type"] == {"desktop", "mobile", "bot"}
    assert told["is_malicious"] == {True, False}
    assert told["referrer_type"] >= {"direct", "ai", "search", "social", "other", "internal"}
    assert told["utm_source"] >= {"News", "chatgpt.com", None}
    assert {"abc", None} < told["short_code"]
    assert len(told["visitor"]) > 50


def test_a_probe_below_well_known_comes_from_a_scanner(twins):
    request = EVERYTHING[0] | {"path": "/.well-known/wp-login.php", "user_agent": CHROME, "ip": "81.2.69.142"}
    (visit,) = assert_same(twins, [request], ["path"], "vhost-combined")
    assert (visit["agent_kind"], visit["confidence"], visit["is_malicious"]) == ("scanner", "medium", True)


def test_backslashes_in_a_user_agent_are_kept(twins):
    agents = (r"Mozilla/5.0 \x41\x42", r"say \"hi\"", r"C:\\agents\\x", r"Mozilla\x2f5.0 GPTBot")
    requests = [EVERYTHING[0] | {"user_agent": agent} for agent in agents]
    assert_same(twins, requests, ["url"] * len(requests), "vhost-combined")


def test_visits_from_too_many_days_are_rejected(lake, intake):
    days = [datetime(2020, 1, 1, 12) + timedelta(days=day) for day in range(MAX_DAYS + 2)]
    rows = [json.dumps({"path": "/a", "time": day.isoformat()}) for day in (*days, days[0])]
    (landed,) = intake.land([Submission("acme", [row.encode() for row in rows])])
    assert landed.accepted == MAX_DAYS + 1
    assert [refused.index for refused in landed.refused] == [MAX_DAYS, MAX_DAYS + 1]
    assert landed.refused[0].error.startswith("the request contains visits from more than 366 days; ")


# Rows


def test_a_reported_row_gives_exactly_the_expected_visit(lake, intake, classifier):
    row = {
        "time": "2026-03-04T23:30:00-05:00", "ip": "203.0.113.7", "method": "post", "status": 404,
        "url": "https://me:secret@Go.Example:8443/abc?utm_source=News&q=1#top", "user_agent": IPHONE,
        "referrer": "https://T.co/xyz?q=1#top", "country": "de",
    }  # fmt: skip
    assert send(intake, row) == (1, [])
    day = date(2026, 3, 5)
    salt = daily_salts(lake.salts, [day], NOW)[day]
    assert landed(lake) == [dict.fromkeys(VISITS.names) | {
        "day": day, "visited_at": datetime(2026, 3, 5, 4, 30), "domain": "go.example", "short_code": "abc",
        "path": "/abc", "method": "POST", "status": 404, "bot_category": "human", "device_type": "mobile",
        "operating_system": "iOS", "browser": "Mobile Safari", "user_agent": IPHONE, "country": "DE",
        "referrer": "t.co", "referrer_type": "social", "utm_source": "News", "is_malicious": False, "utc_offset": 0,
        "visitor": visitor_hash(salt, "acme", "203.0.113.7", IPHONE), "rules_version": classifier.rules_version,
    }]  # fmt: skip


def test_a_minimal_row_becomes_a_visit_at_the_current_time(lake, intake):
    assert send(intake, {"path": "/"}) == (1, [])
    (visit,) = landed(lake)
    assert visit["visited_at"] == NOW.replace(tzinfo=None)
    assert (visit["method"], visit["status"], visit["bot_category"]) == ("GET", 200, "other_bot")
    unknown = ("domain", "short_code", "user_agent", "country", "referrer", "visitor", "operating_system", "browser")
    assert [visit[name] for name in unknown] == [None] * len(unknown)


@pytest.mark.parametrize("rows", [[], [b"{}"], [b"x", b"[]"]])
def test_without_a_valid_row_nothing_is_written(lake, intake, rows):
    ((accepted, refused),) = intake.land([Submission("acme", rows)])
    assert (accepted, [one.index for one in refused]) == (0, [*range(len(rows))])
    assert database_of(lake.manifest).rows("SELECT * FROM pending") == []
    assert intake.land([]) == []


def test_a_visit_sent_again_counts_again(lake, intake):
    for _ in range(3):
        send(intake, {"path": "/a"}, {"path": "/a"})
    assert Counter(visit["path"] for visit in landed(lake)) == {"/a": 6}


def test_a_link_named_like_a_probe_is_not_malicious(lake, intake):
    links(lake, "acme", [{"short_code": "phpmyadmin", "target_url": "https://example.com/docs"}])
    send(intake, {"path": "/phpmyadmin"}, {"path": "/.env"})
    assert column(lake, "is_malicious") == {"/phpmyadmin": False, "/.env": True}


def test_submissions_that_land_together_stay_separate(lake, intake):
    sent = [
        Submission("acme", [b'{"path":"/a1"}', b"x", b'{"path":"/a2"}']),
        Submission("other", [b"x", b'{"path":"/b"}']),
        Submission("acme", []),
        Submission("acme", [b'{"path":"/a3"}']),
        Submission("third", [b"{}"]),
    ]
    told = intake.land(sent)
    assert [(one.accepted, [refused.index for refused in one.refused]) for one in told] == [
        (2, [1]), (1, [0]), (0, []), (1, []), (0, [0]),
    ]  # fmt: skip
    assert (
        len(database_of(lake.manifest).rows("SELECT * FROM pending")) == 2
    )  # one transaction, a row for each organization
    paths = {name: sorted(visit["path"] for visit in landed(lake, name)) for name in ("acme", "other", "third")}
    assert paths == {"acme": ["/a1", "/a2", "/a3"], "other": ["/b"], "third": []}


# Salts, lists of addresses, countries and short codes


@pytest.mark.parametrize(
    ("moments", "visits"),
    [
        ((timedelta(0), LIFETIME - REFRESH_AFTER, LIFETIME + REFRESH_AFTER, LIFETIME + 2 * REFRESH_AFTER), [2, 2]),
        ((timedelta(days=365), timedelta(0)), [1, 1]),
    ],
    ids=["too old", "from a clock that was ahead"],
)
def test_salts_too_old_or_from_the_future_are_not_used(lake, moments, visits):
    """P33, for salts in a server's memory."""
    clock = [NOW + moments[0]]
    intake = LiveIngest(lake, now=lambda: clock[0])
    for later in moments:
        clock[0] = NOW + later
        send(intake, {"path": "/", "ip": "203.0.113.7", "time": "2026-04-20T00:00:00Z"})
    assert sorted(Counter(visit["visitor"] for visit in landed(lake)).values()) == visits
    with closing(sqlite3.connect(lake.salts)) as db:
        assert db.execute("SELECT day FROM salts").fetchall() == [("2026-04-20",)]


def test_lists_apply_a_minute_after_their_arrival(lake):
    clock = [FETCHED]
    intake = LiveIngest(lake, now=lambda: clock[0])
    for minutes in (0, 0.5, 1.1):
        clock[0] = FETCHED + minutes * REFRESH_AFTER
        send(intake, {"path": f"/{minutes}", "ip": "20.42.10.7", "user_agent": GPTBOT})
        if not minutes:
            fetch_lists(lake)
    assert column(lake, "confidence") == {"/0": "high", "/0.5": "high", "/1.1": "verified"}


@pytest.mark.parametrize(("fetched", "confidence"), [(True, "verified"), (False, "high")])
def test_a_damaged_list_is_reported_once_and_blocks_no_visits(lake, caplog, fetched, confidence):
    clock, broken = [FETCHED], lake.ip_lists / "broken.json"
    if fetched:
        fetch_lists(lake)
    else:
        broken.write_text("{")
    intake = LiveIngest(lake, now=lambda: clock[0])
    broken.write_text("{")
    for name in ("/before", "/meanwhile", "/later"):
        send(intake, {"path": name, "ip": "20.42.10.7", "user_agent": GPTBOT})
        clock[0] += 2 * REFRESH_AFTER
    (told,) = caplog.messages
    assert "broken.json" in told
    assert column(lake, "confidence") == dict.fromkeys(("/before", "/meanwhile", "/later"), confidence)


def test_a_reported_country_overrides_the_database(lake, countries):
    intake = LiveIngest(lake, countries=countries, now=lambda: NOW)
    rows = {
        "/told": ("FR", "81.2.69.7", "FR"), "/found": ("XX", "81.2.69.7", "DE"), "/neither": ("", "203.0.113.7", None),
        "/no": ("", "", None),
    }  # fmt: skip
    send(intake, *({"path": path, "country": told, "ip": ip} for path, (told, ip, _) in rows.items()))
    assert column(lake, "country") == {path: row[2] for path, row in rows.items()}


@given(st.lists(REPORTED, min_size=1, max_size=30))
@some
def test_any_row_lands_or_is_rejected_and_never_stops_another(twins, rows):
    _, _, lake, intake = twins
    organization = f"example-{next(NAMES)}"
    bodies = [json.dumps(row).encode() for row in rows]
    good = Submission(f"{organization}-good", [b'{"path": "/good"}'])
    told, other = intake.land([Submission(organization, bodies), good])
    assert (other.accepted, other.refused) == (1, [])
    assert told.accepted + len(told.refused) == len(rows)
    pending.flush_all(lake)
    assert len(rows_of(lake, organization)) == told.accepted


def test_the_operator_chooses_the_short_code_pattern(lake):
    intake = LiveIngest(lake, short_code_pattern=r"^/go/(\w+)$", now=lambda: NOW)
    send(intake, *({"path": path} for path in ("/go/sale", "/sale", "/go/a/b")))
    assert column(lake, "short_code") == {"/go/sale": "sale", "/sale": None, "/go/a/b": None}


@pytest.mark.parametrize(
    ("field", "start"),
    [("user_agent", "agent "), ("url", "https://go.example/"), ("path", "/"), ("referrer", "https://site.example/")],
)
def test_long_strings_in_visits_are_not_cached(intake, field, start):
    target = {} if field in ("url", "path") else {"path": "/"}
    length, query = "x" * 8_000, "x" * 7_000
    first, second = ([target | {field: f"{start}{turn}-{number}{length}?q={query}"} for number in range(100)]
                     for turn in range(2))  # fmt: skip
    send(intake, *first)  # so that what is loaded or created only once is not measured
    tracemalloc.start()
    send(intake, *second)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 300_000  # for 1,500,000 characters
