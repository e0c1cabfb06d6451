"""The log of a real HAProxy, written by a real rsyslogd, in a time zone other than UTC."""

import re
import socket
import subprocess
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import httpx2

from data.ingest.importer import Importer, Options
from data.signals import BITS
from tests.cluster.processes import wait_until
from tests.support.forks import ROOT
from tests.support.lakes import rows_of
from tests.support.user_agents import CHROME
from tests.support.web_servers import installed, serving

ZONE = {"TZ": "XXX-5:30"}
RSYSLOG = """
module(load="imuxsock" SysSock.Use="off")
input(type="imuxsock" Socket="{folder}/socket")
action(type="omfile" file="{folder}/haproxy.log" template="RSYSLOG_FileFormat")
"""
MANUAL = (ROOT / "data/logs/README.md").read_text("utf-8")
CAPTURES = "".join(f"    {line}\n" for line in re.findall("^(?:http-request )?capture .*", MANUAL, re.MULTILINE))
INSIDE = f"""
    option httplog
    log global
{CAPTURES}
    http-request return status 404 content-type text/plain string missing if {{ path /missing }}
    http-request redirect location https://example.com/ code 302
"""
OF_BROWSERS = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Accept-Language": "de, en;q=0.5"}
ODD = 'say "hi" {a|b} #1 50% \\'


@contextmanager
def rsyslogd(folder):
    (folder / "rsyslog.conf").write_text(RSYSLOG.format(folder=folder))
    command = [installed("rsyslogd"), "-n", "-f", folder / "rsyslog.conf", "-i", folder / "rsyslog.pid"]
    with subprocess.Popen(command, env=ZONE) as process:
        try:
            wait_until((folder / "socket").exists, 30)
            yield folder / "haproxy.log"
        finally:
            process.terminate()


def ask(port, path, **headers):
    headers = {"Host": "go.example.com", **headers}
    httpx2.get(f"http://127.0.0.1:{port}{path}", headers=headers, trust_env=False, verify=False)


def test_requests_to_a_real_haproxy_land_with_headers_and_times(lake, tmp_path):
    outside = f"log {tmp_path}/socket len 8192 local0"
    with rsyslogd(tmp_path) as log, serving("haproxy", tmp_path, INSIDE, outside, **ZONE) as port:
        # HAProxy drops lines that rsyslog does not accept yet.
        while not log.exists() or "/spring" not in log.read_text("utf-8"):
            ask(port, "/spring?utm_source=news", **{"User-Agent": CHROME, "Referer": "https://t.co/a"}, **OF_BROWSERS)
            time.sleep(0.1)
        ask(port, "/missing", **{"User-Agent": ODD})
        with socket.create_connection(("127.0.0.1", port), 10) as bad:
            bad.sendall(b"nonsense\r\n\r\n")
            while bad.recv(4096):
                pass
        socket.create_connection(("127.0.0.1", port), 10).close()  # like browsers with spare connections
        wait_until(lambda: all(state in log.read_text("utf-8") for state in (" PR-- ", " CR-- ")), 30)
        told = log.read_text("utf-8")
    summary = Importer(lake).run(log, Options("acme"))
    rows = [visit for visit in rows_of(lake) if visit["path"] != "/spring"]
    assert sorted(visit["path"] for visit in rows) == ["", "/missing"]
    visits = {visit["path"]: visit for visit in rows_of(lake)}
    assert (summary.log_format, set(visits)) == ("haproxy", {"/spring", "/missing", ""}), told
    reasons = {"not a request (another HAProxy message)", "no valid status"}
    assert {reason for _, reason in summary.rejects} <= reasons
    known = ("domain", "status", "user_agent", "referrer", "utm_source", "protocol")
    facts = {path: tuple(visit[name] for name in known) for path, visit in visits.items()}
    assert facts["/spring"] == ("go.example.com", 302, CHROME, "t.co", "news", "HTTP/1.1")
    assert facts["/missing"] == ("go.example.com", 404, ODD, None, None, "HTTP/1.1")
    assert facts[""] == (None, 400, None, None, None, None)
    sent = sum(BITS[name] for name in ("plain_http", "fetch_sent", "navigation", "language_sent"))
    absent = sum(BITS[name] for name in ("plain_http", "fetch_absent", "language_absent"))
    assert (visits["/spring"]["signals"], visits["/missing"]["signals"]) == (sent, absent)
    assert visits["/missing"]["bytes_sent"] > len("missing")
    now = datetime.now(UTC).replace(tzinfo=None)
    assert all(now - timedelta(minutes=5) < visit["visited_at"] <= now for visit in visits.values())
