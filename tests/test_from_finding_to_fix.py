"""From a problem in the traffic to its fix and its measured outcome, over HTTP and with a real receiver."""

import json
import time
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from standardwebhooks import Webhook

from data.ingest.importer import Importer, Options
from data.maintenance.compaction import Compactor
from data.store.links import links_of
from queries import DETECTORS
from service.commands.demo import import_problems
from service.commands.links import export
from service.control_database import ControlDatabase
from service.demo.sample import ASSISTANTS
from service.jobs.store import Jobs
from tests.service.outgoing.receivers import Receiver
from tests.service.pages.reading import Browser

WAIT_SECONDS = 60
AGENT = ASSISTANTS[0][0]


def until(condition, what):
    """What `condition` returns, as soon as it is true."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.5)  # asked more often, the rate limit would answer
    return found


def fetches(path, domain, first_day, days):
    """Log lines: five fetches a day of a path that is found again."""
    moments = [first_day + timedelta(days=day, minutes=minute) for day in range(days) for minute in range(5)]
    times = [moment.strftime("%d/%b/%Y:%H:%M:%S +0000") for moment in moments]
    return "".join(f'{domain} 198.18.77.9 - - [{at}] "GET {path} HTTP/1.1" 302 0 "-" "{AGENT}"\n' for at in times)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:standardwebhooks")
def test_a_finding_is_approved_sent_patched_shipped_and_its_outcome_improves(lake, tmp_path, opened, today):
    noon = datetime(today.year, today.month, today.day, 12, tzinfo=UTC)
    import_problems(lake, tmp_path, noon)  # they end yesterday
    Compactor(lake, lambda: noon).run()
    later, simulated = noon + timedelta(days=9), [noon]
    settings = {"hook_networks": "127.0.0.0/8", "public_url": "https://stats.example"}
    with (
        closing(Receiver()) as receiver,
        opened(lake, "demo", clock=lambda: simulated[0] if simulated else datetime.now(UTC), **settings) as client,
    ):
        # the server looks by itself, once a day
        jobs = until(lambda: len(found := client.get("/jobs").json()) == len(DETECTORS) and found, "detection")
        assert {job["type"] for job in jobs} == set(DETECTORS)
        simulated.clear()  # a receiver refuses messages that are not of its own time
        job = next(job for job in jobs if job["type"] == "broken_link")
        path = f"/jobs/{job['id']}"

        secret = client.post("/agent-hooks", json={"name": "repairs", "url": receiver.url}).json()["secret"]
        action = {"action_id": "approve_fix", "note": "please"}
        approved = client.post(f"{path}/actions", json=action, headers={"If-Match": '"1"'})
        assert (approved.status_code, approved.json()["status"]) == (200, "approved")

        (sent,) = receiver.wait_for(1)
        verified = Webhook(secret).verify(sent.body, sent.headers)
        assert verified["type"] == "job.approved"
        sent = verified["data"]["job"]
        assert (sent["id"], sent["domain"], sent["path"]) == (job["id"], "link.example.org", "/spring-guide")
        assert verified["data"]["links"]["self"] == f"https://stats.example{path}"
        record = until(lambda: (now := client.get(path).json())["status"] == "sent" and now, "the status sent")
        assert [(one["event"], one["status"]) for one in record["deliveries"]] == [("job.approved", "delivered")]

        rule = {"type": "redirect", "domain": sent["domain"], "from": sent["path"], "to": TARGET, "status": 302}
        patch = {"implementation_type": "patch", "content_type": "application/json", "content": json.dumps(rule)}
        attached = client.post(f"{path}/implementations", json=patch)
        assert (attached.status_code, attached.json()["number"]) == (201, 1)
        shipped = client.post(f"{path}/implementations/1/status", json={"status": "shipped"})
        assert shipped.json()["outcome"]["status"] == "waiting"

    log = tmp_path / "afterwards.log"
    log.write_text(fetches(sent["path"], sent["domain"], noon + timedelta(days=1), days=8))
    assert Importer(lake, now=lambda: later).run(log, Options("demo")).visits == 40
    Compactor(lake, lambda: later).run()  # as `traffic import` does
    with opened(lake, "demo", clock=lambda: later) as client:
        record = until(lambda: (now := client.get(path).json())["status"] == "resolved" and now, "the outcome")
    outcome = record["outcome"]
    assert outcome["status"] == "improved"
    assert (outcome["judged_by"], outcome["after"]) == ("answer", {"days": 8, "events": 0, "visits": 40})
    assert outcome["before"]["events"] == outcome["before"]["visits"] >= 36
    assert outcome["verdict"].startswith("It helped: ")
    assert [line["to"] for line in record["history"]] == ["new", "approved", "sent", "sent", "sent", "resolved"]


DOMAIN, PATH, TARGET = "link.example.org", "/spring-guide", "https://example.com/guide"
CLOCK = """
import datetime, types, service.clock
slow = lambda zone: datetime.datetime.now(zone) - datetime.timedelta(seconds={seconds})
service.clock.datetime = types.SimpleNamespace(now=slow, fromisoformat=datetime.datetime.fromisoformat)
"""
"""Run before a server: its clock is slow by so many seconds."""


class Walker:
    """Somebody who walks from a finding to its fix by the pages, and sends each form with the fields it has."""

    def __init__(self, client, key):
        self.client, self.key, self.browser = client, key, Browser(client)
        assert self.browser.post("sign-in", key=key).status_code == 303

    def send(self, job_id, field, **typed):
        forms = [form for form in self.browser.read(f"jobs/{job_id}").all("form") if form.all(name=field)]
        hidden = {one.attributes["name"]: one.attributes["value"] for one in forms[0].all("input", type="hidden")}
        place = forms[0].attributes["action"]
        return self.browser.post(place, **hidden | typed).status_code

    def find(self):
        rows = self.browser.read("jobs").one("main").all("tr")
        found = [row.one("a") for row in rows if PATH in [code.text for code in row.all("code")]]
        return [link.attributes["href"].rpartition("/")[2] for link in found]

    def outcome(self, job_id):
        section = self.browser.read(f"jobs/{job_id}").one("section", aria_labelledby="outcome")
        return next((one.text for one in section.all("p") if one.text.startswith("It helped")), None)

    def told_to_an_assistant(self, job_id):
        call = {"method": "tools/call", "params": {"name": "job", "arguments": {"id": job_id}}}
        headers = {"Authorization": f"Bearer {self.key}"}
        answer = self.client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, **call}, headers=headers).json()
        return json.loads(answer["result"]["content"][0]["text"].split("\n")[1])["outcome"]["verdict"]


def test_a_finding_of_the_demo_is_redirected_exported_seen_in_the_log_and_improves(
    lake, tmp_path, today, serving, capsys, key_of
):
    noon = datetime(today.year, today.month, today.day, 12, tzinfo=UTC) - timedelta(days=10)
    import_problems(lake, tmp_path, noon)
    Compactor(lake, lambda: noon).run()
    key = key_of(lake, "demo")

    @contextmanager
    def walking(at):
        """Somebody before a real server whose clock says another time."""
        before = CLOCK.format(seconds=(datetime.now(UTC) - at).total_seconds())
        with (
            serving(lake, before=before) as server,
            httpx2.Client(base_url=server.address, trust_env=False, timeout=WAIT_SECONDS) as client,
        ):
            yield Walker(client, key)

    def exported():
        for form in ("csv", "nginx", "caddy"):
            export("demo", form, DOMAIN, lake.root)
            yield TARGET in capsys.readouterr().out

    with walking(noon) as walker:
        (job_id,) = until(walker.find, "detection")
        assert [*exported()] == [False] * 3
        assert walker.send(job_id, "action_id", action_id="approve_fix") == 303
        assert walker.send(job_id, "redirect_to", redirect_to=TARGET) == 303
        assert walker.outcome(job_id) is None
        (link,) = links_of(lake, "demo")
        assert (link.domain, f"/{link.short_code}", link.target_url) == (DOMAIN, PATH, TARGET)
        assert [*exported()] == [True] * 3
    log = tmp_path / "afterwards.log"
    log.write_text(fetches(PATH, DOMAIN, noon + timedelta(hours=1), days=9))
    Importer(lake).run(log, Options("demo"))
    Compactor(lake, lambda: noon + timedelta(days=9)).run()
    with walking(noon + timedelta(days=9)) as walker:
        verdict = until(lambda: walker.outcome(job_id), "the outcome")
        assert verdict.startswith(walker.told_to_an_assistant(job_id))
    assert verdict.startswith("It helped: ")
    with closing(ControlDatabase(lake)) as control:
        history = Jobs(control).record("demo", job_id).history
    assert [(one.to_status, one.note) for one in history][-2:] == [
        ("approved", "implementation 1, by the log"), ("resolved", "improved"),
    ]  # fmt: skip
