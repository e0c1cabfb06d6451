"""Killed at any write while a job is approved, a server or a command leaves it approved with exactly one message for
the hook, or as it was with none; asked again, they approve it or say that it is approved.
"""

import http.client
import json
import shutil
import signal

from tests.faults.servers import serving
from tests.faults.tracing import Tracer, calls_of
from tests.faults.trials import IS_LONG, scaled
from tests.faults.victims import HOOK_NETWORKS, JOB, is_approved, job_and_messages, undecided_job

CALLS = "pwrite64,fdatasync,ftruncate"
"""What SQLite changes a disk with."""
KILLS = 1
PATH, BODY = f"/jobs/{JOB}/actions", b'{"action_id": "approve_fix"}'


def approve(server, folder, *injected):
    """The status of the answer to an approval, None if the server was killed before it; and the calls made meanwhile.

    Every thread of the server counts its calls from here on; those that send messages write, too.
    """
    assert server.ask("GET", "/jobs").status == 200  # which notes that the key was used
    trace = folder.with_suffix(".trace")
    expressions = [word for one in injected for word in ("-e", f"inject={one}")]
    tracer = Tracer(server.child.process, trace, "-y", "-e", f"trace={CALLS}", *expressions)
    assert tracer.is_attached, tracer.told
    try:
        status = server.ask("POST", PATH, BODY).status
    except (OSError, http.client.HTTPException):
        status = None
        tracer.wait()
        assert server.child.wait().code == -signal.SIGKILL
    else:
        tracer.detach()
    return status, list(calls_of(trace.read_text(errors="replace")))


def test_a_server_killed_at_any_write_has_approved_with_one_message_or_not_at_all(program, traceable, tell, tmp_path):
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    undecided_job(undisturbed)
    with serving(program, undisturbed, hook_networks=HOOK_NETWORKS) as server:
        status, calls = approve(server, undisturbed)
    assert status == 200
    found = sorted({(call.name, call.number) for call in calls})
    tried = found if IS_LONG else found[:: -(-len(found) // scaled(KILLS, 0))]
    kills = approved = 0
    for number, (name, when) in enumerate(tried):
        folder = tmp_path / str(number)
        folder.mkdir()
        undecided_job(folder)
        with serving(program, folder, hook_networks=HOOK_NETWORKS) as server:
            status, _ = approve(server, folder, f"{name}:signal=KILL:when={when}")
        kills += status is None
        there = is_approved(job_and_messages(folder))
        assert there or status is None, "it was answered, and is not there"
        approved += there
        with serving(program, folder, hook_networks=HOOK_NETWORKS) as server:
            again = server.ask("POST", PATH, BODY)
        assert again.status == (409 if there else 200), again
        assert json.loads(again.body)["status"] == "approved"
        assert is_approved(job_and_messages(folder))
    tell(points=len(found), kills=kills, approved=approved, without_message=0, doubled=0)
    assert kills


def test_a_command_killed_before_it_could_say_so_says_when_repeated_that_the_job_is_approved(
    program, traceable, tmp_path
):
    undecided_job(tmp_path)
    words = ("in_order", "traffic", "jobs", "approve", JOB, "--lake", "lake")
    shutil.copytree(tmp_path, tmp_path / "undisturbed")
    calls = program.trace(tmp_path / "undisturbed", *words).calls
    (said,) = [call for call in calls if call.name == "write" and JOB in call.text]
    killed = program.trace(tmp_path, *words, options=("-e", f"inject=write:signal=KILL:when={said.number}"))
    assert killed.code == -signal.SIGKILL
    for _ in range(2):
        again = program.run(tmp_path, *words)
        assert again.code == 1
        assert "The job is approved" in again.told
        assert is_approved(job_and_messages(tmp_path))
