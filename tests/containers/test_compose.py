"""compose.yaml in real containers, started by the README's commands: Caddy, the follower and the server."""

import json
import os
import re
import signal

import pytest

from tests.containers.documented import becomes, commands_under, total

HOSTS = {"LINKS_HOST": "go.localhost", "DASHBOARD_HOST": "dashboard.localhost"}  # Caddy signs certificates for these
SERVICES = ["traffic", "follow"]


class Deployment:
    """The services in compose.yaml, and the output of the README's commands that started them."""

    def __init__(self, docker, folder):
        self._docker, self._folder = docker, folder
        script = commands_under("Containers").replace("docker compose", "docker-compose").replace("exec ", "exec -T ")
        for host, name in zip(("go.example.com", "dashboard.example.com"), HOSTS.values(), strict=True):
            script = script.replace(host, name)
        self.output = docker("-euc", script, program="bash", cwd=folder)
        self.key = re.search(r"^tak_\S+", self.output, re.MULTILINE)[0]

    def compose(self, *command):
        """Run a command of Docker Compose; return its output."""
        return self._docker(*command, program="docker-compose", environ=HOSTS, cwd=self._folder)

    def inspect(self, service, what):
        """Return a fact about the container of a service, such as {{.State.Pid}}."""
        container = self.compose("ps", "--quiet", service).strip()
        return self._docker("inspect", "--format", what, container).strip()

    def fetch(self, host, path, *options):
        """Fetch a page over TLS from Caddy; return its status and its body."""
        words = ["--silent", "--insecure", "--resolve", f"{host}:443:127.0.0.1", "--write-out", "%{http_code}"]
        answer = self._docker(*words, *options, f"https://{host}{path}", program="curl")
        return int(answer[-3:]), answer[:-3]

    def click(self):
        """Fetch the short link of the Caddyfile."""
        assert self.fetch(HOSTS["LINKS_HOST"], "/launch", "--user-agent", "GPTBot/1.2")[0] == 302

    def counted(self):
        """Return the number of visits that a command in the server's container counts."""
        command = ["traffic", "query", "traffic-overview", "--org", "acme", "--format", "json"]
        return total(self.compose("exec", "-T", "traffic", *command))


@pytest.fixture(scope="module")
def deployment(docker, sources):
    """The services, running."""
    deployment = Deployment(docker, sources / "service/deploy")
    yield deployment
    deployment.compose("down", "--volumes")


def test_the_documented_commands_print_a_link_and_a_key(deployment):
    assert re.search(r"^https://dashboard\.localhost/app/enter\?code=\S+$", deployment.output, re.MULTILINE)
    becomes(lambda: deployment.inspect("traffic", "{{.State.Health.Status}}"), "healthy")


def test_clicks_behind_caddy_are_counted_over_https(deployment):
    before = deployment.counted()
    for _ in range(3):
        deployment.click()
    becomes(deployment.counted, before + 3)
    key = ["--header", f"Authorization: Bearer {deployment.key}"]
    status, answer = deployment.fetch(HOSTS["DASHBOARD_HOST"], "/analytics/traffic-overview?range=90d", *key)
    assert status == 200
    assert json.loads(answer)["ai_training_requests"] == before + 3


def test_the_dashboard_asks_for_a_sign_in_over_https(deployment):
    assert deployment.fetch(HOSTS["DASHBOARD_HOST"], "/app/")[0] in {302, 303, 401}


def test_killed_services_start_again_and_count_visits_once(deployment):
    before = deployment.counted()
    deployment.click()
    for service in SERVICES:
        os.kill(int(deployment.inspect(service, "{{.State.Pid}}")), signal.SIGKILL)
    deployment.click()
    for service in SERVICES:
        becomes(lambda service=service: deployment.inspect(service, "{{.RestartCount}} {{.State.Status}}"), "1 running")
    becomes(deployment.counted, before + 2)


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_runs_as_its_user_without_capabilities(deployment, service):
    status = deployment.compose("exec", "-T", service, "cat", "/proc/1/status")
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert facts["Uid"].split() == ["10001"] * 4
    assert (int(facts["CapEff"], 16), int(facts["CapBnd"], 16), facts["NoNewPrivs"]) == (0, 0, "1")


def test_metrics_can_be_read_from_the_network_of_the_server(deployment, docker):
    network = f"container:{deployment.inspect('traffic', '{{.Id}}')}"
    url = "http://127.0.0.1:8001/metrics"
    metrics = docker("run", "--rm", "--network", network, "python:3.11-slim", "curl", "--silent", url)
    assert "traffic_requests_total" in metrics


def test_a_mounted_folder_must_belong_to_the_image_user(docker, folder):
    lake = folder / "lake"
    lake.mkdir()
    create = ["run", "--rm", "--volume", f"{lake}:/lake", "traffic", "traffic", "keys", "create", "--org", "acme"]
    with pytest.raises(AssertionError, match="cannot be written: Permission denied"):
        docker(*create, "--name", "first")
    os.chown(lake, 10001, 10001)
    assert "tak_" in docker(*create, "--name", "second")


def test_services_end_by_themselves_when_they_are_stopped(deployment):
    deployment.compose("stop", *SERVICES)
    assert [deployment.inspect(service, "{{.State.ExitCode}}") for service in SERVICES] == ["0", "0"]
