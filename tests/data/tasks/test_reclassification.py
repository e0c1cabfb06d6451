"""Reclassification: which values it changes and keeps, and the state after a failure."""

from collections import Counter, defaultdict
from contextlib import contextmanager
from datetime import UTC, date, datetime
from itertools import chain

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import LakeDamaged
from data.ingest import importer as importing
from data.ingest.importer import Importer, Options
from data.rules import lake_tables
from data.rules import tables as reference
from data.rules.classifier import Classifier, Request
from data.rules.lake_tables import SHIPPED
from data.rules.paths import PROBE, classify_path
from data.rules.tables import IpList
from data.store.ip_list_files import refresh
from data.tasks import reclassification
from data.tasks.reclassification import CategoryChange, ReclassificationResult, Reclassifier
from data.visits import VISITS, Classification
from tests.faults.trials import tried
from tests.support.lakes import bytes_on_disk, files_of, flipped, landed, read, rows_of
from tests.support.tables import tables
from tests.support.user_agents import CHROME, GPTBOT, IPHONE
from tests.support.visits import land, links, visit

NEWTHING = f"{CHROME} Newthing/2.0"
CLASSIFIED = (*Classification._fields, "referrer_type", "is_malicious", "rules_version")
"""The columns whose values depend on the rules."""

FACT = 'evidence = "https://new.example"\nchecked = 2026-11-20\n'
NEW_AGENT = (
    '\n[[agent]]\ntoken = "Newthing"\nagent = "Newthing"\noperator = "New"\nai_source = "New"\n'
    f'agent_kind = "training"\nconfidence = "high"\nexample = "Newthing/1"\n{FACT}'
)
NEW_ROWS = {
    "agents": NEW_AGENT,
    "referrers": f'\n[[referrer]]\nhost = "ask.example"\nreferrer_type = "ai"\nai_source = "New"\n'
    f'confidence = "medium"\n{FACT}\n[[referrer]]\nhost = "friends.example"\nreferrer_type = "social"\n{FACT}',
    "campaigns": f'\n[[campaign]]\nutm_source = "ask-new"\nai_source = "New"\nconfidence = "low"\n{FACT}',
    "probes": f"\n[[probe]]\nfamily = 'a secret'\npath = '/secret'\nagent_kind = 'scanner'\nconfidence = 'medium'\n"
    f"example = '/secret'\n{FACT}",
    "heuristics": '\n[[heuristic]]\nname = "odd"\npattern = \'oddity\'\nagent_kind = "scanner"\n'
    f'example = "Oddity"\n{FACT}',
}
IN_ROWS = {
    "agents": (('token = "GPTBot"', 'agent_kind = "training"', 'agent_kind = "ai_search_index"'),),
    "referrers": (
        ('host = "chatgpt.com"', 'ai_source = "ChatGPT"', 'ai_source = "OpenAI"'),
        ('host = "perplexity.ai"', 'host = "perplexity.ai"', 'host = "elsewhere.example"'),
        ('host = "google.*"', 'referrer_type = "search"', 'referrer_type = "other"'),
    ),
    "campaigns": (('utm_source = "chatgpt.com"', 'utm_source = "chatgpt.com"', 'utm_source = "elsewhere"'),),
    "probes": (("path = '/(wp-login", "wp-login", "never-mind"),),
}


def as_shipped(name, text):
    return text


def with_another_version(name, text):
    return text + "\n" * (name == "agents")


def with_new_rows(name, text):
    return text + NEW_ROWS.get(name, "")


def with_other_rows(name, text):
    """Return a table's text with other values in some of its rows."""
    for row, old, new in IN_ROWS.get(name, ()):
        start = text.index(row)
        start = text.rindex("[[", 0, start)
        end = text.find("[[", start + 2)
        end = len(text) if end < 0 else end
        assert old in text[start:end], row
        text = text[:start] + text[start:end].replace(old, new) + text[end:]
    return text


def with_a_renamed_agent(name, text):
    return text.replace('agent = "GPTBot"', 'agent = "Another"') if name == "agents" else text


def with_a_renamed_source(name, text):
    return text.replace('ai_source = "Grok"', 'ai_source = "Grok AI"').replace(
        'ai_source = "GitHub Copilot"', 'ai_source = "Copilot of GitHub"'
    )


ALL_RULES = (as_shipped, with_another_version, with_new_rows, with_other_rows)


@pytest.fixture(scope="module")
def under(classifier):
    """Give other rules to importers and reclassifiers created in this context; each set of rules is loaded once."""
    read, loaded = reference.bytes_of, {as_shipped: classifier}

    @contextmanager
    def under(rules):
        with pytest.MonkeyPatch.context() as patch:
            for module in (reference, lake_tables):
                patch.setattr(module, "bytes_of", lambda name: rules(name, read(name).decode()).encode())
            if rules not in loaded:
                loaded[rules] = Classifier()
            for module in ("ingest.importer", "tasks.reclassification"):
                patch.setattr(f"data.{module}.shared_classifier", lambda _: loaded[rules])
            yield loaded[rules]

    return under


@pytest.fixture(autouse=True)
def _as_shipped(under):
    with under(as_shipped):
        yield


@pytest.fixture(scope="module")
def import_into(tmp_path_factory):
    """Import text as a log, with one importer for each lake and set of rules."""
    log, importers = tmp_path_factory.mktemp("logs") / "access.log", {}

    def import_into(lake, text, organization, log_format="auto"):
        log.write_text(text, "utf-8")
        place = lake.root, importing.shared_classifier(SHIPPED).rules_version
        if place not in importers:
            importers[place] = Importer(lake)
        return importers[place].run(log, Options(organization, log_format=log_format))

    return import_into


@pytest.fixture
def load(lake, import_into):
    """Import text as a log."""
    return lambda text, organization="acme", log_format="combined": import_into(lake, text, organization, log_format)


def line(path="/abc", day=17, agent=CHROME, referrer="-", method="GET", second=3, ip="203.0.113.7"):
    return (
        f'{ip} - - [{day}/May/2015:10:05:{second:02} +0000] "{method} {path} HTTP/1.1" 200 5316 '
        f'"{referrer}" "{agent}"\n'
    )


def reclassify(lake, *organizations, **how):
    return Reclassifier(lake).run(list(organizations or ("acme",)), **how)


def moved(result):
    """Return the number of visits with each change."""
    return {change: agents.total() for change, agents in result.changes.items()}


def without(days, *names):
    """Return visits by day, without some of their columns."""
    return {
        day: [[{name: row[name] for name in row if name not in names} for row in file] for file in files]
        for day, files in days.items()
    }


def are_unfinished(lake):
    """Return, for each file, whether it contains an unfinished last line; files that do come last."""
    return sorted(file.unfinished_of is not None for file in files_of(lake))


def test_reclassifying_under_the_same_rules_rewrites_nothing(lake, load, under):
    load(line() + line(agent=GPTBOT, day=18))

    def is_left_alone():
        before, epoch = bytes_on_disk(lake), lake.manifest.organizations.epoch("acme")
        assert reclassify(lake) == ReclassificationResult(visits=2)
        return (bytes_on_disk(lake), lake.manifest.organizations.epoch("acme")) == (before, epoch)

    assert is_left_alone()
    assert reclassify(lake, "nobody") == Reclassifier(lake).run([]) == ReclassificationResult()
    with under(with_other_rows):
        assert reclassify(lake).rewritten == 2
        assert is_left_alone()


def test_reclassifying_finds_probes_but_spares_short_codes(lake, load, under):
    links(lake, "acme", [{"short_code": "abc", "target_url": "https://example.com/"}])
    with under(with_other_rows):
        load(line("/wp-login.php") + line("/abc"))
    assert {row["bot_category"] for row in rows_of(lake)} == {"human"}
    assert moved(reclassify(lake)) == {("human", "other_bot"): 1}
    rows = {row["path"]: (row["agent_kind"], row["is_malicious"]) for row in rows_of(lake)}
    assert rows == {"/wp-login.php": ("scanner", True), "/abc": (None, False)}


# As if it were imported today

AGENTS = (CHROME, IPHONE, GPTBOT, NEWTHING, "Newthing/1.0", "Mozilla/5.0 Oddity", "-", "", "curl/8.9.1",
          "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Яндекс 浏览器",
          r"Mozilla/5.0 \"quoted\" \xc3\xa9", "ChatGPT-User/1.0", "Mozilla%2F5.0%20Firefox")  # fmt: skip
REFERRERS, ONLY_BY_PATH = tables(__file__)["referrers"], tables(__file__)["only_by_path"]
QUERIES = (*tables(__file__)["queries"], f"?utm_source={'%C3%A9' * 300}")
PATHS = ("/abc", "/", "/a/b", "/secret/x", "/.env", "/wp-login.php", "/zzz")
WORDS = st.text(st.characters(codec="utf-8", exclude_characters='"\\', exclude_categories=("Cc", "Zl", "Zp")))
ANYTHING = st.tuples(
    st.sampled_from(AGENTS) | WORDS,
    st.sampled_from(REFERRERS) | WORDS.map("https://{}/".format),
    st.sampled_from(QUERIES),
)
NOT_KEPT = st.tuples(
    st.sampled_from((CHROME, IPHONE, "-")),
    st.sampled_from(ONLY_BY_PATH),
    st.just(""),
)
"""Requests with a relevant part that is not stored."""
NOT_KEPT_EITHER = st.tuples(st.sampled_from((CHROME, GPTBOT)), st.just("-"), st.just("?referrer=grok.com"))
"""Requests for which no stored value shows that they were referred, if their path was once classified as a probe."""
LINE = st.builds(
    lambda asked, day, method, second: line(asked[1] + asked[0][2], day, *asked[0][:2], method, second),
    st.tuples(ANYTHING | NOT_KEPT, st.sampled_from(PATHS))
    | st.tuples(NOT_KEPT_EITHER, st.sampled_from(("/abc", "/", "/a/b", "/zzz"))),
    st.integers(17, 19),
    st.sampled_from(("GET", "GET", "POST", "HEAD", "get")),
    st.integers(0, 59),
)


some = tried(3)


@given(
    lines=st.lists(LINE, min_size=1, max_size=60),
    order=st.lists(st.sampled_from(ALL_RULES), min_size=2, max_size=3, unique=True),
)
@some
def test_reclassified_history_equals_an_import_under_new_rules(shared_lake, import_into, under, names, lines, order):
    old, new = names(), names()
    with under(order[0]):
        import_into(shared_lake, "".join(lines), old, "combined")
    before = landed(shared_lake, old)
    for rules in order[1:]:
        with under(rules):
            result = reclassify(shared_lake, old)
    with under(order[-1]):
        import_into(shared_lake, "".join(lines), new, "combined")
    after = landed(shared_lake, old)
    assert without(after, "visitor") == without(landed(shared_lake, new), "visitor")
    assert without(after, *CLASSIFIED) == without(before, *CLASSIFIED)
    assert result.visits == result.rewritten == len(lines)
    assert result.partitions == len(before)


# Row by row, against a plain recomputation

HOSTS = (None, "chatgpt.com", "www.google.com", "ask.example", "x.com", "news.example", "android-app://com.openai.chatgpt",
         "2001:db8::1")  # fmt: skip
IDENTITIES = (
    Classification("human", None, None, None, None, None, None, "mobile", "iOS", "Safari"),
    Classification("ai_referral", "referral", "Grok", None, None, "medium", "referrer", "mobile", "iOS", None),
    Classification("other_bot", "other", None, None, None, "low", "heuristic", "bot", None, None),
    Classification("ai_training", "training", "ChatGPT", "GPTBot", "OpenAI", "verified", "ip_range", "bot", None, None),
    Classification("other_bot", "other", None, "GPTBot", None, "contradicted", "ip_range", "bot", None, None),
)
ROW = st.builds(
    lambda second, identity, **columns: visit(
        visited_at=datetime(2026, 3, 4, 12, 0, second), **identity._asdict(), **columns
    ),
    st.integers(0, 59),
    st.sampled_from(IDENTITIES),
    user_agent=st.sampled_from((CHROME, GPTBOT, NEWTHING, "Newthing/1.0", "Mozilla/5.0", None)),
    method=st.sampled_from(("GET", "HEAD", "", None)),
    short_code=st.sampled_from(("a", "b", None)),
    path=st.sampled_from(PATHS),
    referrer=st.sampled_from(HOSTS),
    referrer_type=st.sampled_from(("direct", "ai", "other")),
    utm_source=st.sampled_from((None, "chatgpt.com", "ask-new", "a&b=c+d é")),
    utm_term=st.none() | st.just("term"),
    visitor=st.sampled_from((None, 0, -(2**63))),
    status=st.sampled_from((200, 404, None)),
    is_malicious=st.booleans(),
    rules_version=st.sampled_from(("old", "older", "", None)),
)


def expected(rules, row):
    """Classify one visit by the current rules, independently of the program's loop."""
    path = "/i/grok" if row["referrer"] == "x.com" and row["referrer_type"] == "ai" else "/"
    host = row["referrer"]
    address = "" if host is None else host + path if "://" in host else f"https://{host}{path}"
    source = (row["utm_source"] or "").replace("&", "%26").replace("+", "%2B").replace(" ", "+")
    request = Request(row["user_agent"] or "", row["method"] or "", address, f"utm_source={source}" if source else "")
    told = rules.classify(request)
    if row["confidence"] == "contradicted" or (row["confidence"] == "verified" and told.agent is None):
        told = Classification(*(row[name] for name in Classification._fields))
    elif row["confidence"] == "verified" and told.agent == "GPTBot":
        told = told._replace(confidence="verified", detection_method="ip_range")
    kind = rules.paths.kind(row["path"])
    told = classify_path(told, kind)
    new = {"referrer_type": rules.origin(request).referrer_type, "is_malicious": kind == PROBE}
    whole = row | told._asdict() | new | {"rules_version": rules.rules_version}
    return {name: whole[name] for name in VISITS.names}


@given(
    files=st.lists(st.lists(ROW, min_size=1, max_size=12), min_size=1, max_size=3),
    rules=st.sampled_from((with_new_rows, with_other_rows)),
)
@some
def test_every_visit_is_reclassified_independently(shared_lake, under, names, monkeypatch, files, rules):
    monkeypatch.setattr(reclassification, "MAX_VISITS", 5)
    organization = names()
    for rows in files:
        land(shared_lake, organization, rows)
    before = [read(shared_lake, file) for file in files_of(shared_lake, organization)]
    with under(rules) as classifier:
        result = reclassify(shared_lake, organization)
        wanted = [[expected(classifier, row) for row in rows] for rows in before]
    assert landed(shared_lake, organization) == {date(2026, 3, 4): sorted(wanted, key=str)}
    changes = defaultdict(Counter)
    for old, new in zip(chain(*before), chain(*wanted), strict=True):
        if any(old[name] != new[name] for name in VISITS.names if name != "rules_version"):
            changes[CategoryChange(old["bot_category"], new["bot_category"])][old["user_agent"]] += 1
    assert result.changes == changes
    assert result.changed == sum(agents.total() for agents in changes.values())


def test_only_files_with_visits_under_other_rules_are_rewritten(lake, classifier):
    today = {"rules_version": classifier.rules_version}
    land(lake, "acme", [visit(path="/today", **today)])
    land(lake, "acme", [visit(path="/both", **today), visit(path="/both")])
    land(lake, "acme", [visit(path="/old", rules_version=None)])
    before = {file.path for file in files_of(lake)}
    result = reclassify(lake)
    assert (result.visits, result.rewritten, result.partitions) == (4, 3, 1)
    (same,) = before & {file.path for file in files_of(lake)}
    assert [row["path"] for row in pq.read_table(lake.root / same).to_pylist()] == ["/today"]
    assert {row["rules_version"] for row in rows_of(lake)} == {classifier.rules_version}


def test_reclassifying_keeps_the_order_of_an_unsorted_file(lake, monkeypatch):
    land(lake, "acme", [visit(path=f"/{number}", visited_at=datetime(2026, 3, 4, 1)) for number in range(30)])
    before = [row["path"] for row in rows_of(lake)]
    monkeypatch.setattr(reclassification, "MAX_VISITS", 10)
    reclassify(lake)
    assert [row["path"] for row in rows_of(lake)] == before


# Results of addresses

VERIFIED = IDENTITIES[3]._asdict() | {"user_agent": GPTBOT}
CONTRADICTED = IDENTITIES[4]._asdict() | {"user_agent": GPTBOT}

RENAMED = {"agent": "Another", "confidence": "high", "detection_method": "user_agent"}


@pytest.mark.parametrize(
    ("before", "others", "after"),
    [
        (VERIFIED, with_a_renamed_agent, VERIFIED | RENAMED),
        (CONTRADICTED, with_another_version, CONTRADICTED),
        (CONTRADICTED, with_a_renamed_agent, CONTRADICTED),
    ],
)
def test_a_renamed_agent_stays_contradicted_but_not_verified(lake, under, before, others, after):
    land(lake, "acme", [visit(**before)])
    with under(others):
        result = reclassify(lake)
    (row,) = rows_of(lake)
    assert row.items() >= after.items()
    assert (result.rewritten, result.changed) == (1, before != after)


def test_results_from_addresses_are_kept_without_the_addresses(lake, load, under):
    """These results are verified and contradicted agents, and agents with a browser's user agent."""
    networks = {"openai-gptbot": "20.42.10.0/24", "openai-chatgpt-user": "20.42.20.0/24"}
    lists = [row for row in reference.load(IpList, "ip_lists") if row.name in networks]
    body = '{{"prefixes": [{{"ipv4Prefix": "{}"}}]}}'.format
    list(refresh(lake, lists, lambda row: body(networks[row.name]).encode(), datetime(2015, 5, 17, tzinfo=UTC)))
    asked = {
        "/inside": (GPTBOT, "20.42.10.9", "-"), "/outside": (GPTBOT, "8.8.8.8", "-"), "/unknown": (GPTBOT, "-", "-"),
        "/shown": (CHROME, "20.42.20.9", "-"), "/sent": (CHROME, "20.42.20.9", "https://claude.ai/"),
        "/other": (CHROME, "8.8.8.8", "-"),
    }  # fmt: skip
    text = "".join(line(path, agent=agent, ip=ip, referrer=sent) for path, (agent, ip, sent) in asked.items())
    load(text)

    def said(*names):
        return {row["path"]: tuple(row[name] for name in names) for row in rows_of(lake)}

    assert said("agent", "confidence") == {
        "/inside": ("GPTBot", "verified"), "/outside": ("GPTBot", "contradicted"), "/unknown": ("GPTBot", "high"),
        "/shown": ("ChatGPT-User", "medium"), "/sent": ("ChatGPT-User", "medium"), "/other": (None, None),
    }  # fmt: skip
    with under(with_other_rows):
        reclassify(lake)
        load(text, "fresh")
    assert without(landed(lake), "visitor") == without(landed(lake, "fresh"), "visitor")
    kinds = {path: kind for path, (kind,) in said("agent_kind").items()}
    assert (kinds["/inside"], kinds["/outside"], kinds["/unknown"]) == ("ai_search_index", "other", "ai_search_index")
    assert said("detection_method")["/shown"] == ("ip_range",)


# Results of request parts that are not stored

TOLD_BY_WHAT_IS_NOT_KEPT = [
    *(
        ("", agent, referrer, {"referrer_type": "ai"} | ({} if agent == "-" else {"bot_category": "ai_referral"}))
        for agent in (CHROME, IPHONE, "-")
        for referrer in ONLY_BY_PATH
    ),
    ("", CHROME, "https://www.icloud.com/mail", {"referrer_type": "email"}),
    ("", CHROME, "https://x.com/home", {"bot_category": "human"}),  # an AI product on another path only
    ("", CHROME, "https://github.com/me", {"bot_category": "human"}),
    ("", "GPTBot/1.2", "https://x.com/i/grok", {}),  # two AI products
    ("?utm_source=chatgpt.com", CHROME, "https://x.com/i/grok", {}),
    ("?referrer=grok.com", CHROME, "https://chatgpt.com/", {}),
    ("?referrer=grok.com", CHROME, "-", {"bot_category": "ai_referral", "ai_source": "Grok", "referrer": None}),
]
"""The query, user agent and referrer of a request, and columns of its visit."""


def test_results_from_unstored_request_parts_are_kept(lake, load, under):
    count = len(TOLD_BY_WHAT_IS_NOT_KEPT)
    for_each = enumerate(TOLD_BY_WHAT_IS_NOT_KEPT)
    load("".join(line(f"/{n}{query}", agent=agent, referrer=sent) for n, (query, agent, sent, _) in for_each))
    before = without(landed(lake), "rules_version")
    with under(with_another_version) as rules:
        assert reclassify(lake) == ReclassificationResult(visits=count, rewritten=count, partitions=1)
    assert without(landed(lake), "rules_version") == before
    rows = {row["path"]: row for row in rows_of(lake)}
    for number, (*_, columns) in enumerate(TOLD_BY_WHAT_IS_NOT_KEPT):
        assert rows[f"/{number}"].items() >= (columns | {"rules_version": rules.rules_version}).items(), number


def test_a_referral_found_by_path_gets_its_products_new_name(lake, load, under):
    load(line("/grok", referrer="https://x.com/i/grok") + line("/copilot", referrer="https://github.com/copilot"))
    with under(with_a_renamed_source):
        reclassify(lake)
    assert {row["path"]: (row["bot_category"], row["ai_source"], row["referrer_type"]) for row in rows_of(lake)} == {
        "/grok": ("ai_referral", "Grok AI", "ai"),
        "/copilot": ("ai_referral", "Copilot of GitHub", "ai"),
    }


def test_an_unreadable_request_line_stays_unreadable(lake, load, under):
    load(line(agent=NEWTHING) + f'203.0.113.7 - - [17/May/2015:10:05:03 +0000] "\\x16\\x03" 400 1 "-" "{CHROME}"\n')
    with under(with_new_rows):
        reclassify(lake)
    assert {(row["method"], row["path"], row["bot_category"]) for row in rows_of(lake)} == {
        ("GET", "/abc", "ai_training"),
        ("", "", "other_bot"),
    }


# Runs, and imports before and after


def test_a_log_is_not_imported_again_after_a_reclassification(lake, load, under):
    log, other = line("/a") + line("/b", agent=NEWTHING), line("/other", second=4)
    load(log[: log.index(" Newthing")])
    load(other[:-1])
    for rules in (with_other_rows, with_new_rows):
        with under(rules):
            assert are_unfinished(lake) == [False, True, True]
            reclassify(lake)
            before = bytes_on_disk(lake)
            assert load(other[:-1]).already_imported
            assert bytes_on_disk(lake) == before
    with under(with_new_rows):
        grown = load(log)
        assert (grown.continued, grown.visits) == (True, 1)
        assert are_unfinished(lake) == [False, False, True]
        load(other)
    assert not any(are_unfinished(lake))
    told = sorted((row["path"], row["bot_category"]) for row in rows_of(lake))
    assert told == [("/a", "human"), ("/b", "ai_training"), ("/other", "human")]


def test_a_dry_run_reports_the_same_changes_but_makes_none(lake, load, under):
    load(line() + line(agent=NEWTHING) + line(day=18, referrer="https://ask.example/") + line("/secret")[:-1])
    load(line(agent=NEWTHING), "other")
    before = bytes_on_disk(lake)
    with under(with_new_rows):
        told = reclassify(lake, "acme", "other", dry_run=True)
        assert bytes_on_disk(lake) == before
        assert [lake.manifest.organizations.epoch(name) for name in ("acme", "other")] == [0, 0]
        assert reclassify(lake, "acme", "other") == told
    assert moved(told) == {
        CategoryChange("human", "ai_training"): 2,
        CategoryChange("human", "ai_referral"): 1,
        CategoryChange("human", "other_bot"): 1,  # requests for /secret, which is a probe now
    }


def test_only_named_organizations_are_reclassified(lake, load, under):
    names, told = ("acme", "other", "third"), []
    for name in names:
        load(line(agent=NEWTHING) + line(agent=GPTBOT, day=18), name)
    before = {name: (files_of(lake, name), landed(lake, name)) for name in names}
    with under(with_new_rows):
        result = reclassify(lake, "acme", "third", progress=lambda done, whole: told.append((done, whole)))
    assert (result.visits, told) == (4, [(done, 4) for done in (1, 2, 3, 4)])
    assert (files_of(lake, "other"), landed(lake, "other")) == before["other"]
    assert [lake.manifest.organizations.epoch(name) > 0 for name in names] == [True, False, True]
    for name in ("acme", "third"):
        assert not {file.path for file in files_of(lake, name)} & {file.path for file in before[name][0]}


@pytest.mark.parametrize("is_of_old_rules", [True, False])
def test_a_run_ended_by_a_damaged_file_keeps_its_progress(lake, classifier, is_of_old_rules):
    current = {} if is_of_old_rules else {"rules_version": classifier.rules_version}
    for day, version in ((3, {}), (4, {}), (4, current), (5, {})):
        land(lake, "acme", [visit(user_agent=GPTBOT, visited_at=datetime(2026, 3, day), **version)])
    before = {file.path for file in files_of(lake)}
    *_, damaged = [lake.root / file.path for file in files_of(lake) if file.day == date(2026, 3, 4)]
    with flipped(damaged):
        for how in ({}, {}, {"dry_run": True}):
            with pytest.raises(LakeDamaged, match=damaged.name):
                reclassify(lake, **how)
        (done,) = [file for file in files_of(lake) if file.path not in before]
        assert done.day == date(2026, 3, 3)
        assert [row["bot_category"] for row in read(lake, done)] == ["ai_training"]
        assert (lake.manifest.organizations.epoch("acme"), list(lake.staging.iterdir())) == (1, [])
    assert reclassify(lake).rewritten == 2 + is_of_old_rules
    assert {row["rules_version"] for row in rows_of(lake)} == {classifier.rules_version}
