"""A kill at any write while a redirect is attached leaves the redirect, or nothing.

The redirect's link exists after the server's next start at the latest. It is never created again over later edits.
"""

import json
import shutil
import sqlite3
import time
from contextlib import closing

from data.links.links import links_of, remove_link
from tests.faults.servers import post_traced, serving
from tests.faults.tracing import CALLS
from tests.faults.trials import spread
from tests.faults.victims import JOB, undecided_job
from tests.support.lakes import opened
from tests.support.visits import links

KILLS = 6
PATH = f"/jobs/{JOB}/implementations"
COUNTS = "SELECT (SELECT count(*) FROM implementations), (SELECT count(*) FROM wanted_links)"
BODY = json.dumps({"implementation_type": "patch", "redirect_to": "https://example.com/new"}).encode()


def approved_job(folder):
    """Prepare links, and an approved job about the path of a dead short code."""
    undecided_job(folder)
    with opened(folder / "lake") as lake:
        links(lake, "acme", [{"short_code": "kept", "target_url": "https://example.com/kept"}])
        with closing(sqlite3.connect(lake.root / "control.sqlite")) as database, database:
            database.execute("DELETE FROM hooks")
            database.execute("UPDATE jobs SET status = 'approved', short_code = 'gone', path = '/gone'")
            database.execute("UPDATE jobs SET subjects = ?", [json.dumps([{"domain": None, "path": "/gone"}])])


def state(folder):
    """Return the number of implementations, the number of pending links, and the existing short codes."""
    with opened(folder / "lake") as lake, closing(sqlite3.connect(lake.root / "control.sqlite")) as database:
        ((attached, wanted),) = database.execute(COUNTS)
        return attached, wanted, [link.short_code for link in links_of(lake, "acme")]


def started_again(program, folder):
    """Start a server again and wait until nothing is pending; return the state after that."""
    with serving(program, folder) as server:
        given_up_at = time.monotonic() + 60
        while state(folder)[1]:
            assert server.child.runs()
            assert time.monotonic() < given_up_at
            time.sleep(0.05)
    return state(folder)


def test_a_redirect_and_its_link_survive_a_kill_between_them(program, traceable, tell, tmp_path):
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    approved_job(undisturbed)
    with serving(program, undisturbed) as server:
        status, calls = post_traced(server, undisturbed, PATH, BODY, CALLS)
    assert (status, state(undisturbed)) == (201, (1, 0, ["gone", "kept"]))
    found = sorted({(call.name, call.number) for call in calls})
    tried = spread(found, KILLS)
    kills = between = 0
    for number, (name, when) in enumerate(tried):
        folder = tmp_path / str(number)
        folder.mkdir()
        approved_job(folder)
        with serving(program, folder) as server:
            status, _ = post_traced(server, folder, PATH, BODY, CALLS, f"{name}:signal=KILL:when={when}")
        kills += status is None
        attached, wanted, codes = state(folder)
        assert attached or (status is None and codes == ["kept"])
        between += wanted
        is_made = "gone" in codes
        if is_made:
            with opened(folder / "lake") as lake:
                assert remove_link(lake, "acme", "gone", "")
        expected = ["gone", "kept"] if attached and not is_made else ["kept"]
        assert started_again(program, folder) == (attached, 0, expected), (name, when)
        shutil.rmtree(folder)
    tell(kills=kills, of_them_before_the_link_was_forgotten=between)
    assert kills
    assert between
