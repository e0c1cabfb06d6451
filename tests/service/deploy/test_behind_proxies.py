"""The server behind each proxy in service/deploy, with HTTP/1.1 and HTTP/2 over TLS, and without TLS; all programs are
real."""

import itertools
import json
import re
import subprocess
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest

from tests.support.hurried import hurried
from tests.support.programs import free_port
from tests.support.proxies import DASHBOARD, Site, caddy, haproxy, nginx
from tests.support.receivers import Authority
from tests.support.sockets import Client, answer_on
from tests.support.web_servers import installed

ROUNDS = 6
PATIENT = dict.fromkeys(("LINGER_SECONDS", "BODY_IDLE_TIMEOUT_SECONDS", "BODY_TIMEOUT_SECONDS"), 600)
"""The server's time limits for the rest of a body, in seconds; no proxy waits that long.
"""
ROW = b'{"path":"/x"}\n'
LARGE, VALID, WHOLE, HUGE = 1_000_000, 900_000, 4 << 20, 5 << 20
ANONYMOUS = ("-H", "Authorization: Bearer none")
REQUESTS = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 20 + b" " * LARGE
HALF = b"Content-Length: %d" % (4 << 20)  # the body lacks a byte


class Browsers:
    """Clients of a site: curl, with or without HTTP/2, with a different address for each request."""

    addresses = (f"127.9.{number >> 8}.{number & 255}" for number in itertools.count(1))

    def __init__(self, site, key, buffers=False, monitor=0):
        self.buffers = buffers  # the proxy forwards complete requests
        self.monitor = monitor  # the port of the metrics
        self.site, self.key = site, ("-H", f"Authorization: Bearer {key}")
        self.server = Client(site.service, key)  # not through the proxy

    def ask(self, path, *words, address=None, version="1.1"):
        """Request a path; return the status of the last response. Fails if there is none within a minute.

        A path that ends in `[1-9]` is requested nine times.
        """
        command = [
            installed("curl"), "--silent", "--show-error", "--noproxy", "*", "--insecure", "--max-time", "60",
            f"--http{version}", "--resolve", f"{DASHBOARD}:{self.site.dashboard}:127.0.0.1",
            "--interface", address or next(self.addresses),
            "--output", self.site.root / "answer", "--dump-header", self.site.root / "headers",
            "--write-out", r"%{http_code} %{http_version}\n", *words, self.site.address + path,
        ]  # fmt: skip
        done = subprocess.run(command, text=True, capture_output=True, check=False)
        status, spoken = done.stdout.split()[-2:]
        assert spoken == version, done
        return int(status)

    def answer(self):
        """Return the JSON of the last response."""
        return json.loads((self.site.root / "answer").read_bytes())

    def timed_out(self):
        """Return the number of POST /visits requests that timed out."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.monitor}/metrics") as answer:
            late = re.search(r'{method="POST",route="/visits",status="408"} (\S+)', answer.read().decode())
        return float(late[1]) if late else 0

    def cookie(self):
        """Return the cookie set by the last response."""
        headers = (self.site.root / "headers").read_text("ascii").splitlines()
        (cookie,) = [line.partition(": ")[2] for line in headers if line.lower().startswith("set-cookie: ")]
        return cookie

    def sign_in(self, version):
        """Sign in with the key as the page's form does; return the status."""
        form = ("--data-urlencode", f"key={self.key[1].split()[-1]}", "-H", f"Origin: {self.site.address}")
        return self.ask("/app/sign-in", *form, version=version)


@pytest.fixture(scope="module", params=[nginx, haproxy, caddy])
def browsers(request, shared_lake, serving, key_of, tmp_path_factory):
    """Clients of a server behind a proxy."""
    folder = tmp_path_factory.mktemp("site")
    with hurried(serving, shared_lake, proxies="127.0.0.1", **PATIENT) as (port, _):
        site = Site(folder, port, Authority(folder))
        with request.param(site):
            yield Browsers(site, key_of(shared_lake), buffers=request.param is nginx)


@pytest.fixture(scope="module")
def bodies(tmp_path_factory):
    """A folder with a request body of each size, in files named by their size."""
    folder = tmp_path_factory.mktemp("bodies")
    for size in (LARGE, VALID, WHOLE, HUGE):
        (folder / str(size)).write_bytes(ROW + b" " * (size - len(ROW)))
    return folder


@pytest.fixture(params=[nginx, haproxy, caddy])
def plain(request, lake, serving, key_of, tmp_path):
    """Clients of a server behind a proxy without TLS."""
    with serving(lake, trusted_proxies="127.0.0.1") as server:
        site = Site(tmp_path, server.port)
        with request.param(site):
            yield Browsers(site, key_of(lake))


@pytest.fixture(params=[nginx, haproxy, caddy])
def hasty(request, lake, serving, key_of, tmp_path):
    """Clients of a server that waits 3 seconds for the next bytes of a body, behind a proxy without TLS."""
    hasty, monitor = PATIENT | {"BODY_IDLE_TIMEOUT_SECONDS": 3}, free_port()
    with hurried(serving, lake, proxies="127.0.0.1", monitor=monitor, **hasty) as (port, _):
        site = Site(tmp_path, port)
        with request.param(site):
            yield Browsers(site, key_of(lake), buffers=request.param is nginx, monitor=monitor)


def body(bodies, size):
    """Return the arguments with which curl sends a body of this size without waiting."""
    return ("--data-binary", f"@{bodies / str(size)}", "-H", "Expect:")


@pytest.mark.parametrize("version", ["1.1", "2"])
@pytest.mark.parametrize(
    ("status", "path", "words", "size"),
    [
        (401, "/visits", ANONYMOUS, LARGE),
        (403, "/app/sign-in", ("-H", "Origin: https://evil.example"), LARGE),
        (413, "/visits", (), HUGE),
        (429, "/visits", (), LARGE),
    ],
)
def test_an_early_response_does_not_affect_the_next_request(browsers, bodies, version, status, path, words, size):
    words = words or browsers.key
    address = next(browsers.addresses)
    if status == 429:
        browsers.ask("/nothing?[1-60]", address=address)
    for _ in range(ROUNDS):
        assert browsers.ask(path, *words, *body(bodies, size), address=address, version=version) == status
        assert browsers.ask("/healthz", version=version) == 200
        assert browsers.ask("/visits", *browsers.key, *body(bodies, VALID), version=version) == 202
        assert browsers.answer()["accepted"] == 1


@pytest.mark.parametrize("version", ["1.1", "2"])
def test_an_evicted_body_does_not_affect_the_next_request(browsers, bodies, version):
    """The body arrives slowly, so it is its organization's oldest when the organization exceeds its limit.

    nginx sends only complete bodies.
    """
    slow = [*browsers.key, *body(bodies, LARGE), "--limit-rate", "300k"]
    statuses = set()
    for _ in range(2):
        with ThreadPoolExecutor(1) as pool, ExitStack() as stack:
            asked = pool.submit(browsers.ask, "/visits", *slow, version=version)
            while not asked.done():
                held = stack.enter_context(browsers.server.connected())
                with suppress(ConnectionError):  # the body was evicted
                    held.sendall(browsers.server.request(b"/visits", HALF, method=b"POST") + b" " * ((4 << 20) - 1))
            statuses.add(asked.result())
        for _ in range(ROUNDS):
            assert browsers.ask("/healthz", version=version) == 200
            assert browsers.ask("/visits", *browsers.key, *body(bodies, VALID), version=version) == 202
    assert statuses == ({202} if browsers.buffers else {503})


def test_a_late_body_does_not_affect_the_next_request(hasty):
    """The rest of the body looks like requests, lacks a byte and comes after the response. Behind nginx, which waits
    for the complete body itself, no byte is missing.
    """
    client = Client(hasty.site.dashboard, hasty.key[1].split()[-1])
    length = b"Content-Length: %d" % len(ROW + REQUESTS)
    beginning = client.request(b"/visits", length, method=b"POST", host=(b"Host: " + DASHBOARD.encode(),)) + ROW
    statuses = []
    with ExitStack() as stack:
        late = [stack.enter_context(client.connected()) for _ in range(ROUNDS)]
        for connection in late:
            connection.sendall(beginning)
        with hasty.server.connected() as last:
            last.sendall(hasty.server.request(b"/visits", HALF, method=b"POST"))
            assert answer_on(last).status == 408
        while hasty.timed_out() < (1 if hasty.buffers else 1 + ROUNDS):
            pass
        for connection in late:
            with suppress(ConnectionError):  # the proxy has stopped reading
                connection.sendall(REQUESTS if hasty.buffers else REQUESTS[:-1])
            statuses.append(answer_on(connection).status)  # not earlier, since Caddy waits for the client
            connection.close()
            assert hasty.ask("/healthz") == 200
            assert hasty.ask("/visits", *hasty.key, "--data-binary", ROW.decode()) == 202
            assert hasty.answer()["accepted"] == 1
    assert statuses == ROUNDS * [202 if hasty.buffers else 408]


@pytest.mark.parametrize("version", ["1.1", "2"])
def test_a_4_mib_body_passes_and_a_larger_body_gets_a_json_error(browsers, bodies, version):
    assert browsers.ask("/visits", *browsers.key, *body(bodies, WHOLE), version=version) == 202
    assert browsers.answer()["accepted"] == 1
    assert browsers.ask("/visits", *browsers.key, *body(bodies, HUGE), version=version) == 413
    assert browsers.answer()["error"] == "The body is larger than 4 MiB."


@pytest.mark.parametrize("version", ["1.1", "2"])
def test_a_session_over_tls_has_a_secure_cookie(browsers, version):
    assert browsers.sign_in(version) == 303
    assert {"Secure", "HttpOnly"} <= {*browsers.cookie().split("; ")}
    assert browsers.cookie().startswith("__Host-")


def test_a_form_counts_as_same_origin_on_any_port(plain):
    assert plain.sign_in("1.1") == 303
    assert "Secure" not in plain.cookie()
    assert plain.ask("/app/sign-in", "--data", "key=x", "-H", "Origin: http://evil.example") == 403
