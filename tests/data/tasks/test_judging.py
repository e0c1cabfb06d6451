"""Judging past days: a comparison with an independent recount, and when a day is judged."""

import json
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from operator import itemgetter
from random import Random

import pytest

from data.ingest.importer import Importer, Options
from data.ingest.live import LiveIngest
from data.logs.reported import Submission
from data.rules.engines import BrowserEngines
from data.rules.releases import BrowserReleases
from data.rules.tables import Attack
from data.rules.tables import load as load_table
from data.signals import BEHAVIOUR_VERSION, LANDED, SIGNALS
from data.store.footers import read_visit_file
from data.store.pending import flush_all
from data.tasks import compaction, merge_plan
from data.tasks.compaction import Compactor
from data.tasks.erasure import Criteria, Eraser
from data.tasks.merge_plan import days_to_merge
from data.tasks.reclassification import Reclassifier
from data.tasks.rejudging import compare_judgements
from tests import recount
from tests.support.lakes import rebuilt, rows_of
from tests.support.manifests import database_of
from tests.support.own_agents import change_rules
from tests.support.visits import land, links, visit

DAY = date(2026, 3, 4)
NOON = datetime(2026, 3, 4, 12)
TODAY = datetime(2026, 3, 5, 8, tzinfo=UTC)
NEW = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/145.0.0.0 Safari/537.36"
OLD = NEW.replace("Chrome/145.0.0.0", "Chrome/79.0.3945.88")
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:60.0) Gecko/20100101 Firefox/60.0"


def judge(lake, now=TODAY):
    return Compactor(lake, lambda: now).run()


def signals_by(lake, key="path"):
    """Return the names of each visit's signals, by the value in one of its columns."""
    names = {}
    for row in rows_of(lake):
        names[row[key]] = {signal.name for signal in SIGNALS if row["signals"] & signal.bit}
    return names


def at(second, **columns):
    """Return a visit by a current browser, some seconds after noon."""
    return visit(visited_at=NOON + timedelta(seconds=second), **{"user_agent": NEW, "visitor": 1, **columns})


def probe(second=0, **columns):
    return at(second, **{"path": "/.env", "status": 404, "is_malicious": True, "bot_category": "other_bot", **columns})


# Against a recount

CATEGORIES = ["human", "human", "ai_referral", "search_crawler"]
SEEDS = (2, 16, 21)
"""Seeds for some_day that together give every signal."""
AGENTS = [*[NEW] * 6, OLD, None, "curl/8", "A", "B", FIREFOX]
FROM_HOSTING = recount.BITS["from_hosting"]
AHEAD, FILE = recount.BITS["loaded_ahead"], recount.BITS["file"]
MIXED = [("/a.js", AHEAD | FILE), ("/api", FILE), ("/p2", None)]
HEADERS = ["https", "plain_http", "fetch_absent", "fetch_sent", "language_absent", "language_sent", "file"]


def some_facts(random):
    """Return a function that draws facts for a visitor's visits: about the scheme, headers and files. Some visitors
    never get some of these facts, or any.
    """
    never = random.choice([[], ["fetch_sent"], ["language_sent"], ["fetch_sent", "language_sent"], HEADERS])
    names = [name for name in HEADERS if name not in never]
    return lambda: sum(recount.BITS[name] for name in names if random.random() < 0.5)


def some_day(random):
    """Generate one day's visits, in which signals occur or almost occur."""
    statuses = random.choice([[404, 200, 301], [301, 302], [200, 304, 301], [None, 403]])
    domains = random.choice([[None], ["go.example", "www.example"], ["go.example", None]])
    probes = [f"/.env{number}" for number in range(random.choice([1, 6]))]
    paths = probes + [f"/p{number}" for number in range(240)] + ["/app.css", "/logo.PNG", "/a.js", "/x.json"]
    visits = []
    for visitor in [None, *range(-3, 12)]:
        agent, spread = random.choice(AGENTS), random.choice([10, 100, 4000])
        known = random.sample(paths, random.choice([3, 8, len(paths)]))
        facts = some_facts(random)
        for _ in range(random.choice([1, 4, 6, 30, 70, 900])):
            path = random.choice(known)
            is_probe = path.startswith("/.")
            visits.append(at(
                random.uniform(0, spread), domain=random.choice(domains), path=path, visitor=visitor,
                short_code=path[1:] if path.startswith("/p") else None, user_agent=agent, is_malicious=is_probe,
                status=random.choice([404, 404, 404, 410, 200, 302, None] if not is_probe else statuses),
                bot_category="other_bot" if is_probe else random.choice(CATEGORIES),
                signals=random.choice([None, 0, facts(), facts(), facts() | (random.random() < 0.05)]),
            ))  # fmt: skip
    for agent in range(random.choice([0, 12])):  # visitors who load a page's files
        load = ["/p1", "/app.css", "/a.js", "/logo.PNG"] * random.choice([1, 40])
        visits += [at(0, domain=domains[0], path=path, user_agent=f"loading {agent}", visitor=None) for path in load]
    visits += [load for visitor in range(20, 30) for load in loads_ahead(random, visitor, domains)]
    visits += [visit for visitor in range(30, 50) for visit in comes_from_hosting(random, visitor, domains)]
    visits += [visit for visitor in range(50, 70) for visit in comes_by_a_protocol(random, visitor)]
    visits += [visit for visitor in range(70, 90) for visit in posts(random, visitor)]
    random.shuffle(visits)
    return visits


def loads_ahead(random, visitor, domains):
    """Generate a visitor's requests from a browser that prefetches some pages, at whole seconds or at any time."""
    spread, digits = random.choice([10, 100, 20_000]), random.choice([0, 6])
    for _ in range(random.choice([2, 5, 40])):
        path, bits = random.choice([("/p1", AHEAD), ("/p2", AHEAD), ("/p1", 0), ("/p3", 0), ("/a.js", FILE), *MIXED])
        second = round(random.uniform(0, spread), digits)
        yield at(second, domain=random.choice(domains), path=path, visitor=visitor, signals=bits)


def comes_from_hosting(random, visitor, domains):
    """Generate a visitor's requests, usually from a hosting network; some networks belong to a known bot."""
    bits = random.choice([[FROM_HOSTING], [FROM_HOSTING, 0], [recount.BITS["from_bot"], FROM_HOSTING]])
    paths = random.choice([["/p1", "/"], ["/", "/favicon.ico"], ["/p9", "/a.js", "/"]])
    agent = random.choice([*[f"rare {random.choice('ab')}"] * 2, f"rare {visitor}", NEW, OLD])
    for second in range(random.choice([1, 1, 2, 5])):
        path, status = random.choice(paths), random.choice([200, 304, 301, 404, None])
        code = "p1" if path == "/p1" else None
        yield at(second, domain=random.choice(domains), path=path, status=status, short_code=code, visitor=visitor,
                 user_agent=agent, signals=random.choice(bits))  # fmt: skip


def comes_by_a_protocol(random, visitor):
    """Generate a visitor's requests from a current browser, in some cases over one version of HTTP only."""
    newer = visitor % 5
    protocols = random.choice([["HTTP/2"], ["HTTP/2", "HTTP/3"]] if newer else [["HTTP/1.1"], ["HTTP/1.0", "HTTP/2"]])
    agent, paths = NEW.replace("145", str(130 + newer)), ["/", "/a.js", "/b.css"] if newer else ["/", "/c"]
    for second, path in enumerate(paths):
        yield at(second, domain="new.example", path=path, status=random.choice([200, 304]), visitor=visitor,
                 short_code=None, user_agent=agent, protocol=random.choice(protocols))  # fmt: skip


def posts(random, visitor):
    """Generate a visitor's requests that send data, most of them to paths that take none."""
    statuses = random.choice([[405], [405, 404], [405, 501, 200], [405, 301]])
    for second in range(random.choice([1, 2, 3])):
        yield at(second, path=f"/post{second}", short_code=None, visitor=visitor, status=random.choice(statuses),
                 method=random.choice(["POST", "POST", "PUT", "GET"]), user_agent=random.choice([NEW, None]),
                 bot_category=random.choice(CATEGORIES))  # fmt: skip


@pytest.mark.parametrize(
    ("seeds", "ranges", "most"),
    [(SEEDS, 1, 10**6), ((4,), 16, 10**6), ((5, 6), 1, 0)],
    ids=["at once", "in ranges", "day by day"],
)
def test_visits_on_past_days_get_the_same_signals_in_a_recount(lake, monkeypatch, seeds, ranges, most):
    monkeypatch.setattr(compaction, "_RANGES", (ranges,))
    monkeypatch.setattr(merge_plan, "VISITS_AT_ONCE", most)
    links(lake, "acme", [{"short_code": f"p{number}", "target_url": "https://shop.example/"} for number in range(3)])
    releases, days = BrowserReleases(), {}
    for ago, seed in enumerate(seeds):
        random, day, past = Random(seed), DAY - timedelta(days=ago), timedelta(days=ago)
        visits = [row | {"visited_at": row["visited_at"] - past, "day": day} for row in some_day(random)]
        days[day] = visits
        for number in range(parts := random.choice([1, 3])):
            land(lake, "acme", visits[number::parts])
    before = lake.manifest.organizations.epoch("acme")
    assert judge(lake).judged == len(days)
    assert lake.manifest.organizations.epoch("acme") - before == (1 if most else len(days))  # 1: judged together
    for day, visits in days.items():
        columns = [name for name in visits[0] if name not in {"day", "organization"}]
        wanted = recount.judged(visits, releases, ("p0", "p1", "p2"), BrowserEngines())
        found = (row for row in rows_of(lake) if row["visited_at"].date() == day)
        assert Counter(map(itemgetter(*columns), found)) == Counter(map(itemgetter(*columns), wanted))
    assert {file.day: file.visits for file in lake.manifest.files.live("acme")} == {
        day: len(visits) for day, visits in days.items()
    }


def test_every_signal_occurs_in_the_recounted_days():
    found, is_old, sends = 0, lambda agent: agent == OLD, lambda agent: agent in {NEW, NEW.replace("145", "130")}
    for seed in SEEDS:
        for bits in recount.signals(some_day(Random(seed)), (), is_old, is_old, is_old, sends, is_old, is_old):
            found |= bits
    assert [signal.name for signal in SIGNALS if not found & signal.bit] == []


# Visitors without a signal


def test_an_office_of_a_hundred_stays_human_despite_a_scanner(lake):
    office = [at(number, path=f"/p{number}", visitor=7) for number in range(100)]
    land(lake, "acme", [*office, *(probe(number, visitor=8, path=f"/.env{number}") for number in range(50))])
    judge(lake)
    signals = signals_by(lake, "visitor")
    assert signals == {7: {"breadth"}, 8: {"probed", "scanned", "errors", "breadth"}}
    assert all(recount.as_seen(row)["bot_category"] == "human" for row in rows_of(lake) if row["visitor"] == 7)


WALKS = [(200, 1, True), (200, 3, False), (799, 3, False), (800, 3, True), (800, 4, False)]
"""Pages, the seconds between them, and whether they are a sweep."""


@pytest.mark.parametrize(("pages", "pause", "is_sweep"), WALKS)
def test_a_sweep_requests_many_pages_in_quick_succession(lake, pages, pause, is_sweep):
    land(lake, "acme", [at(number * pause, path=f"/p{number}") for number in range(pages)])
    judge(lake)
    assert ("sweep" in signals_by(lake, "visitor")[1]) is is_sweep


LOGIN = [("/wp-admin", 301), ("/wp-admin/", 302), ("/wp-login.php", 200)]


@pytest.mark.parametrize(("asked", "is_probed"), [
    (LOGIN, False),
    ([*LOGIN, *((f"/wp-includes/{number}.php", 200) for number in range(9)), ("/_debugbar/open", 304)], False),
    ([*LOGIN, ("/.env", 404)], True),
    ([*LOGIN, ("/xmlrpc.php", 301)], True),
    ([("/.env", 403)], True),
    ([("/.env", None)], True),
    ([("/.env", 301), ("/.git/config", 302)], False),
    ([("/.env", 301), ("/.git/config", 302), ("/backup.sql", 301)], True),
])  # fmt: skip
def test_requesting_missing_paths_is_probing(lake, asked, is_probed):
    land(lake, "acme", [probe(number, path=path, status=status) for number, (path, status) in enumerate(asked)])
    others = [probe(number, path="/.env", status=200, domain="other.example", visitor=2) for number in range(2)]
    land(lake, "acme", [at(60), *others])
    judge(lake)
    assert ("probed" in signals_by(lake, "visitor")[1]) is is_probed


POSTS = [("/", 405), ("/api", 501)]


@pytest.mark.parametrize(("asked", "changes", "is_probed"), [
    (POSTS, {}, True),
    ([*POSTS, ("/admin", 404), ("/", 502)], {}, True),
    (POSTS[:1], {}, False),
    (POSTS[:1] * 2, {}, False),
    ([*POSTS, ("/app.js", 200)], {}, False),
    ([*POSTS, ("/admin", 301)], {}, False),
    (POSTS, {"method": "GET"}, False),
    (POSTS, {"method": "HEAD"}, False),
    (POSTS, {"method": None}, False),
    (POSTS, {"bot_category": "ai_assistant"}, False),
])  # fmt: skip
def test_posting_to_two_paths_that_take_no_data_is_probing(lake, asked, changes, is_probed):
    land(lake, "acme", [
        at(number, path=path, status=status, short_code=None, **{"method": "POST"} | changes)
        for number, (path, status) in enumerate(asked)
    ])  # fmt: skip
    judge(lake)
    assert ("probed" in signals_by(lake, "visitor")[1]) is is_probed


SESSIONS = [
    ({}, False),
    ({"files": 19}, True),
    ({"seconds": 599}, True),
    ({"probes": 2}, True),
    ({"status": 404}, True),
    ({"again": 60}, False),  # the same target again
]
"""Changes to a long session with one probe, and whether its visitor then gets the signal `probed`."""


@pytest.mark.parametrize(("changes", "is_probed"), SESSIONS)
def test_one_probe_in_a_long_session_does_not_count_as_probing(lake, changes, is_probed):
    files, seconds, probes, again, status = (
        {"files": 20, "seconds": 600, "probes": 1, "again": 0, "status": 200} | changes
    ).values()
    visits = [at(n, path=f"/{n}.png", status=status) for n in range(files)]
    visits += [probe(30 + n, path=f"/.env{n}") for n in range(probes)] + [probe(again + 1, path="/.env0"), at(seconds)]
    land(lake, "acme", visits)
    judge(lake)
    assert ("probed" in signals_by(lake, "visitor")[1]) is is_probed


def test_many_missing_paths_requested_by_one_visitor_are_errors(lake):
    links(lake, "acme", [{"short_code": "own", "target_url": "https://shop.example/"}])
    gone = [at(n, path="/gone", status=404, visitor=visitor) for visitor in (1, 2, 3) for n in range(6)]
    own = [at(n, path="/own", short_code="own", status=404, visitor=4) for n in range(6)]
    tried = [at(n, path=f"/x{n}", short_code=f"x{n}", status=404, visitor=5) for n in range(6)]
    broken = [at(0, path="/page", visitor=6), *(at(n, path=f"/{n}.png", status=404, visitor=6) for n in range(9))]
    again = [at(n, path="/again", status=404, visitor=7) for n in range(9)]
    moved = [at(n, path=f"/m{n // 2}", status=404 if n % 2 else 301, visitor=8) for n in range(10)]
    unknown = [probe(visitor=None), *(at(n, path=f"/y{n}", status=404, visitor=None) for n in range(99))]
    land(lake, "acme", gone + own + tried + broken + again + moved + unknown)
    judge(lake)
    found = {(row["visitor"], row["signals"]) for row in rows_of(lake) if row["signals"]}
    assert found == {(5, recount.BITS["errors"]), (8, recount.BITS["errors"])}


def test_a_browser_becomes_outdated_on_a_certain_day(lake):
    for day in (3, 4):
        land(lake, "acme", [visit(visited_at=datetime(2022, 2, day), path=f"/{day}", user_agent=OLD)])
    judge(lake)
    assert signals_by(lake) == {"/3": set(), "/4": {"outdated"}}


def test_an_old_browser_that_loads_no_files_is_stale(lake):
    stale = OLD.replace("Chrome/79", "Chrome/130")
    paths = "/", "/a.css", "/a.js"
    files = [at(0, path=path, user_agent=f"{NEW} {n}", visitor=n) for n in range(5, 10) for path in paths]
    land(lake, "acme", [*files, at(1, user_agent=stale, visitor=1), at(2, visitor=2), at(3, visitor=None)])
    land(lake, "acme", [at(4, user_agent=stale, visitor=3, path=path) for path in ("/", "/b.css")])
    land(lake, "acme", [at(5, user_agent=stale, visitor=4, domain="links.example")])
    judge(lake)
    signals = signals_by(lake, "visitor")
    assert {visitor for visitor, names in signals.items() if names} == {1}
    assert signals[1] == {"stale"}


def test_an_attack_in_a_query_marks_its_visitor_as_probing(lake, tmp_path):
    examples = [row.example.replace(" ", "%20") for row in load_table(Attack, "attacks")]
    paths = [f"/{number}?{query}" for number, query in enumerate(examples)] + ["/b?utm_source=mail&q=union+square"]
    asked = [*enumerate([*paths, "/beside"]), (0, "/beside")]  # each by a separate visitor, except the last
    line = '203.0.113.{} - - [04/Mar/2026:12:00:{:02} +0000] "GET {} HTTP/1.1" 302 0 "-" "{}"\n'.format
    (tmp_path / "access.log").write_text("".join(line(who, n, path, NEW) for n, (who, path) in enumerate(asked)))
    Importer(lake).run(tmp_path / "access.log", Options("acme", "go.example"))
    rows = [
        {"time": f"2026-03-04T12:00:{number:02}Z", "url": f"https://go.example{path}", "ip": f"203.0.114.{who}"}
        for number, (who, path) in enumerate(asked)
    ]
    submission = Submission("acme", [json.dumps({**row, "user_agent": NEW}).encode() for row in rows])
    (answer,) = LiveIngest(lake, now=lambda: TODAY).land([submission])
    assert answer.refused == []
    flush_all(lake)
    landed = Counter((row["path"], row["signals"]) for row in rows_of(lake))
    numbers = {(f"/{number}", 1): 2 for number in range(len(examples))}
    assert landed == {**numbers, ("/b", None): 2, ("/beside", None): 4}
    judge(lake)
    judged = Counter((row["path"], row["signals"]) for row in rows_of(lake))
    assert judged == {**{(path, 3): count for (path, _), count in numbers.items()},
                      ("/b", 0): 2, ("/beside", 0): 2, ("/beside", 2): 2}  # fmt: skip


# When a day is judged


def versions(lake):
    return [file.behaviour_version for file in lake.manifest.files.live("acme")]


def test_a_past_day_is_judged_once_and_again_after_a_late_visit(lake):
    land(lake, "acme", [probe(0), visit(visited_at=datetime(2026, 3, 5, 7), user_agent=OLD, path="/now")])
    for judged in (1, 0):
        assert judge(lake).judged == judged
        assert sorted(versions(lake)) == [0, BEHAVIOUR_VERSION]
        assert [row["signals"] for row in sorted(rows_of(lake), key=itemgetter("path"))] == [2, None]
        assert lake.manifest.organizations.epoch("acme") == 1
    land(lake, "acme", [at(3, path="/late")])
    assert judge(lake).judged == 1
    assert [row["signals"] for row in sorted(rows_of(lake), key=itemgetter("path"))] == [2, 2, None]
    for number in range(20):
        land(lake, "acme", [visit(visited_at=datetime(2026, 3, 5, 7), path=f"/{number}")])
    assert (judge(lake).partitions, lake.manifest.organizations.epoch("acme")) == (1, 2)
    assert judge(lake, TODAY + timedelta(days=1)).judged == 1


def test_signals_survive_an_erasure_and_the_loss_of_the_manifest(lake):
    land(lake, "acme", [probe(0), at(3, path="/kept"), at(4, path="/b", short_code="b", domain="b.example")])
    judge(lake)
    Eraser(lake).run("acme", Criteria(domain="go.example", short_code=None))
    assert (versions(lake), signals_by(lake)) == ([BEHAVIOUR_VERSION], {"/b": {"probed"}})
    (file,) = lake.manifest.files.live("acme")
    assert read_visit_file(lake.root / file.path).footer.behaviour_version == BEHAVIOUR_VERSION
    with rebuilt(lake) as again:
        assert (versions(again), signals_by(again)) == ([BEHAVIOUR_VERSION], {"/b": {"probed"}})


def test_a_reclassified_day_is_judged_again(lake):
    land(lake, "acme", [at(0, path="/a", signals=1, rules_version="old"), at(1, path="/b", rules_version="old")])
    judge(lake)
    assert Reclassifier(lake).run(["acme"]).partitions == 1
    assert versions(lake) == [0]
    assert judge(lake).judged == 1
    assert (versions(lake), signals_by(lake)) == ([BEHAVIOUR_VERSION], {"/a": {"attacked", "probed"}, "/b": {"probed"}})


def judged_before(lake, version):
    """Judge a past day as another version of the program does."""
    land(lake, "acme", [probe(0), at(1, path="/b")])
    judge(lake)
    with database_of(lake.manifest).transaction() as db:
        db.execute("UPDATE files SET behaviour_version = ?", [version])


def test_a_day_judged_by_a_newer_version_stays_unchanged(lake):
    judged_before(lake, BEHAVIOUR_VERSION + 1)
    assert judge(lake) == compaction.CompactionResult()
    assert versions(lake) == [BEHAVIOUR_VERSION + 1]


def test_a_day_judged_by_an_older_version_is_judged_again(lake):
    judged_before(lake, BEHAVIOUR_VERSION - 1)
    assert judge(lake).judged == 1
    assert versions(lake) == [BEHAVIOUR_VERSION]


def test_unjudged_days_precede_days_judged_by_older_versions(lake):
    judged_before(lake, BEHAVIOUR_VERSION - 1)
    land(lake, "acme", [visit(visited_at=NOON + timedelta(hours=-24), path="/c")])
    due = days_to_merge(lake, TODAY, timedelta(0), None, BEHAVIOUR_VERSION)
    assert [merge.files[0].behaviour_version for merge in due] == [0, BEHAVIOUR_VERSION - 1]


def test_version_1_skips_days_that_any_version_has_judged(lake):
    judged_before(lake, BEHAVIOUR_VERSION - 1)
    assert days_to_merge(lake, TODAY, timedelta(0), None, 1) == []


def test_a_comparison_finds_what_judging_again_would_change(lake):
    judged_before(lake, BEHAVIOUR_VERSION - 1)
    (file,) = lake.manifest.files.live("acme")
    found = compare_judgements(lake, "acme", lambda: TODAY)
    assert (found.days, [row for row in found.by_signal() if row[1:] != (0, 0)]) == (
        1, [("probed", 2, 2), ("disguised bots", 1, 1)]
    )  # fmt: skip
    assert lake.manifest.files.live("acme") == [file]


def test_the_visit_from_an_unfinished_line_is_judged_separately(lake):
    for row in (probe(0), at(1, path="/last")):
        land(lake, "acme", [row])
    with database_of(lake.manifest).transaction() as db:
        db.execute("UPDATE files SET unfinished_of = (SELECT max(id) FROM batches) WHERE id = 2")
    assert judge(lake).judged == 1
    files = {file.unfinished_of is None: file for file in lake.manifest.files.live("acme")}
    assert [files[key].behaviour_version for key in (True, False)] == [BEHAVIOUR_VERSION] * 2
    assert signals_by(lake) == {"/.env": {"probed"}, "/last": {"probed"}}
    assert judge(lake) == compaction.CompactionResult()
    assert files[False].visits == 1


def test_switching_behaviour_is_recorded_and_raises_the_epoch(lake):
    assert lake.manifest.behaviour.is_used("acme")
    for on in (False, False, True):
        before = lake.manifest.organizations.epoch("acme")
        lake.manifest.behaviour.switch("acme", on=on)
        assert (lake.manifest.behaviour.is_used("acme"), lake.manifest.organizations.epoch("acme")) == (on, before + 1)
    assert lake.manifest.behaviour.is_used("other")


# Landed signals

OTHERS = 1 << 41 | 1 << 62
"""Bits that visits landed by a later version may have."""


def reclassify(lake, number):
    change_rules(lake, number)
    assert Reclassifier(lake).run(["acme"]).partitions == 1


def judge_anew(lake):
    with database_of(lake.manifest).transaction() as db:
        db.execute("UPDATE files SET behaviour_version = 0")
    assert judge(lake).judged == 1


@pytest.mark.parametrize("tasks", ["jj", "rr", "jrj", "rjr", "jrrjj", "rrjjr"])
def test_landed_signals_survive_judging_and_reclassifying(lake, monkeypatch, tasks):
    monkeypatch.setattr(compaction, "LANDED", LANDED | OTHERS)
    every = LANDED & ~recount.BITS["own_rule"] | OTHERS  # determined again by the current rules
    landed = {"/all": every, "/others": OTHERS, "/none": None}
    rows = [
        at(0, path="/all", visitor=1), at(1, path="/others", visitor=1), at(2, path="/none", visitor=2, user_agent=OLD)
    ]  # fmt: skip
    land(lake, "acme", [row | {"signals": landed[row["path"]], "rules_version": "old"} for row in rows])
    bits = recount.BITS
    visitor = bits["probed"] | bits["hosting_unserved"]
    judged = {
        "/all": every | visitor | bits["bot_network"], "/others": OTHERS | visitor, "/none": bits["outdated"],
    }  # fmt: skip
    expected = landed
    for number, task in enumerate(tasks):
        if task == "j":
            judge_anew(lake)
            expected = judged
        else:
            reclassify(lake, number)
        assert {row["path"]: row["signals"] for row in rows_of(lake)} == expected
