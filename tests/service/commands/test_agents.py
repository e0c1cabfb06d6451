"""`traffic agents refresh`, and what its lists change in `traffic import`."""

import json
import re
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from data.store.ip_list_files import snapshots
from tests.service.commands.runs import refused
from tests.support.user_agents import CHROME

pytestmark = pytest.mark.usefixtures("one_reader")
GPTBOT, PERSON = (
    f'5.5.5.5 - - [04/Mar/2026:10:05:03 +0000] "GET /sale HTTP/1.1" 302 5 "-" "{agent}"\n'
    for agent in ("Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)", CHROME)
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder for lists, in that in which commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lists").mkdir()
    return tmp_path / "lists"


@pytest.fixture
def refresh(traffic):
    """Runs `traffic agents refresh` over the lists of the folder."""
    return lambda *flags: traffic("agents", "refresh", "--from", "lists", *flags)


def prefixes(*networks):
    return json.dumps({"prefixes": [{f"ipv{6 if ':' in network else 4}Prefix": network} for network in networks]})


def cells(run):
    """The rows of the table that a run printed: its cells stand apart by more than one space."""
    return [re.split(r"\s{2,}", row.strip()) for row in run.out.splitlines()]


def networks(lake, name):
    return [str(network) for network in snapshots(lake)[name].networks]


MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
HEAD = ["list", "operator", "networks", "fetched at", "problem"]


# traffic agents refresh


def test_lists_in_a_folder_are_read_and_told(refresh, lake, folder):
    (folder / "openai-gptbot.json").write_text(prefixes(*(f"20.42.{n}.0/24" for n in range(256)), "2603:1030::/48"))
    (folder / "meta-geofeed.csv").write_text("# ours\n31.13.24.0/21,IE,,,\n")
    (folder / "somebody-elses.json").write_text("no list of ours")
    run = refresh()
    assert (run.code, run.err) == (0, "")
    head, *rows = cells(run)
    assert head == HEAD
    assert sorted(row[:3] for row in rows) == [["meta-geofeed", "Meta", "1"], ["openai-gptbot", "OpenAI", "257"]]
    assert all(re.fullmatch(MOMENT, row[3]) and len(row) == 4 for row in rows)
    assert sorted(snapshots(lake)) == ["meta-geofeed", "openai-gptbot"]
    assert networks(lake, "meta-geofeed") == ["31.13.24.0/21"]


def test_a_list_that_is_refused_ends_with_1_and_keeps_what_was_fetched_before(refresh, lake, folder):
    (folder / "openai-gptbot.json").write_text(prefixes("20.42.10.0/24"))
    before = cells(refresh())[1]
    (folder / "openai-gptbot.json").write_text("<html>404</html>")
    (folder / "perplexity-bot.json").write_text(prefixes("10.0.0.0/8"))
    (folder / "perplexity-user.json").write_text(prefixes("20.42.20.0/24", "20.42.21.0/24"))
    text = "[bold]20.42.10.0/24 [b][/b][link=https://x.example]x:warning:"
    (folder / "openai-searchbot.json").write_text(prefixes(text))
    run = refresh()
    assert run.code == 1
    assert run.err == "3 of 4 lists could not be refreshed; their last versions are kept.\n"
    assert f"'{text}' does not appear to be an IPv4 or IPv6 network" in run.out
    rows = {row[0]: row[1:] for row in cells(run)}
    assert rows["openai-gptbot"][:3] == before[1:]
    assert rows["openai-gptbot"][3].startswith("the list is not in the 'prefixes' format: ")
    told = ["Perplexity", "never", "the list contains 10.0.0.0/8, which is too large or not public"]
    assert rows["perplexity-bot"] == told
    assert rows["perplexity-user"][:2] == ["Perplexity", "2"]
    assert networks(lake, "openai-gptbot") == ["20.42.10.0/24"]
    assert sorted(snapshots(lake)) == ["openai-gptbot", "perplexity-user"]


def test_a_folder_without_lists_is_refused_naming_it_and_one_with_some_makes_a_lake(refresh, folder, tmp_path):
    (folder / "file.json").write_text(prefixes("20.42.10.0/24"))
    for name in ("lists", "nowhere", "lists/file.json"):
        told = refused(refresh("--from", tmp_path / name, "--lake", "new"))
        assert told == f"traffic: --from: no file <list>.* in {tmp_path / name}, such as openai-gptbot.json."
        assert not Path("new").exists()
    (folder / "file.json").rename(folder / "openai-gptbot.json")
    assert refresh("--lake", "new").code == 0
    assert Path("new/ip-lists/openai-gptbot.json").exists()


def test_a_damaged_list_of_the_lake_ends_with_1_and_is_named(refresh, lake, folder):
    (folder / "openai-gptbot.json").write_text(prefixes("20.42.10.0/24"))
    file = lake.ip_lists / "perplexity-bot.json"
    file.write_text("{")
    told = f"traffic: {file} cannot be read; delete it, or run `traffic agents refresh`.\n"
    assert refresh() == (1, "", told)
    assert (lake.ip_lists / "openai-gptbot.json").exists()
    (folder / "perplexity-bot.json").write_text(prefixes("20.42.20.0/24"))
    assert refresh().code == 0
    assert networks(lake, "perplexity-bot") == ["20.42.20.0/24"]


class Quiet(SimpleHTTPRequestHandler):
    """Serves the files of a folder and says nothing."""

    def log_message(self, *args):
        pass


@pytest.fixture
def site(folder):
    """A web server for the files of `folder`, on a free port of the loopback interface."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_lists_are_fetched_from_their_addresses(traffic, lake, folder, site, monkeypatch):
    (folder / "one.json").write_text(prefixes("20.42.10.0/24"))
    (folder / "page.html").write_text("<p>20.42.20.0/24, 20.42.21.7</p>")
    usual = {"evidence": "https://docs.example/", "checked": "2026-03-01"}
    lists = [
        usual | {"name": "one", "operator": "First Inc.", "url": f"{site}/one.json", "format": "prefixes"},
        usual | {"name": "two", "operator": "Second", "url": f"{site}/two.json", "format": "prefixes"},
        usual | {"name": "three", "operator": "Third", "url": f"{site}/page.html", "format": "text"},
    ]
    monkeypatch.setattr("data.rules.tables.load", lambda kind, name: [kind(**row) for row in lists])
    monkeypatch.setenv("no_proxy", "*")
    run = traffic("agents", "refresh")
    assert run.code == 1
    assert run.err == "1 of 3 lists could not be refreshed; their last versions are kept.\n"
    head, one, two, three = cells(run)
    assert head == HEAD
    assert one[:3] == ["one", "First Inc.", "1"]
    assert two == ["two", "Second", "never", f"{site}/two.json cannot be fetched: HTTP status 404"]
    assert three[:3] == ["three", "Third", "2"]
    assert networks(lake, "three") == ["20.42.20.0/24", "20.42.21.7/32"]
    (folder / "two.json").write_text(prefixes("2603:1030::/48"))
    again = traffic("agents", "refresh")
    assert (again.code, again.err) == (0, "")
    assert sorted(snapshots(lake)) == ["one", "three", "two"]


@pytest.fixture
def imported(traffic, tmp_path):
    """Runs `traffic import` on a text."""

    def imported(text, *flags):
        (tmp_path / "access.log").write_text(text)
        return traffic("import", tmp_path / "access.log", "--org", "acme", "--domain", "go.example", *flags)

    return imported


@pytest.fixture
def checked(refresh, lake, folder):
    """A list of GPTBot's addresses in the lake, fetched on the day of the log."""
    (folder / "openai-gptbot.json").write_text(prefixes("20.42.10.0/24"))
    assert refresh().code == 0
    file = lake.ip_lists / "openai-gptbot.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"fetched_at": "2026-03-04T00:00:00+00:00"}))


@pytest.mark.usefixtures("checked")
def test_import_tells_of_agents_that_came_from_elsewhere_unless_by_a_trusted_proxy(imported, lake, monkeypatch):
    inside = GPTBOT.replace("5.5.5.5", "20.42.10.7")
    run = imported(GPTBOT * 2 + inside + PERSON, "--dry-run")
    assert (run.code, run.out) == (0, "")
    claim = "2 visits claiming to be GPTBot, but not from its operator's addresses: other_bot, contradicted"
    assert claim in run.err
    assert "TRAFFIC_TRUSTED_PROXIES" in run.err
    assert re.search(r"other_bot +2 +50\.0 %", run.err)
    assert "5.5.5.5" not in run.err
    for flags in (["--trusted-proxies", "10.0.0.0/8, 5.5.5.0/24"], []):
        monkeypatch.setenv("TRAFFIC_TRUSTED_PROXIES", "10.0.0.0/8,5.5.5.5" if not flags else "")
        run = imported(GPTBOT, "--dry-run", *flags)
        assert (run.code, "ai_training" in run.err, "contradicted" in run.err) == (0, True, False)
    monkeypatch.setenv("TRAFFIC_TRUSTED_PROXIES", "5.5.5.5/24")
    told = refused(imported(GPTBOT))
    assert re.fullmatch(r"traffic: TRAFFIC_TRUSTED_PROXIES or .+: 5\.5\.5\.5/24 has host bits set; .+", told)
    monkeypatch.delenv("TRAFFIC_TRUSTED_PROXIES")
    (lake.ip_lists / "openai-gptbot.json").write_text("{")
    run = imported(GPTBOT)
    assert (run.code, run.out) == (1, "")
    assert run.err.endswith("openai-gptbot.json cannot be read; delete it, or run `traffic agents refresh`.\n")
    assert lake.manifest.organizations() == []
