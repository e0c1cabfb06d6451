"""The services in compose.yaml, started by their commands but without containers: Caddy's log becomes visits.

Paths, names and ports are the test's instead of the containers'; nothing else is changed.
"""

import re
import shlex
import sys
from pathlib import Path

import httpx2
import pytest
import yaml

from tests.service.deploy.test_image import instructions
from tests.support.lakes import files_of, opened, read
from tests.support.programs import DEPLOY, accepts, free_port, moved, running
from tests.support.web_servers import SBIN, installed

COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
IMAGE_ENVIRON = {
    name: value
    for instruction, rest in instructions() if instruction == "ENV"
    for name, _, value in (word.partition("=") for word in shlex.split(rest)) if name.startswith("TRAFFIC_")
}  # fmt: skip


class Deployment:
    """The services in compose.yaml on ports of the loopback interface, with folders as volumes."""

    def __init__(self, root):
        self.root, self.links, self.dashboard = root, free_port(), free_port()
        self.traffic, self.monitor = free_port(), free_port()
        self._places = {
            "10.89.72.0/24": "127.0.0.0/8", "0.0.0.0": "127.0.0.1", "traffic:8000": f"127.0.0.1:{self.traffic}",
            "8001": self.monitor, "/etc/caddy/Caddyfile": root / "Caddyfile",
        }  # fmt: skip
        for service in COMPOSE["services"].values():
            for volume in service["volumes"]:
                source, target = volume.split(":")[:2]
                if not source.startswith("./"):
                    (root / source).mkdir(exist_ok=True)
                    self._places[target] = root / source

    def configure(self, **limits):
        """Write the Caddyfile, with other limits for its log."""
        text = moved((DEPLOY / "Caddyfile").read_text(), self._places | limits)
        (self.root / "Caddyfile").write_text(text)

    def started(self, name, is_ready):
        """Return a context manager that runs a service, with its output in the file <name>.txt."""
        service = COMPOSE["services"][name]
        values = (IMAGE_ENVIRON if service["image"] == "traffic" else {}) | service.get("environment", {})
        defaults = {key: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value) for key, value in values.items()}
        environ = {"PATH": f"{Path(sys.executable).parent}:{SBIN}", "HOME": str(self.root)}
        environ |= {key: moved(value, self._places) for key, value in defaults.items()}
        if name == "caddy":  # without TLS, on unprivileged ports
            environ["LINKS_HOST"] = f"http://go.localhost:{self.links}"
            environ["DASHBOARD_HOST"] = f"http://dashboard.localhost:{self.dashboard}"
        if name == "traffic":
            environ["TRAFFIC_PORT"] = str(self.traffic)
        command = [moved(part, self._places) for part in service["command"]]
        return running(command, is_ready, self.root / f"{name}.txt", env=environ, cwd=self.root)

    def started_caddy(self):
        return self.started("caddy", lambda: accepts(self.links) and accepts(self.dashboard))

    def followed(self):
        """Follow Caddy's log until all of it has landed."""
        printed = self.root / "follow.txt"
        printed.write_text("")
        reached = f"the log has been read to byte {(self.root / 'logs/access').stat().st_size:,}"
        with self.started("follow", lambda: reached in printed.read_text()):
            pass


@pytest.fixture
def deployment(tmp_path):
    installed("caddy")
    return Deployment(tmp_path)


def ask(port, host, path, **headers):
    """Return Caddy's response to a request."""
    headers["Host"] = f"{host}:{port}"
    return httpx2.get(f"http://127.0.0.1:{port}{path}", headers=headers, trust_env=False, verify=False, timeout=60)


def test_the_composed_services_count_a_visit_end_to_end(deployment, key_of):
    deployment.configure()
    with deployment.started_caddy(), deployment.started("traffic", lambda: accepts(deployment.monitor)):
        answer = ask(deployment.links, "go.localhost", "/launch", **{"User-Agent": "GPTBot/1.2"})
        assert (answer.status_code, answer.headers["Location"]) == (302, "https://example.com/launch")
        assert ask(deployment.dashboard, "dashboard.localhost", "/healthz").status_code == 200  # not a visit

        deployment.followed()
        with opened(deployment.root / "lake") as lake:
            key = key_of(lake)
        path = "/analytics/traffic-overview?range=7d"
        answer = ask(deployment.dashboard, "dashboard.localhost", path, Authorization=f"Bearer {key}")
    assert answer.status_code == 200
    assert (answer.json()["total_visits"], answer.json()["ai_training_requests"]) == (1, 1)


def test_visits_count_once_when_caddy_rotates_during_downtime(deployment):
    """The rotated file is found by its name and has the same permissions as the first file."""
    deployment.configure(**{"100MiB": "1MiB"})
    logs, requests = deployment.root / "logs", 1
    with deployment.started_caddy():
        ask(deployment.links, "go.localhost", "/launch")
        deployment.followed()
        while len([*logs.iterdir()]) == 1:
            ask(deployment.links, "go.localhost", "/launch", **{"User-Agent": "x" * 30_000})
            requests += 1
    assert requests > 10
    assert {file.stat().st_mode & 0o777 for file in logs.iterdir()} == {0o644}
    deployment.followed()
    with opened(deployment.root / "lake") as lake:
        assert sum(len(read(lake, file)) for file in files_of(lake)) == requests
