"""The manual's recommended log lines, written by real servers that a real Chromium and curl visit."""

import re
import socket
import subprocess
from contextlib import contextmanager

import pytest

from data.ingest.importer import Importer, Options
from data.logs.line_layout import parse_layout
from data.signals import BITS
from tests.support.forks import ROOT
from tests.support.lakes import rows_of
from tests.support.programs import free_port
from tests.support.receivers import Authority
from tests.support.web_servers import installed, serving

HOST = "go.acme.test"
MANUAL = (ROOT / "data/logs/README.md").read_text("utf-8")
(NGINX,) = re.findall("^log_format visits '(.*)';$", MANUAL, re.MULTILINE)
(APACHE,) = re.findall('^LogFormat "(.*)" visits$', MANUAL, re.MULTILINE)
CAPTURES = "\n".join(re.findall("^(?:http-request )?capture .*", MANUAL, re.MULTILINE))
OF_NGINX = """
    listen 127.0.0.1:{tls} ssl;
    ssl_certificate {certificate};
    ssl_certificate_key {certificate};
    access_log {log} visits;
    return 200 here;
"""
OF_APACHE = """
    Redirect gone /
</VirtualHost>
Listen 127.0.0.1:{tls}
LogFormat "{layout}" visits
CustomLog {log} visits
<VirtualHost *:{tls}>
    SSLEngine on
    SSLCertificateFile {certificate}
    Redirect gone /
"""
OF_HAPROXY = """
    bind 127.0.0.1:{tls} ssl crt {certificate}
    option httplog
    log 127.0.0.1:{syslog} len 8192 local0
    {captures}
    http-request return status 200 content-type text/plain string here
"""
OF_CADDY = """
    respond here
}}
(visits) {{
    bind 127.0.0.1
    log {{
        output file {log}
        format {encoder}
    }}
    respond here
}}
http://{host}:{plain} {{
    import visits
}}
https://{host}:{tls} {{
    tls {certificate} {certificate}
    import visits
"""
PROXY = """
    listen 127.0.0.1:{tls} ssl;
    ssl_certificate {certificate};
    ssl_certificate_key {certificate};
    location / {{
        proxy_pass http://127.0.0.1:{behind};
        proxy_set_header Host $host;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header X-Forwarded-Proto $scheme;
    }}
"""
BROWSER = [
    "--headless",
    "--no-sandbox",
    "--ignore-certificate-errors",
    "--disable-features=HttpsUpgrades",
    "--dump-dom",
]
WANTED = {
    "/browser-https": "https fetch_sent navigation language_sent",
    "/browser-http": "plain_http fetch_absent language_sent",
    "/program-https": "https fetch_absent language_absent",
    "/program-http": "plain_http fetch_absent language_absent",
    "/agent-https": "https fetch_absent language_absent signed",
}
"""The facts of each request, by its path; browsers send Fetch Metadata over TLS only."""


def visit(folder, plain, tls):
    """Have Chromium and curl visit a server with and without TLS."""
    rules = f"--host-resolver-rules=MAP {HOST} 127.0.0.1"
    for scheme, port in (("https", tls), ("http", plain)):
        profile = f"--user-data-dir={folder}/profile-{scheme}"
        ran([installed("chromium"), *BROWSER, rules, profile, f"{scheme}://{HOST}:{port}/browser-{scheme}"])
        resolve = ["--resolve", f"{HOST}:{port}:127.0.0.1"]
        curl = [installed("curl"), "--silent", "--insecure", "--noproxy", "*", *resolve]
        ran([*curl, f"{scheme}://{HOST}:{port}/program-{scheme}"])
    signed = ["-H", 'Signature-Agent: sig1="https://chatgpt.com"', f"https://{HOST}:{tls}/agent-https"]
    ran([*curl[:-1], f"{HOST}:{tls}:127.0.0.1", *signed])


def ran(command):
    subprocess.run([*map(str, command)], check=True, capture_output=True, timeout=60)


def facts(lake, log, **options):
    """Import a log; return the facts of its requests by path, without the browser's requests for icons."""
    Importer(lake).run(log, Options("acme", **options))
    visits = {visit["path"]: visit for visit in rows_of(lake) if visit["path"] in WANTED}
    assert {visit["domain"].partition(":")[0] for visit in visits.values()} == {HOST}
    assert {visit["agent"] for path, visit in visits.items() if path.startswith("/agent")} == {"ChatGPT Agent"}
    return {
        path: " ".join(name for name, bit in BITS.items() if (visits[path]["signals"] or 0) & bit) for path in WANTED
    }


@pytest.fixture
def tls(tmp_path):
    """The values for a configuration with TLS."""
    return {"tls": free_port(), "certificate": Authority(tmp_path).certificate(HOST), "log": tmp_path / "visits.log"}


@contextmanager
def serving_pages(name, folder, tls):
    """Run a server that writes the recommended line, and yield its port without TLS."""
    if name == "nginx":
        inside, outside = OF_NGINX.format(**tls), f"log_format visits '{NGINX}';"
    else:
        inside, outside = OF_APACHE.format(layout=APACHE, **tls), ""
    with serving(name, folder, inside, outside) as port:
        yield port


@contextmanager
def haproxy(folder, tls):
    """Run an HAProxy with the recommended captures, and yield its port without TLS; afterwards, its lines are in the
    log."""
    with socket.socket(type=socket.SOCK_DGRAM) as syslog, tls["log"].open("wb") as log:
        syslog.bind(("127.0.0.1", 0))
        values = {**tls, "syslog": syslog.getsockname()[1], "captures": CAPTURES}
        with serving("haproxy", folder, OF_HAPROXY.format(**values)) as port:
            yield port
            syslog.settimeout(60)  # HAProxy logs a request after its response, so it must still be running here
            while not all(path in tls["log"].read_text() for path in WANTED):
                log.write(syslog.recv(8_192).rstrip(b"\n") + b"\n")
                log.flush()


def visit_through_proxy(folder, behind, tls):
    """Have Chromium and curl visit a server through an nginx in front of it."""
    (folder / "front").mkdir()
    front = {**tls, "tls": free_port(), "behind": behind}
    with serving("nginx", folder / "front", PROXY.format(**front)) as port:
        visit(folder, port, front["tls"])


@pytest.mark.parametrize(("name", "layout"), [("nginx", NGINX), ("apache2", APACHE)])
def test_a_recommended_line_gives_the_facts_of_each_request(lake, tmp_path, tls, name, layout):
    with serving_pages(name, tmp_path, tls) as port:
        visit(tmp_path, port, tls["tls"])
    assert facts(lake, tls["log"], layout=parse_layout(layout)) == WANTED


@pytest.mark.parametrize(("name", "layout"), [("nginx", NGINX), ("apache2", APACHE)])
def test_a_recommended_line_gives_the_same_facts_behind_a_proxy(lake, tmp_path, tls, name, layout):
    with serving_pages(name, tmp_path, tls) as behind:
        visit_through_proxy(tmp_path, behind, tls)
    assert facts(lake, tls["log"], layout=parse_layout(layout)) == WANTED


def test_recommended_haproxy_captures_give_the_same_facts(lake, tmp_path, tls):
    with haproxy(tmp_path, tls) as port:
        visit(tmp_path, port, tls["tls"])
    assert facts(lake, tls["log"], log_format="haproxy") == WANTED


def test_haproxy_captures_give_the_same_facts_behind_a_proxy(lake, tmp_path, tls):
    with haproxy(tmp_path, tls) as behind:
        visit_through_proxy(tmp_path, behind, tls)
    assert facts(lake, tls["log"], log_format="haproxy") == WANTED


@pytest.mark.parametrize("encoder", ["json", "console"])
def test_a_real_caddy_server_logs_the_headers_it_receives(lake, tmp_path, tls, encoder):
    plain = free_port()
    with serving("caddy", tmp_path, OF_CADDY.format(host=HOST, plain=plain, encoder=encoder, **tls)):
        visit(tmp_path, plain, tls["tls"])
    assert facts(lake, tls["log"]) == WANTED
