"""What real proxies log in the formats of service/deploy is read as the requests were: each starts with our file."""

import socket
from contextlib import ExitStack, contextmanager

import pytest

from data.ingest.block_reader import Options
from data.ingest.importer import Importer
from tests.support.lakes import files_of, read
from tests.support.programs import DEPLOY, accepts, checked, free_port, moved, running, wait_until
from tests.support.web_servers import commands, installed

REQUESTS = [
    ("/launch?utm_source=a%20b", {"User-Agent": "GPTBot/1.2", "Referer": "https://chatgpt.com/c/1?a=1,2"}),
    ("/launch", {"User-Agent": r'quoted "\ tab	comma, {"brace":"}'}),
    ("/launch", {"User-Agent": "Grüße", "Referer": "https://www.example.org/"}),
    ("/launch", {"User-Agent": "x" * 4_000}),
    ("/" + "y" * 3_000, {}),
]
"""Requests as (target, headers): ordinary ones, and what a log may be broken with."""
VISITS = [
    ("/launch", 302, "ai_training", "GPTBot/1.2", "chatgpt.com", "a b"),
    ("/launch", 302, "other_bot", r'quoted "\ tab	comma, {"brace":"}', None, None),
    ("/launch", 302, "other_bot", "Grüße", "www.example.org", None),
    ("/launch", 302, "other_bot", "x" * 1_024, None, None),
    ("/" + "y" * 3_000, 404, "other_bot", None, None, None),
]


class Place:
    """Ports and files in the place of those that a file of service/deploy names."""

    def __init__(self, root):
        self.root, self.links, self.dashboard, self.log = root, free_port(), free_port(), root / "links.log"

    def configured(self, name, places, before="", after=""):
        """A file of service/deploy with other ports and paths, within what its program wants besides."""
        path = self.root / name
        path.write_text(before + moved((DEPLOY / name).read_text(), places) + after)
        return path

    def running(self, name, configuration):
        """A proxy with a configuration that it finds right, as a context manager."""
        check, run = commands(name, self.root, configuration)
        checked(*check)
        return running(run, lambda: accepts(self.links), self.root / "output", cwd=self.root)


def nginx(place):
    places = {"/var/log/nginx/links.log": place.log}
    folders = "".join(
        f"{name}_temp_path {place.root}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    before = f"daemon off; master_process off; pid {place.root}/pid; events {{}} http {{ {folders} access_log off;"
    path = place.configured("nginx.conf", places, before, "}")
    text = path.read_text().replace("listen 80;", f"listen 127.0.0.1:{place.links};", 1)
    path.write_text(text.replace("listen 80;", f"listen 127.0.0.1:{place.dashboard};"))
    return place.running("nginx", path)


@contextmanager
def haproxy(place):
    rsyslogd = installed("rsyslogd")
    checked(installed("haproxy"), "-c", "-f", DEPLOY / "haproxy.cfg")
    socket_path = place.root / "socket"
    places = {"/var/log/haproxy/links.log": place.log, "/var/lib/haproxy/dev/traffic": socket_path}
    owner = {'fileOwner="root" fileGroup="adm"': ""}  # only root may give files away
    debian = f'global(workDirectory="{place.root}")\nmodule(load="imuxsock" SysSock.Use="off")\n'
    rsyslog = place.configured("haproxy-rsyslog.conf", places | owner, debian)
    checked(rsyslogd, "-N1", "-f", rsyslog)
    ports = {":80": f"127.0.0.1:{place.links}", ":8080": f"127.0.0.1:{place.dashboard}", "/dev/traffic": socket_path}
    configuration = place.configured("haproxy.cfg", ports)
    with ExitStack() as programs:
        receiver = [rsyslogd, "-n", "-f", rsyslog, "-i", place.root / "pid"]
        programs.enter_context(running(receiver, socket_path.exists, place.root / "rsyslog", cwd=place.root))
        yield programs.enter_context(place.running("haproxy", configuration))


def caddy(place):
    places = {
        "/var/log/caddy/access": place.log,
        "{$LINKS_HOST:go.localhost}": f"http://go.example.com:{place.links}",
        "{$DASHBOARD_HOST:dashboard.localhost}": f"http://dashboard.example.com:{place.dashboard}",
    }
    return place.running("caddy", place.configured("Caddyfile", places))


def ask(port, target, headers):
    """Send a request as it is and wait for the end of its answer."""
    lines = [f"GET {target} HTTP/1.1", f"Host: go.example.com:{port}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        while connection.recv(65_536):
            pass


def lines_of(log):
    return log.read_bytes().count(b"\n") if log.exists() else 0


@pytest.mark.parametrize("proxy", [nginx, haproxy, caddy])
def test_what_a_proxy_logs_is_read_as_the_requests_were(proxy, tmp_path, lake):
    place = Place(tmp_path)
    with proxy(place) as process:
        for target, headers in REQUESTS:
            ask(place.links, target, headers)
        wait_until(lambda: lines_of(place.log) == len(REQUESTS), process, place.root / "output")
    Importer(lake).run(place.log, Options("acme"))
    visits = [visit for file in files_of(lake) for visit in read(lake, file)]
    fields = ("path", "status", "bot_category", "user_agent", "referrer", "utm_source")
    assert sorted(str([visit[field] for field in fields]) for visit in visits) == sorted(map(str, map(list, VISITS)))
    assert {(visit["domain"], visit["protocol"]) for visit in visits} == {("go.example.com", "HTTP/1.1")}
