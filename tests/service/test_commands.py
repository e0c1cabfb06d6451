"""The program `traffic`: what it prints, how it ends, and what it leaves behind."""

import io
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from contextlib import closing
from datetime import datetime
from urllib.parse import urljoin

import duckdb
import httpx2
import pyarrow.parquet as pq
import pytest

from data import BOT_CATEGORIES
from queries import ENDPOINTS, ENTRIES
from service.access.api_keys import ApiKeys
from service.server import run as server
from tests.support.command_tree import COMMANDS
from tests.support.control import open_store, owner
from tests.support.forks import ROOT, without_settings
from tests.support.log_lines import lines
from tests.support.runs import refused
from tests.support.runs import run as program
from tests.support.tables import examples
from tests.support.visits import land, links, visit

ENVIRON = without_settings() | {"no_proxy": "*"}
DAYS = {"start_date": "2026-03-02", "end_date": "2026-03-10"}
DAY_FLAGS = ("--start-date", DAYS["start_date"], "--end-date", DAYS["end_date"])
NO_DAYS = ("--start-date", "2020-01-01", "--end-date", "2020-01-02")


@pytest.fixture(scope="module")
def filled(shared_lake):
    """A lake with visits of every category, and links."""
    seen = {"short_code": "sale", "country": "DE", "utm_source": "mail", "visitor": 7, "status": 404}
    land(
        shared_lake,
        "acme",
        [
            visit(
                bot_category=category,
                agent_kind="coding_agent" if category == "ai_coding_agent" else None,
                ai_source="ChatGPT" if category.startswith("ai_") else None,
                confidence=None if category == "human" else "high",
                visited_at=datetime(2026, 3, day, 4 + day, 5, 6),
                **extra,
            )
            for category in BOT_CATEGORIES
            for day in (2, 9)
            for extra in ({}, seen)
        ],
    )
    links(shared_lake, "acme", [{"short_code": "sale", "target_url": "https://shop.example/ü?a=1,2"}])
    return shared_lake


@pytest.fixture(scope="module")
def query(filled):
    """Run `traffic query` over the filled lake."""
    return lambda *arguments: program("query", *arguments, "--org", "acme", "--lake", filled.root)


@pytest.fixture(scope="module")
def api(filled, opened):
    """The application over the filled lake, called by acme."""
    with opened(filled) as client:
        yield client


# traffic query


ONE_OF_EACH_SHAPE = {entry.shape: entry.name for entry in ENDPOINTS.values()}.values()


def test_query_prints_the_same_bytes_as_the_api(query, api):
    """One answer of each shape is tested; tests/test_whole_way.py tests every answer of `traffic query`."""
    for name in ONE_OF_EACH_SHAPE:
        answer = api.get(f"/analytics/{name}", params=DAYS)
        assert answer.status_code == 200
        assert len(answer.json()) > 0
        run = query(name, *DAY_FLAGS, "--format", "json")
        assert (run.code, run.out, run.err) == (0, answer.text, ""), name


@examples("filters")
def test_query_filters_as_the_api_does(query, api, filters):
    flags = itertools.chain(*((f"--{name.replace('_', '-')}", value) for name, value in filters.items()))
    answer = api.get("/analytics/bot-traffic", params=DAYS | filters).text
    assert query("bot-traffic", *DAY_FLAGS, *flags, "--format", "json").out == answer


def test_query_writes_parquet(query):
    table = pq.read_table(io.BytesIO(query("top-links", *DAY_FLAGS, "--format", "parquet").body))
    assert table.column_names == [field.name for field in ENTRIES["top-links"].fields]
    assert table["last_visit"].to_pylist() == [datetime(2026, 3, 9, 13, 5, 6)]
    empty = query("top-links", *NO_DAYS, "--format", "parquet")
    assert pq.read_table(io.BytesIO(empty.body)).num_rows == 0


@pytest.mark.parametrize("form", ["json", "csv", "table", "parquet"])
def test_a_custom_template_may_return_any_common_type(query, tmp_path, form):
    file = tmp_path / "mine.sql"
    file.write_text(
        "SELECT bot_category, 1.5 AS tenths, avg(status) AS mean, sum(status) AS total, max(visitor) AS most, "
        "max(day) AS day, max(visited_at) AS moment, [1, 2] AS list, {'a': 1} AS pair, true AS flag, NULL AS nothing, "
        "count(*) AS visits FROM visits_in_scope GROUP BY ALL ORDER BY 1"
    )
    run = query(file, *DAY_FLAGS, "--format", form, "--traffic-type", "other", "--short-code", "sale")
    assert run.code == 0, run.err
    if form == "json":
        assert [(row["bot_category"], row["visits"]) for row in run.json] == [("other_bot", 2), ("search_crawler", 2)]
    assert run.out


def test_help_and_queries_do_not_load_the_web_server(filled):
    script = (
        "import sys; from service.commands import app\n"
        "for words in (['--help'], ['serve', '--help'], ['keys', 'list', '--help'], ['query', '--help'],\n"
        f"              ['query', 'devices', '--org', 'acme', '--lake', {str(filled.root)!r}]):\n"
        "    app(words, standalone_mode=False)\n"
        "    print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60, env=ENVIRON
    )
    assert ended.stdout.count("Usage") == 4
    *helps, query = [set(line.split()) for line in ended.stderr.splitlines() if line.startswith("__")]
    web = {"starlette", "uvicorn", "uvloop", "httptools", "jwt", "cryptography"}
    engine = {"duckdb", "queries"}  # the help for `traffic query` shows the parameters, which are defined there
    assert [(web | engine | {"re2"}) & modules for modules in helps] == [set(), set(), set(), engine]
    assert not web & query


# traffic keys, traffic views


def test_a_printed_key_is_valid_until_it_is_revoked(lake):
    key = program("keys", "create", "--org", "acme", "--name", "dashboard", "--lake", lake.root).out.strip()
    with open_store(ApiKeys, lake) as control:
        assert owner(control, key) == "acme"
        assert program("keys", "revoke", key[:12], "--lake", lake.root).code == 0
        assert owner(control, key) is None


def test_the_views_script_reports_which_days_have_visits(filled):
    options = ("--org", "acme", "--lake", filled.root)
    run = program("views", *options, *DAY_FLAGS, "--domain", "it's.example")
    assert (run.code, run.err) == (0, "")
    assert "it''s.example" in run.out
    run = program("views", *options, "--start-date", "2026-03-03", "--end-date", "2026-03-08")
    assert run.err.startswith("acme has no visits from 2026-03-03 to 2026-03-08: its visits are from 2026-03-02 to")
    with closing(duckdb.connect()) as shell:
        assert shell.execute(run.out).fetchall() == [(run.err.rstrip("\n"),)]


def test_views_describe_every_column_that_a_query_can_read(filled):
    options = ("--org", "acme", "--lake", filled.root, *DAY_FLAGS)
    described = json.loads(program("views", *options, "--describe", "--format", "json").out)
    assert [row for rows in described.values() for row in rows if not all(row.values())] == []
    meanings = {row["column"]: row["meaning"] for row in described["columns"]}
    assert meanings["device_type"] == "one of desktop, mobile, tablet, bot"
    for row in described["relations"]:
        assert set(row["columns"].split(", ")) <= set(meanings)
    columns = {row["relation"]: row["columns"] for row in described["relations"]}
    assert columns["daily_protocols"] == (
        "day, protocol, visits, human_clicks, ai_visits, ai_referrals, other_visits, unique_visitors, people_visitors, "
        "ai_visitors, referred_visitors, bot_visitors"
    )
    assert "visits_in_scope" in program("views", *options, "--describe").out


# The whole program


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(command):
    run = program(*command.split(), "--help")
    assert (run.code, run.err) == (0, "")
    assert re.search(rf"Example[^:]*: .*traffic {command}\b", run.out)
    assert not re.search(r"<(str|int|float|path)\b", run.out)  # the metavar names the value


VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_the_program_prints_the_projects_version():
    assert program("--version").out == f"traffic {VERSION}\n"


def test_the_changelog_begins_with_the_projects_version():
    releases = re.findall(r"^## (\S+) \(\d{4}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert releases[0] == VERSION


@pytest.mark.parametrize(
    "group", ["", "agents", "behaviour", "exclude", "hooks", "jobs", "keys", "links", "robots", "zone"]
)
def test_help_describes_every_command_in_a_complete_sentence(group):
    run = program(*group.split(), "--help")
    assert group or run == program()
    assert max(map(len, run.out.splitlines())) <= 80
    listed = re.sub(r"\n {9,}", " ", run.out.partition("Commands:\n")[2]).splitlines()
    assert [line for line in listed if line.endswith("...") or not line.endswith(".")] == []
    below = {command.removeprefix(group).split()[0] for command in COMMANDS if f"{command} ".startswith(group)}
    assert {line.split()[0] for line in listed} == below


@pytest.mark.parametrize("words", ["nothing", "keys nothing", "--nothing", "serve extra", "demo --visits 0"])
def test_an_unknown_command_or_value_is_reported_in_one_line(words):
    assert words.split()[-1] in refused(program(*words.split()))


@examples("command", "told")
def test_impossible_commands_are_rejected_in_one_line(filled, tmp_path, command, told):
    before = filled.manifest.organizations.names(), filled.manifest.files.live("acme")
    files = {"access.log": lines("/sale"), "letter.txt": "Dear reader,\nthis is not a log.\n" * 40}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    places = {"here": tmp_path, "lake": filled.root}
    run = program(*shlex.split(command.format(**places)), "--lake", filled.root)
    assert told.format(**places).lower() in refused(run).lower()
    assert (filled.manifest.organizations.names(), filled.manifest.files.live("acme")) == before
    assert not list(filled.staging.glob("*.parquet"))
    assert {path.name for path in tmp_path.iterdir()} == files.keys()


@examples("command")
def test_a_mistyped_lake_is_rejected_and_not_created(tmp_path, command):
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    file.write_text(lines("/sale"))
    words = [word.replace("%FOLDER%", str(folder)) for word in command]
    line = refused(program(*words, "--lake", folder / "typo"))
    assert f"no lake at {folder / 'typo'}" in line
    assert "TRAFFIC_LAKE" in line
    assert list(folder.iterdir()) == []
    assert str(file) in refused(program(*words, "--lake", file))


@examples("command")
def test_an_unknown_organization_is_rejected(filled, tmp_path, command):
    before = filled.manifest.files.live("acme")
    words = [word.replace("%FOLDER%", str(tmp_path / "new")) for word in command]
    others = ("_seed", "a/b", "[a]*") if command[0] in ("query", "erase") else ()
    for name in ("nobody", *others, *([""] if command[0] == "erase" else [])):
        assert repr(name) in refused(program(*words, "--org", name, "--lake", filled.root))
    assert (filled.manifest.files.live("acme"), list(tmp_path.iterdir())) == (before, [])


@examples("command")
def test_a_command_that_creates_a_lake_reports_it(tmp_path, monkeypatch, command):
    monkeypatch.setattr(server, "serve_on", lambda app, listener, *_: listener.close())
    (tmp_path / "links.csv").write_text("short_code,target_url\na,https://shop.example/\n")
    words = [str(tmp_path / word) if word.endswith(".csv") else word for word in command]
    told = [program(*words, "--lake", tmp_path / "new").err.partition("\n") for _ in range(2)]
    assert told[0][0] == f"No lake at {tmp_path / 'new'} yet: creating a new one."
    assert told[1][0] != told[0][0]


def test_ctrl_c_during_a_query_ends_the_program_with_130(monkeypatch, filled):
    def interrupted(*_, **_options):
        raise RuntimeError("Query interrupted")  # like DuckDB, for KeyboardInterrupt

    monkeypatch.setattr("queries.warehouse.LockedEngine", interrupted)
    assert program("views", "--org", "acme", "--lake", filled.root) == (130, "", "traffic: stopped.\n")


def test_demo_serves_a_sample_and_leaves_nothing_behind(tmp_path, forks):
    environ = ENVIRON | {"TMPDIR": str(tmp_path), "TRAFFIC_LAKE": str(tmp_path / "mine"), "TRAFFIC_PORT": "0",
                         "TRAFFIC_HOOK_NETWORKS": "127.0.0.0/8"}  # fmt: skip
    read, write = os.pipe()
    process = forks.start("demo", "--visits", "1500", settings=environ, out=write)
    os.close(write)
    stdout = os.fdopen(read)
    try:
        line = stdout.readline()
        key, address = re.fullmatch(
            r'curl -H "Authorization: Bearer (tak_\w+)" "(http://127\.0\.0\.1:\d+/\S+)"\n', line
        ).groups()
        assert ":8000/" not in address  # TRAFFIC_PORT=0 takes a free port
        assert next(path.name for path in tmp_path.iterdir()).startswith("traffic-demo-")
        with httpx2.Client(trust_env=False, verify=False, headers={"Authorization": f"Bearer {key}"}) as client:
            answer = client.get(address).json()
            countries = client.get(address.replace("traffic-overview", "geographic")).json()
            hook = {"name": "here", "url": "http://127.0.0.1:9/"}
            assert client.post(urljoin(address, "/agent-hooks"), json=hook).status_code == 201
        if shutil.which("curl"):
            pasted = subprocess.run(line, shell=True, capture_output=True, check=True, timeout=60, env=environ)
            assert json.loads(pasted.stdout) == answer
        assert min(answer["human_clicks"], answer["ai_visits"], answer["total_visits"]) > 0
        assert len({row["country"] for row in countries} - {"unknown"}) > 20
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
        assert (process.returncode, stdout.read()) == (0, "")
    finally:
        process.kill()
        stdout.close()
    assert "Traceback" not in err
    assert f"--lake {tmp_path}/traffic-demo-" in err
    assert list(tmp_path.iterdir()) == []
