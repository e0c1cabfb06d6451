"""Agents named by `Signature-Agent`: in logs, in live visits, and after reclassification."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from data.ingest.importer import Importer, Options
from data.ingest.live import LiveIngest
from data.logs.line_layout import parse_layout
from data.logs.reported import Submission
from data.rules.tables import IpList, load
from data.store.ip_list_files import refresh
from data.store.pending import flush_all
from data.tasks.reclassification import Reclassifier
from tests.support.forks import ROOT
from tests.support.lakes import everything_in, rows_of
from tests.support.tables import tables
from tests.support.user_agents import CHROME, GPTBOT
from tests.support.visits import land, visit

FORMAT_LINES = tables(Path(__file__).parents[1] / "logs/test_lines.py")["formats"]
LAYOUT = '$remote_addr [$time_local] "$request" $status "$http_user_agent" "$http_signature_agent"'
SIGNED = 'sig1="https://www.browserbase.com"'
GOOGLE = 'g="https://agent.bot.goog"'
INSIDE, OUTSIDE = "198.51.100.7", "8.8.8.8"
LINES = [
    ("caddy", {'"headers": {': f'"headers": {{"Signature-Agent": {json.dumps([SIGNED])}, '}),
    ("cloudflare", {"{": json.dumps({"RequestHeaders": {"signature-agent": SIGNED}})[:-1] + ", "}),
    ("nginx-json", {"{": json.dumps({"http_signature_agent": SIGNED})[:-1] + ", "}),
    ("traefik", {"{": json.dumps({"request_Signature-Agent": SIGNED})[:-1] + ", "}),
    ("w3c", {" cs-host": " cs(Signature-Agent)", "go.example.com": SIGNED}),
    ("w3c", {" cs-host": " cs(Signature-Agent)", "go.example.com": '"https://www.browserbase.com"'}),
    ("ndjson", {"{": json.dumps({"signature_agent": SIGNED})[:-1] + ", "}),
    ("haproxy", {"t.co/x}": "t.co/x|||||sig1=#22https://www.browserbase.com#22||}"}),
]


def nginx(signed, agent=CHROME, ip=INSIDE, path="/"):
    written = signed.replace('"', r"\x22")
    return f'{ip} [01/Mar/2026:10:05:00 +0000] "GET {path} HTTP/1.1" 200 "{agent}" "{written}"\n'


def results(rows):
    return {row["path"]: (row["agent"], row["confidence"], row["detection_method"]) for row in rows}


@pytest.mark.parametrize(("log_format", "changes"), LINES, ids=[name for name, _ in LINES])
def test_a_signature_agent_header_names_the_agent_in_each_format(logs, log_format, changes):
    line = re.sub(r"Mozilla/5\.0[^\"|]*?(?=[\"|])", CHROME, FORMAT_LINES[log_format][0])
    for part, other in changes.items():
        assert part in line
        line = line.replace(part, other, 1)
    logs.load(f"{line}\n", Options("acme", domain="go.example.com", log_format=log_format))
    (found,) = logs.visits()
    assert (found["agent"], found["detection_method"]) == ("Browserbase", "signature")


def test_a_cloudfront_real_time_log_names_its_agent(logs):
    (fields,) = re.findall("^#Fields: .*", (ROOT / "data/logs/README.md").read_text("utf-8"), re.MULTILINE)
    cells = {"timestamp": "1795832242.087", "c-ip": INSIDE, "sc-status": "302", "cs-uri-stem": "/",
             "cs-headers": "host:a%0Asignature-agent:%22https://www.browserbase.com%22%0A",
             "cs-header-names": "host%0Asignature-agent%0A", "cs-headers-count": "2"}  # fmt: skip
    line = "\t".join(cells.get(name, "-") for name in fields.split()[1:])
    logs.load(f"{fields}\n{line}\n", Options("acme", domain="go.example.com"))
    assert [row["agent"] for row in logs.visits()] == ["Browserbase"]


REQUESTS = {
    "/none": ("-", CHROME, OUTSIDE, (None, None, None)),
    "/nobody": ('"https://nobody.example"', CHROME, OUTSIDE, (None, None, None)),
    "/signed": (SIGNED, CHROME, OUTSIDE, ("Browserbase", "medium", "signature")),
    "/twice": (SIGNED, CHROME, OUTSIDE, ("Browserbase", "medium", "signature")),
    "/unknown": (SIGNED, CHROME, "-", ("Browserbase", "medium", "signature")),
    "/program": (SIGNED, "curl/8.9.1", OUTSIDE, ("Browserbase", "medium", "signature")),
    "/verified": (SIGNED, GPTBOT, "20.42.10.7", ("GPTBot", "verified", "ip_range")),
    "/contradicted": (SIGNED, GPTBOT, OUTSIDE, ("GPTBot", "contradicted", "ip_range")),
    "/same": ('"https://chatgpt.com"', GPTBOT, "-", ("GPTBot", "high", "user_agent")),
    "/inside": (GOOGLE, CHROME, "74.125.10.7", ("Google-Agent", "verified", "ip_range")),
    "/elsewhere": (GOOGLE, CHROME, OUTSIDE, ("Google-Agent", "medium", "signature")),
}  # fmt: skip
"""Header, user agent, address and expected classification of each request, by its path."""
WANTED = {path: says for path, (*_, says) in REQUESTS.items()}


@pytest.fixture
def listed(lake):
    """A lake with address lists for two agents."""
    networks = {"openai-gptbot": "20.42.10.0/24", "google-user-triggered-agents": "74.125.10.0/24"}
    rows = [row for row in load(IpList, "ip_lists") if row.name in networks]
    body = '{{"prefixes": [{{"ipv4Prefix": "{}"}}]}}'.format
    day = datetime(2026, 3, 1, tzinfo=UTC)
    assert not any(out.error for out in refresh(lake, rows, lambda row: body(networks[row.name]).encode(), day))
    return lake


@pytest.fixture
def imported(listed, tmp_path):
    """The lake after an import of the requests from an nginx log."""
    lines = (nginx(signed, agent, ip, path) for path, (signed, agent, ip, _) in REQUESTS.items())
    (tmp_path / "a.log").write_text("".join(lines))
    Importer(listed).run(tmp_path / "a.log", Options("acme", layout=parse_layout(LAYOUT)))
    return listed


def test_an_address_overrides_a_signature_in_a_log(imported):
    assert results(rows_of(imported)) == WANTED


def test_an_address_overrides_a_signature_in_live_visits(listed):
    rows = [
        json.dumps({"time": "2026-03-01T10:05:00Z", "path": path, "user_agent": agent, "signature_agent": signed}
                   | ({} if ip == "-" else {"ip": ip})).encode()
        for path, (signed, agent, ip, _) in REQUESTS.items()
    ]  # fmt: skip
    LiveIngest(listed).land([Submission("acme", rows)])
    flush_all(listed)
    assert results(rows_of(listed)) == WANTED


def test_the_signature_agent_header_is_not_stored(imported):
    assert b"browserbase.com" not in everything_in(imported.root)


def test_reclassifying_keeps_results_from_signatures(lake, imported):
    rows = [{name: value for name, value in row.items() if name != "rules_version"} for row in rows_of(imported)]
    land(lake, "other", [visit(**row) for row in rows])
    Reclassifier(lake).run(["other"])
    assert results(rows_of(lake, "other")) == WANTED


def test_a_name_from_the_same_operator_replaces_a_signature(lake):
    signed = {"agent": "ChatGPT Agent", "operator": "OpenAI", "confidence": "medium", "detection_method": "signature"}
    land(lake, "acme", [visit(path="/", user_agent=GPTBOT, bot_category="ai_assistant", device_type="bot", **signed)])
    Reclassifier(lake).run(["acme"])
    assert results(rows_of(lake)) == {"/": ("GPTBot", "high", "user_agent")}
