"""`traffic classify`: output for one request and for many, and errors for invalid lines."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import crawleruseragents
import pytest

from data.ingest.importer import Importer, Options
from data.rules.classifier import Request
from data.rules.tables import IpList, load
from data.store.ip_list_files import refresh
from data.visits import Classification
from service.commands import main
from tests.support.lakes import rows_of
from tests.support.runs import run
from tests.support.user_agents import CHROME_ON_WINDOWS as CHROME
from tests.support.user_agents import GPTBOT

CLAUDE_USER = "Mozilla/5.0 (compatible; Claude-User/1.0; +Claude-User@anthropic.com)"
AI_REFERRER, TAGGED = "https://chatgpt.com/c/1", "https://go.example/sale?a=b&utm_source=chatgpt.com#top"
KEYS = [*Classification._fields]
NOBODY = Classification("other_bot", "other", None, None, None, "low", "heuristic", "bot", None, None)
CLAIMS_GPTBOT = Classification(
    "ai_training", "training", "ChatGPT", "GPTBot", "OpenAI", "high", "user_agent", "bot", None, None
)
CORPUS = sorted((Path(__file__).parents[2] / "data" / "rules" / "corpus").glob("*.jsonl"))


@pytest.fixture
def classify(tmp_path):
    """Run `traffic classify`, by default without a lake."""

    def classify(*arguments, stdin=b"", lake=None):
        words = ["classify", *arguments, "--lake", lake.root if lake else tmp_path / "nowhere"]
        found = run(*words, stdin=stdin)
        assert not (tmp_path / "nowhere").exists()
        assert "Traceback" not in found.err
        return found

    return classify


def split_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def listed(lake, name="openai-gptbot", network="132.196.86.0/24", days_ago=0):
    """Put a snapshot of an address list into a lake, as a refresh does."""
    body = json.dumps({"prefixes": [{"ipv4Prefix": network}]}).encode()
    rows = [row for row in load(IpList, "ip_lists") if row.name == name]
    (told,) = refresh(lake, rows, lambda row: body, datetime.now(UTC) - timedelta(days=days_ago))
    assert told.snapshot, told.error


def table(run):
    """Return the printed rows: each label on the left, with the list of values on its right."""
    assert (run.code, run.err) == (0, "")
    found = {}
    for line in run.out.splitlines():
        found.setdefault(line[:18].strip(), []).append(line[18:].strip())
    return found


@pytest.mark.parametrize(
    ("user_agent", "referrer", "url"),
    [(GPTBOT, AI_REFERRER, TAGGED), (CHROME, AI_REFERRER, ""), (CHROME, "", ""), ("", "", ""),
     ("curl/8.5.0", "", TAGGED), ("\udcff\udcfe", "https://\udcff/", "/?utm_source=\udcff")],
    ids=["agent", "referral", "person", "nobody", "library", "no UTF-8"],
)  # fmt: skip
def test_a_request_is_explained_by_every_matching_rule(classify, classifier, user_agent, referrer, url):
    request = Request.from_log(user_agent, "GET", referrer, url.partition("?")[2].partition("#")[0])
    says, (decides, *others) = classifier.classify(request), classifier.matches(request)
    told = table(classify("--user-agent", user_agent, "--referrer", referrer, "--url", url))
    assert {name: told[name] for name in KEYS} == {name: [value or ""] for name, value in says._asdict().items()}
    assert list(told)[: len(KEYS)] == KEYS
    assert told["decided by"] == [f"{decides.rule}  {decides.evidence}".strip()]
    beside = [f": {sign.rule}  {sign.evidence}".rstrip() for sign in others]
    assert [line[-len(rest) :] for line, rest in zip(told.get("else", []), beside, strict=True)] == beside
    categories = [match.classification.bot_category for match in others]
    assert all(map(str.startswith, told.get("else", []), categories))
    assert told["rules"] == [classifier.rules_version]
    assert "address" not in told


# Many requests, for programs to read


ROWS = [
    {},
    {"user_agent": None, "referrer": None, "url": None, "ip": None},
    {"user_agent": ""},
    {"user_agent": "-", "referrer": AI_REFERRER},
    {"referrer": AI_REFERRER, "user_agent": CHROME},
    {"url": TAGGED, "user_agent": CHROME},
    {"url": "/?utm_source=chatgpt.com", "referrer": AI_REFERRER, "user_agent": CHROME},
    {"url": "/#?utm_source=chatgpt.com", "user_agent": CHROME},
    {"url": "utm_source=chatgpt.com", "user_agent": CHROME},
    {"user_agent": "\ud800", "referrer": "https://\udfff/", "url": "/\ud800?utm_source=\ud800", "ip": "\ud800"},
    {"user_agent": CHROME + "\ud800", "referrer": "\ud800"},
    {"user_agent": "Mozilla/5.0 " + "a" * 1_000_000},
    {"user_agent": CHROME, "referrer": "https://" + "a." * 500_000, "url": "/?" + "a=b&" * 250_000 + "utm_source=x"},
    {"user_agent": "".join(map(chr, range(32))) + "\x7f\x80\x9f"},
    {"user_agent": CHROME + "\r\n\x00\x1b[2J"},
    {"user_agent": "(" * 8000},
    {"user_agent": "((((" * 500 + CHROME + "))))" * 500},
    {"user_agent": "Яндекс 浏览器 🙂\u2028\u2029\x85"},
    {"user_agent": "\\x22" + GPTBOT + "\\x22"},
    {"user_agent": GPTBOT, "ip": "no address"},
    {"user_agent": GPTBOT, "ip": "132.196.86.7"},
]


def test_each_line_gets_the_classifiers_result_in_order(classify, classifier, tmp_path):
    file = tmp_path / "requests.jsonl"
    file.write_bytes(split_lines(ROWS))
    found = classify("--jsonl", file)
    assert (found.code, found.err) == (0, "")
    queries = [str(row.get("url") or "").partition("#")[0].partition("?")[2] for row in ROWS]
    words = [(row.get("user_agent") or "", "GET", row.get("referrer") or "") for row in ROWS]
    told = [classifier.classify(Request.from_log(*each, query)) for each, query in zip(words, queries, strict=True)]
    assert found.answers == [says._asdict() for says in told]
    assert [tuple(answer.values()) for answer in found.answers[:4]] == [NOBODY] * 4
    assert [answer["ai_source"] for answer in found.answers[4:9]] == ["ChatGPT"] * 3 + [None] * 2


NO_REQUESTS = [
    *(b"", b"   ", b"no JSON", b'{"user_agent": "x"', b'{"user_agent": "x"} {"user_agent": "y"}'),
    *(b'{"user_agent": "a\tb"}', b'{"user_agent": "\xff"}'),
    b'{"user_agent": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b"[" * 100_000,
    *(b'["GPTBot"]', b'"GPTBot"', b"null", b"7", b"[]", b'{"user_agent": 7}', b'{"user_agent": NaN}'),
    b'{"user_agent": ' + b"1" * 5000 + b"}",
    *(b'{"user_agent": true}', b'{"user_agent": false}', b'{"user_agent": 0}', b'{"user_agent": 0.0}'),
    *(b'{"user_agent": []}', b'{"user_agent": {}}'),
    b'{"user_agent": ["GPTBot"]}',
    b'{"user_agent": "GPTBot", "referrer": {"host": "a"}}',
    b'{"user_agent": "GPTBot", "url": 1.5}',
    b'{"user_agent": "GPTBot", "ip": 2219792903}',
    b'{"ua": "GPTBot"}',
    b'{"user_agent": "GPTBot", "referer": "https://chatgpt.com/"}',
    b'{"user_agent": "GPTBot", "\\ud800' + b"x" * 100_000 + b'": null}',
]


def test_invalid_lines_get_an_error_in_order(classify, tmp_path):
    file = tmp_path / "requests.jsonl"
    file.write_bytes(b"".join(line + b"\n" + split_lines([{"user_agent": GPTBOT}]) for line in NO_REQUESTS))
    found = classify("--jsonl", file)
    assert found.code == 2
    assert found.answers[1::2] == [CLAIMS_GPTBOT._asdict()] * len(NO_REQUESTS)
    for number, answer in enumerate(found.answers[::2]):
        assert list(answer) == ["line", "error"]
        assert answer["line"] == 1 + 2 * number
        assert "line 2" not in answer["error"]  # each line is separate JSON
        assert re.fullmatch(
            r"not (valid JSON|a JSON object).{5,}|(user_agent|referrer|url|ip) must be a string|"
            r"unknown key '.{1,50}'; use any of user_agent, referrer, url, ip",
            answer["error"],
        )
    assert re.fullmatch(
        rf"traffic: [^\n]*requests\.jsonl: {len(NO_REQUESTS)} lines could not be classified; [^\n]+\.\n", found.err
    )


# Addresses


def test_an_address_confirms_or_contradicts_only_agents(classify, lake):
    listed(lake)
    inside = ["132.196.86.7", "::ffff:132.196.86.7"]
    outside = ["8.8.8.8", "2001:4860:4860::8888"]
    a_proxy, private, none, missing = ["104.16.0.1", "10.0.0.1", "no address", ""]
    addresses = [*inside, *outside, a_proxy, private, none, missing]
    rows = [{"user_agent": user_agent, "ip": address} for user_agent in (GPTBOT, CHROME) for address in addresses]
    answers = classify("--jsonl", "-", stdin=split_lines(rows), lake=lake).answers
    verified = CLAIMS_GPTBOT._replace(confidence="verified", detection_method="ip_range")
    contradicted = NOBODY._replace(agent="GPTBot", confidence="contradicted", detection_method="ip_range")
    told = [Classification(**answer) for answer in answers]
    assert told[: len(addresses)] == [verified] * 2 + [contradicted] * 2 + [CLAIMS_GPTBOT] * 4
    assert {says.bot_category for says in told[len(addresses) :]} == {"human"}


def test_an_old_or_incomplete_address_list_contradicts_no_agent(classify, lake):
    listed(lake, days_ago=40)
    listed(lake, "anthropic-bots", "160.79.104.0/23")
    rows = [
        {"user_agent": user_agent, "ip": address}
        for user_agent, inside in ((GPTBOT, "132.196.86.7"), (CLAUDE_USER, "160.79.104.9"))
        for address in ("8.8.8.8", inside)
    ]
    answers = classify("--jsonl", "-", stdin=split_lines(rows), lake=lake).answers
    assert [answer["confidence"] for answer in answers] == ["high", "verified"] * 2
    assert {answer["agent"] for answer in answers} == {"GPTBot", "Claude-User"}


def logged(text):
    """Return a header as nginx logs it: quotes and control characters escaped, the rest unchanged."""
    return re.sub(r'(?<!\\)"|[\x00-\x1f\x7f]', lambda found: f"\\x{ord(found[0]):02X}", text)


def landed(lake, rows, targets):
    """Import rows whose targets begin with their position; return the classifications of their visits in the same
    order."""
    log = lake.root.parent / "access.log"
    lines = (
        f'- - - [04/Mar/2026:10:05:03 +0000] "GET {target} HTTP/1.1" 302 5 '
        f'"{logged(row.get("referrer") or "-")}" "{logged(row["user_agent"])}"\n'
        for row, target in zip(rows, targets, strict=True)
    )
    log.write_text("".join(lines), "utf-8")
    summary = Importer(lake).run(log, Options("acme", log_format="combined"))
    assert (summary.visits, summary.rejected) == (len(rows), 0)
    found = {int(re.match(r"/(\d+)", visit["path"])[1]): visit for visit in rows_of(lake)}
    return [{name: found[number][name] for name in KEYS} for number in range(len(rows))]


def test_a_log_and_its_lines_get_the_same_classification(classify, lake):
    crawlers = crawleruseragents.CRAWLER_USER_AGENTS_DATA
    rows = [{"user_agent": instance} for row in crawlers for instance in row["instances"][:1]]
    rows += [json.loads(line) for file in CORPUS for line in file.read_bytes().splitlines()]
    asked = ("user_agent", "referrer", "url", "ip")  # the corpus has more facts about each request
    rows = [{name: row[name] for name in asked if name in row} for row in rows]
    rows = [row for row in rows if "#" not in row.get("url", "")]  # no fragment is ever sent
    rows.append({"user_agent": CHROME, "url": "/0&utm_source=chatgpt.com"})
    targets = [f"/{number}?{row.get('url', '').partition('?')[2]}" for number, row in enumerate(rows)]
    targets[-1] = f"/{len(rows) - 1}&utm_source=chatgpt.com"
    found = classify("--jsonl", "-", stdin=split_lines(rows))
    assert found.code == 0
    differing = [
        (row, answer, visit)
        for row, answer, visit in zip(rows, found.answers, landed(lake, rows, targets), strict=True)
        if answer != visit
    ]
    assert differing == []


def test_a_closed_stdin_has_no_lines(monkeypatch, capsysbinary):
    monkeypatch.setattr("sys.stdin", None)
    monkeypatch.setattr("sys.argv", ["traffic", "classify", "--jsonl", "-"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, *capsysbinary.readouterr()) == (0, b"", b"")
