"""From a problem in the traffic to its fix and the measured outcome: a real server, its pages, a receiver and a log."""

import json
import time
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta

import httpx2
from standardwebhooks import Webhook

from data.ingest.importer import Importer, Options
from data.links.links import links_of
from data.tasks.compaction import Compactor
from queries import DETECTORS
from service.demo.command import know_impostors
from service.demo.countries import SampleCountries
from service.demo.problems import REQUESTS, write_log
from service.demo.sample import ASSISTANTS
from service.intake.commands.links import export
from tests.support.page_reading import Browser
from tests.support.receivers import Receiver

WAIT_SECONDS = 60
AGENT = ASSISTANTS[0][0]


def until(condition, what):
    """Wait until `condition` returns something true; return it."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.5)  # more frequent requests would meet the rate limit
    return found


DOMAIN, PATH, TARGET = "link.example.org", "/spring-guide", "https://example.com/guide"
CLOCK = """
import datetime, types, service.core.clock
slow = lambda zone: datetime.datetime.now(zone) - datetime.timedelta(seconds={seconds})
service.core.clock.datetime = types.SimpleNamespace(now=slow, fromisoformat=datetime.datetime.fromisoformat)
"""
"""Code that runs before a server and makes the server's clock slow by a number of seconds."""


class Walker:
    """A user who goes from a finding to its fix on the pages, and sends each form with all of its fields."""

    def __init__(self, client, key):
        self.client, self.browser = client, Browser(client)
        self.client.headers["Authorization"] = f"Bearer {key}"
        assert self.browser.post("sign-in", key=key).status_code == 303

    def send(self, job_id, field, **typed):
        forms = [form for form in self.browser.read(f"jobs/{job_id}").all("form") if form.all(name=field)]
        hidden = {one.attributes["name"]: one.attributes["value"] for one in forms[0].all("input", type="hidden")}
        place = forms[0].attributes["action"]
        return self.browser.post(place, **hidden | typed).status_code

    def find(self):
        """Return the ids of jobs about PATH, or nothing before the server has found jobs of every type by itself."""
        if {job["type"] for job in self.client.get("/jobs").json()} != set(DETECTORS):
            return []
        rows = self.browser.read("jobs").one("main").all("tr")
        found = [row.one("a") for row in rows if PATH in [code.text for code in row.all("code")]]
        return [link.attributes["href"].rpartition("/")[2] for link in found]

    def outcome(self, job_id):
        section = self.browser.read(f"jobs/{job_id}").one("section", aria_labelledby="outcome")
        return next((one.text for one in section.all("p") if one.text.startswith("It helped")), None)

    def told_to_an_assistant(self, job_id):
        call = {"method": "tools/call", "params": {"name": "job", "arguments": {"id": job_id}}}
        answer = self.client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, **call}).json()
        return json.loads(answer["result"]["content"][0]["text"].split("\n")[1])["outcome"]["verdict"]


@contextmanager
def walking(serving, lake, key, at):
    """Yield a user of a real server whose clock shows the time `at`."""
    before = CLOCK.format(seconds=(datetime.now(UTC) - at).total_seconds())
    with (
        serving(lake, before=before, hook_networks="127.0.0.0/8") as server,
        httpx2.Client(base_url=server.address, trust_env=False, verify=False, timeout=WAIT_SECONDS) as client,
    ):
        yield Walker(client, key)


def test_a_finding_leads_to_a_fix_and_a_measured_improvement(lake, tmp_path, today, serving, capsys, key_of):
    noon = datetime(today.year, today.month, today.day, 12, tzinfo=UTC) - timedelta(days=10)
    know_impostors(lake, noon)
    write_log(log := tmp_path / "problems.log", REQUESTS, noon.date())  # they end on the previous day
    Importer(lake, countries=SampleCountries()).run(log, Options("demo"))
    Compactor(lake, lambda: noon).run()
    key = key_of(lake, "demo")

    def exported():
        for form in ("csv", "nginx", "caddy"):
            export("demo", form, DOMAIN, lake.root)
            yield TARGET in capsys.readouterr().out

    with walking(serving, lake, key, noon) as walker, closing(Receiver()) as receiver:
        (job_id,) = until(walker.find, "detection")
        hook = walker.client.post("/agent-hooks", json={"name": "repairs", "url": receiver.url}).json()
        assert walker.send(job_id, "action_id", action_id="approve_fix") == 303
        (sent,) = receiver.wait_for(1)
        at = datetime.fromtimestamp(int(sent.headers["webhook-timestamp"]), UTC).replace(tzinfo=None)
        signature = Webhook(hook["secret"]).sign(sent.headers["webhook-id"], at, sent.body.decode())
        assert (signature, at.date()) == (sent.headers["webhook-signature"], noon.date())
        told, job = json.loads(sent.body), json.loads(sent.body)["data"]["job"]
        assert (told["type"], job["id"], job["domain"], job["path"]) == ("job.approved", job_id, DOMAIN, PATH)
        until(lambda: walker.client.get(f"/jobs/{job_id}").json()["status"] == "sent", "the status sent")
        assert [*exported()] == [False] * 3
        assert walker.send(job_id, "redirect_to", redirect_to=TARGET) == 303
        assert walker.outcome(job_id) is None
        (link,) = links_of(lake, "demo")
        assert (link.domain, f"/{link.short_code}", link.target_url) == (DOMAIN, PATH, TARGET)
        assert [*exported()] == [True] * 3
    moments = [noon + timedelta(days=day, hours=1, minutes=minute) for day in range(9) for minute in range(5)]
    line = '{} 198.18.77.9 - - [{:%d/%b/%Y:%H:%M:%S +0000}] "GET {} HTTP/1.1" 302 0 "-" "{}"\n'
    (tmp_path / "afterwards.log").write_text("".join(line.format(DOMAIN, at, PATH, AGENT) for at in moments))
    assert Importer(lake).run(tmp_path / "afterwards.log", Options("demo")).visits == 45
    Compactor(lake, lambda: noon + timedelta(days=9)).run()
    with walking(serving, lake, key, noon + timedelta(days=9)) as walker:
        verdict = until(lambda: walker.outcome(job_id), "the outcome")
        assert verdict.startswith(walker.told_to_an_assistant(job_id))
        record = walker.client.get(f"/jobs/{job_id}").json()
    assert [(one["event"], one["status"]) for one in record["deliveries"]] == [("job.approved", "delivered")]
    assert [line["to"] for line in record["history"]] == ["new", "approved", "sent", "sent", "sent", "resolved"]
    assert [line["note"] for line in record["history"]][-2:] == ["implementation 1, by the log", "improved"]
    outcome = record["outcome"]
    assert (outcome["judged_by"], outcome["after"]) == ("answer", {"days": 8, "events": 0, "visits": 40})
    assert outcome["before"]["events"] == outcome["before"]["visits"] >= 36
