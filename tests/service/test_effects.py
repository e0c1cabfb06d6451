"""The effects of commands on lakes, servers and clocks. What the commands print is tested by transcripts/."""

import json
import os
import re
import shlex
import time
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from data.ingest.importer import Importer, Options
from data.logs.formats import FORMATS
from data.store.ip_list_files import snapshots
from data.store.pending import flush_all
from data.tasks import erasure
from data.tasks import erasure as erasing
from data.tasks import retention as retaining
from queries import DEFAULT_RANGE, RANGES
from service.core.settings import read_settings, setting
from service.intake.commands.summaries import OLD
from service.ops.commands.status import _age
from service.ops.doctor import FEW_FREE_BYTES, MIN_FREE_BYTES, check_address, check_space, check_sync, examine
from tests.service.outgoing.mail_servers import Mailbox, smtp_server
from tests.support.addresses import country_database
from tests.support.lakes import fail_at, numbers, paths, rows_of, strays
from tests.support.log_lines import line
from tests.support.tables import examples
from tests.support.visits import land, visit


def test_ip_lists_are_fetched_from_their_addresses(traffic, lake, receiver, monkeypatch):
    def answer(body):
        return [f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}"]

    one, page = json.dumps({"prefixes": [{"ipv4Prefix": "20.42.10.0/24"}]}), "<p>20.42.20.0/24, 20.42.21.7</p>"
    missing = ["HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"]
    url = receiver(*map(answer, (one,)), missing, *map(answer, (page, one, one, page))).url
    usual = {"url": url, "evidence": "https://docs.example/", "checked": "2026-03-01"}
    lists = [
        usual | {"name": "one", "operator": "First Inc.", "format": "prefixes"},
        usual | {"name": "two", "operator": "Second", "format": "prefixes"},
        usual | {"name": "three", "operator": "Third", "format": "text"},
    ]
    monkeypatch.setattr("data.rules.tables.load", lambda kind, name: [kind(**row) for row in lists])
    monkeypatch.setenv("no_proxy", "*")
    run = traffic("agents", "refresh")
    assert (run.code, run.err) == (1, "1 of 3 lists could not be refreshed; their last versions are kept.\n")
    _, *rows = [re.split(r"\s{2,}", row.strip()) for row in run.out.splitlines()]
    assert [row[:3] for row in rows] == [
        ["one", "First Inc.", "1"],
        ["two", "Second", "never"],
        ["three", "Third", "2"],
    ]
    assert rows[1][3] == f"{url} cannot be fetched: HTTP status 404"
    assert [str(network) for network in snapshots(lake)["three"].networks] == ["20.42.20.0/24", "20.42.21.7/32"]
    again = traffic("agents", "refresh")
    assert (again.code, again.err) == (0, "")
    assert sorted(snapshots(lake)) == ["one", "three", "two"]


def test_two_concurrent_merges_finish_despite_readers(lake, forks):
    days = range(1, 11)
    for number in range(3):  # a file for each day, with two visits
        rows = [visit(visited_at=datetime(2026, 3, day, 12, 0, number), path=f"/{day}-{number}") for day in days]
        land(lake, "acme", rows * 2)
    before = paths(lake)
    running = [forks.start("compact", "--lake", lake.root) for _ in range(2)]
    reads = 0
    while any(process.poll() is None for process in running):
        assert paths(lake) == before
        reads += 1
        time.sleep(0.02)  # leave the processor to the merges
    told = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], told
    merged = [int(re.search(r"Merged (\d+) files", one)[1]) for one in told]
    assert sum(merged) == 30  # each file was merged by one process
    assert reads > 0
    assert numbers(lake) == dict.fromkeys(days, 1)
    assert paths(lake) == before
    assert strays(lake) == ([], set())


def test_a_server_looks_up_visits_in_the_country_database(traffic, lake, opened, tmp_path):
    country_database(tmp_path / "a.mmdb", {"5.5.5.0/24": {"country": {"iso_code": "DE"}}})
    traffic("countries", tmp_path / "a.mmdb")
    with opened(lake) as client:
        assert client.post("/visits", content='{"path": "/a", "ip": "5.5.5.5"}').status_code == 202
    flush_all(lake)
    assert [row["country"] for row in rows_of(lake)] == ["DE"]
    assert traffic("backup", tmp_path / "copy").code == 0
    copied = tmp_path / "copy" / lake.country_database.relative_to(lake.root)
    assert copied.read_bytes() == lake.country_database.read_bytes()


def test_disk_checks_distinguish_failures_from_warnings(lake, monkeypatch):
    seconds = iter(range(100))
    check = check_sync(lake, lambda: next(seconds))
    assert (check.level, "1,000.0 ms" in check.text) == ("warning", True)
    for free, level in ((FEW_FREE_BYTES, "ok"), (FEW_FREE_BYTES - 1, "warning"), (MIN_FREE_BYTES, "warning"),
                        (MIN_FREE_BYTES - 1, "broken")):  # fmt: skip
        assert check_space(lake.root, free).level == level
    fail_at(monkeypatch, "service.ops.doctor", "sync")
    told = f"{lake.root} cannot be written: No space left on device; check its disk."
    assert check_sync(lake) == ("broken", "disk writes", told)
    assert list(lake.root.rglob("doctor-*")) == []


def test_a_clock_that_is_ahead_of_the_disk_gives_a_warning(lake):
    (check,) = [
        check
        for check in examine({"TRAFFIC_LAKE": str(lake.root)}, datetime.now(UTC) + timedelta(days=2))
        if check.subject == "clock"
    ]
    assert (check.level, check.text.endswith("set it with NTP; see timedatectl.")) == ("warning", True)
    assert check.text.startswith("it differs from the clock of the disk by 172,")


@examples("variables", "level", "words")
def test_doctor_checks_the_address_and_the_proxies(variables, level, words):
    check = check_address(read_settings({f"TRAFFIC_{name}": value for name, value in variables.items()}))
    assert check.level == level
    assert words in check.text


def test_a_log_is_old_if_it_is_before_the_default_range():
    assert timedelta(days=RANGES[DEFAULT_RANGE]) == OLD


def test_a_log_without_a_domain_can_be_imported_again_with_one(lake, traffic, tmp_path, monkeypatch):
    monkeypatch.setattr(erasure, "GRACE", timedelta(0))
    log = tmp_path / "access.log"
    log.write_text(line("/a", at="04/Mar/2026:10:05:03 +0000"))
    Importer(lake).run(log, Options("acme"))  # where no domain was required
    command = ("import", log, "--org", "acme", "--domain", "go.example")
    assert "already imported, without a domain, nothing changed" in traffic(*command).err
    run = traffic(*command, "--again")
    (erase,) = re.findall("`uv run traffic (erase --org acme .*?) --lake .*?`", run.err)
    assert (run.code, erase) == (2, "erase --org acme --no-domain --since 2026-03-04 --before 2026-03-05")
    assert traffic(*erase.split(), "--yes").code == 0
    run = traffic(*command, "--again")
    assert (run.code, "1 visit imported from 1 line" in run.err) == (0, True)
    assert [(row["domain"], row["path"]) for row in rows_of(lake)] == [("go.example", "/a")]


def test_the_help_lists_every_log_format(traffic):
    told = "".join(traffic("import", "--help").out.split())  # lines are broken at hyphens, too
    assert [name for name in (*FORMATS, "$remote_addr[$time_local]", "time=ts,ip=") if name not in told] == []


def test_an_import_reports_that_bunny_truncates_addresses(lake, traffic, tmp_path):
    (tmp_path / "bunny.log").write_text(
        "HIT|302|1772618703000|9|390|203.0.113.0|-|https://go.example/a|FRA|Firefox|r1|DE\n", "utf-8"
    )
    run = traffic("import", str(tmp_path / "bunny.log"), "--org", "acme")
    assert "1 visit imported from 1 line (bunny)" in run.err
    assert "several people may count as one visitor" in run.err


@pytest.mark.parametrize("command", [("import", "access.log"), ("follow", "", "--once")], ids=["import", "follow"])
def test_captures_can_be_named_on_the_command_line(lake, traffic, tmp_path, command):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/access.log").write_text(
        "203.0.113.7:51324 [04/Mar/2026:10:05:03.401] web links/app1 0/0/1/8/9 302 5 - - ---- 2/2/0/0/0 0/0 "
        '{Firefox|17|go.example} "GET /a HTTP/1.1"\n'
    )
    os.utime(tmp_path / "in/access.log", (0, 0))  # files in a folder are read once they are old enough
    name, log, *flags = command
    run = traffic(name, tmp_path / "in" / log, "--org", "acme", "--captures", "User-Agent,-,Host", *flags)
    assert run.code == 0, run.err
    assert [(row["domain"], row["user_agent"]) for row in rows_of(lake)] == [("go.example", "Firefox")]


@pytest.fixture
def mail(traffic, lake, monkeypatch):
    """Run `traffic mail` for acme, with these flags and settings."""
    land(lake, "acme", [visit()])

    def mail(*flags, **settings):
        for name, value in settings.items():
            monkeypatch.setenv(setting(name).variable, value)
        return traffic("mail", "--org", "acme", *flags)

    return mail


def test_a_mail_can_be_sent_at_any_time_and_repeatedly(mail):
    mailbox = Mailbox(refused=["gone@acme.example"])
    with smtp_server(mailbox) as port:
        settings = {"smtp": f"smtp://127.0.0.1:{port}", "mail_from": "t@acme.example", "mail_to": "acme=a@acme.example"}
        assert mail(**settings).err == "Sent to a@acme.example.\n"
        assert mail("--to", "b@acme.example,c@acme.example").err == "Sent to b@acme.example, c@acme.example.\n"
        partly, refused_all = mail("--to", "gone@acme.example,d@acme.example"), mail("--to", "gone@acme.example")
    assert [one.rcpt_tos for one in mailbox.mails] == [
        ["a@acme.example"], ["b@acme.example", "c@acme.example"], ["d@acme.example"],
    ]  # fmt: skip
    assert (partly.code, refused_all.code) == (1, 1)
    assert "gone@acme.example was refused: 550" in partly.err
    assert "refused every recipient" in refused_all.err


def test_retention_waits_for_running_queries_and_is_recorded(lake, traffic, monkeypatch):
    for name, ages in (("acme", (40, 40, 39, 2)), ("other", (400, 0)), ("young", (1,))):
        moments = [datetime.now(UTC).replace(tzinfo=None) - timedelta(days=age) for age in ages]
        land(lake, name, [visit(visited_at=moment) for moment in moments])
    for module in (erasing, retaining):
        monkeypatch.setattr(module, "GRACE", timedelta(seconds=15))
    old, slept = lake.root / lake.manifest.files.live("other")[0].path, []

    def sleep(seconds):
        slept.append(seconds)
        assert old.exists()

    monkeypatch.setattr(time, "sleep", sleep)
    retain = ("retain", "--yes", "--days")
    assert "in 15 s" in traffic(*retain, "30").err
    assert (sum(slept), old.exists()) == (15, False)
    del slept[:]
    left = {name: sum(file.visits for file in lake.manifest.files.live(name)) for name in ("acme", "other", "young")}
    assert left == {"acme": 1, "other": 1, "young": 1}
    assert len([*lake.root.glob("visits/organization=[!_]*/*/*.parquet")]) == 3 + 2  # visits; records of removals
    assert (lake.root / "manifest.sqlite-wal").stat().st_size == 0
    traffic(*retain, "30")
    traffic(*retain, "1", "--dry-run")
    assert slept == []


def test_a_server_prints_a_command_that_makes_a_sign_in_link(traffic, lake, serving):
    with serving(lake, base_path="/v1") as server:
        assert server.monitor is None  # only with a separate port
        line = server.process.stderr.readline()
        words = shlex.split(
            line.partition("Sign in to its dashboard: uv run traffic ")[2].replace("ORGANIZATION", "acme")
        )
        link = traffic(*words, "--new").out.strip()
        assert link.startswith(f"{server.address}/app/enter?code=")
        assert "Sign in to acme" in httpx2.get(link, trust_env=False, verify=False).text


@examples("seconds", "age")
def test_an_age_is_printed_in_a_suitable_unit(seconds, age):
    now = datetime(2026, 3, 1, tzinfo=UTC)
    assert _age(now - timedelta(seconds=seconds), now) == age
