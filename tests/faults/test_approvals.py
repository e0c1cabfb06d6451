"""A kill at any write during an approval leaves the job approved with exactly one message for the hook, or unchanged
without a message; a repeated approval succeeds or reports that the job is approved.
"""

import json
import shutil
import signal

from tests.faults.servers import post_traced, serving
from tests.faults.trials import spread
from tests.faults.victims import HOOK_NETWORKS, JOB, is_approved, job_and_messages, undecided_job

CALLS = ("pwrite64", "fdatasync", "ftruncate")
"""System calls with which SQLite changes a disk."""
KILLS = 1
PATH, BODY = f"/jobs/{JOB}/actions", b'{"action_id": "approve_fix"}'


def test_a_kill_never_separates_an_approval_from_its_message(program, traceable, tell, tmp_path):
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    undecided_job(undisturbed)
    with serving(program, undisturbed, hook_networks=HOOK_NETWORKS) as server:
        status, calls = post_traced(server, undisturbed, PATH, BODY, CALLS)
    assert status == 200
    found = sorted({(call.name, call.number) for call in calls})
    tried = spread(found, KILLS)
    kills = approved = 0
    for number, (name, when) in enumerate(tried):
        folder = tmp_path / str(number)
        folder.mkdir()
        undecided_job(folder)
        with serving(program, folder, hook_networks=HOOK_NETWORKS) as server:
            status, _ = post_traced(server, folder, PATH, BODY, CALLS, f"{name}:signal=KILL:when={when}")
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


def test_an_approval_killed_before_its_output_is_not_repeated(program, traceable, tmp_path):
    undecided_job(tmp_path)
    words = ("in_order", "approve", "lake", JOB)
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
