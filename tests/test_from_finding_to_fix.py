"""From a problem in the traffic to its fix and its measured outcome, over HTTP and with a real receiver."""

import json
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from standardwebhooks import Webhook

from data.ingest.importer import Importer, Options
from data.maintenance.compaction import Compactor
from queries import DETECTORS
from service.commands.demo import _import_problems
from service.demo.sample import ASSISTANTS

WAIT_SECONDS = 60
AGENT = ASSISTANTS[0][0]


@contextmanager
def receiver():
    """A real receiver on the loopback interface; yields its address and what it was sent: headers and body."""
    received = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            received.append((dict(self.headers), self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def until(condition, what):
    """What `condition` returns, as soon as it is true."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.1)
    return found


def fetches(path, domain, first_day, days):
    """Log lines: five fetches a day of a path that is found again."""
    moments = [first_day + timedelta(days=day, minutes=minute) for day in range(days) for minute in range(5)]
    times = [moment.strftime("%d/%b/%Y:%H:%M:%S +0000") for moment in moments]
    return "".join(f'{domain} 198.18.77.9 - - [{at}] "GET {path} HTTP/1.1" 302 0 "-" "{AGENT}"\n' for at in times)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:standardwebhooks")
def test_a_finding_is_approved_sent_patched_shipped_and_its_outcome_improves(lake, tmp_path, opened, today):
    noon = datetime(today.year, today.month, today.day, 12, tzinfo=UTC)
    _import_problems(lake, tmp_path, noon)  # they end yesterday
    Compactor(lake, lambda: noon).run()
    later, simulated = noon + timedelta(days=9), [noon]
    settings = {"hook_networks": "127.0.0.0/8", "public_url": "https://stats.example"}
    with (
        receiver() as (url, received),
        opened(lake, "demo", clock=lambda: simulated[0] if simulated else datetime.now(UTC), **settings) as client,
    ):
        # the server looks by itself, once a day
        jobs = until(lambda: len(found := client.get("/jobs").json()) == len(DETECTORS) and found, "detection")
        assert {job["type"] for job in jobs} == set(DETECTORS)
        simulated.clear()  # a receiver refuses messages that are not of its own time
        job = next(job for job in jobs if job["type"] == "broken_link")
        path = f"/jobs/{job['id']}"

        secret = client.post("/agent-hooks", json={"name": "repairs", "url": url}).json()["secret"]
        action = {"action_id": "approve_fix", "note": "please"}
        approved = client.post(f"{path}/actions", json=action, headers={"If-Match": '"1"'})
        assert (approved.status_code, approved.json()["status"]) == (200, "approved")

        until(lambda: received, "a delivery")
        headers, body = received[0]
        verified = Webhook(secret).verify(body, {name.lower(): value for name, value in headers.items()})
        assert verified["type"] == "job.approved"
        sent = verified["data"]["job"]
        assert (sent["id"], sent["domain"], sent["path"]) == (job["id"], "link.example.org", "/spring-guide")
        assert verified["data"]["links"]["self"] == f"https://stats.example{path}"
        record = until(lambda: (now := client.get(path).json())["status"] == "sent" and now, "the status sent")
        assert [(one["event"], one["status"]) for one in record["deliveries"]] == [("job.approved", "delivered")]

        rule = {
            "type": "redirect",
            "domain": sent["domain"],
            "from": sent["path"],
            "to": "https://example.com/guide",
            "status": 302,
        }
        patch = {"implementation_type": "patch", "content_type": "application/json", "content": json.dumps(rule)}
        attached = client.post(f"{path}/implementations", json=patch)
        assert (attached.status_code, attached.json()["number"]) == (201, 1)
        shipped = client.post(f"{path}/implementations/1/status", json={"status": "shipped"})
        assert shipped.json()["outcome"]["status"] == "waiting"

    log = tmp_path / "afterwards.log"
    log.write_text(fetches(sent["path"], sent["domain"], noon + timedelta(days=1), days=8))
    assert Importer(lake, now=lambda: later).run(log, Options("demo")).visits == 40
    with opened(lake, "demo", clock=lambda: later) as client:
        record = until(lambda: (now := client.get(path).json())["status"] == "resolved" and now, "the outcome")
    outcome = record["outcome"]
    assert outcome["status"] == "improved"
    assert (outcome["judged_by"], outcome["after"]) == ("answer", {"days": 8, "events": 0, "visits": 40})
    assert outcome["before"]["events"] == outcome["before"]["visits"] >= 36
    assert outcome["verdict"].startswith("It helped: ")
    assert [line["to"] for line in record["history"]] == ["new", "approved", "sent", "sent", "sent", "resolved"]
