"""How long an organization's jobs take to read and write while another polls or attaches redirects."""

import http.client
import json
import statistics
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import Final, NamedTuple

import orjson

from benchmarks.bars import QUIET
from benchmarks.figures import OURS, Figure, beside, figure, percentile_99
from benchmarks.servers import key_of, program, resident_mb, server
from benchmarks.worlds import Setting
from data import Lake
from data.store.links import change_links, new_link
from service.clock import utc_now
from service.control_database import ControlDatabase
from service.jobs.findings import blank_job
from service.jobs.implementations import MAX_CONTENT_BYTES, RULE, RULE_TYPE, Draft
from service.jobs.records import COMMAND_LINE, Actor
from service.jobs.states import APPROVE_FIX
from service.jobs.store import Jobs

HOSTILE: Final = "hostile"
READER: Final = "reader"
WRITER: Final = "writer"
LINKS: Final = 500_000
RULES: Final = 100
ATTACHMENTS: Final = 50
"""Jobs whose redirects are attached, again and again."""
SAMPLES: Final = 300
MOST_SECONDS: Final = 30
"""After which a request counts as unanswered."""


class _Times(NamedTuple):
    """Milliseconds of the neighbour's answers, and how many requests had none."""

    reads: list[float]
    writes: list[float]
    unanswered: int


def job_neighbours(setting: Setting) -> Iterator[Figure]:
    """The neighbour's jobs, quiet and beside each way to ask for another's, by one source and by ten."""
    lake = Lake(setting.scratch / "jobs", create=True)
    with closing(lake.manifest), closing(ControlDatabase(lake)) as control:
        jobs = Jobs(control)
        padded = [_approved(jobs, f"old{number}", is_link=False) for number in range(RULES)]
        for number, job_id in enumerate(padded):
            rule = orjson.dumps({**RULE, "from": f"/old{number}"}).decode()
            jobs.attach(HOSTILE, job_id, Draft("patch", RULE_TYPE, rule.ljust(MAX_CONTENT_BYTES)), *_by())
            jobs.set_implementation_status(HOSTILE, job_id, 1, *_by(), status="shipped")
        attached = [_approved(jobs, f"gone{number}", is_link=True) for number in range(ATTACHMENTS)]
        now = utc_now()
        many = [new_link(f"code{number}", "", f"https://example.com/{number}", now) for number in range(LINKS)]
        change_links(lake, HOSTILE, many, now)
    keys = key_of(lake.root, READER), key_of(lake.root, WRITER)
    authorization = f"Authorization: Bearer {key_of(lake.root, HOSTILE)}"
    to = json.dumps({"implementation_type": "patch", "redirect_to": "https://example.com/"})
    attacks = {
        "polls of rules": [_request("GET /implementations/active", authorization)],
        "attachments": [_request(f"POST /jobs/{one}/implementations", authorization, to) for one in attached],
    }
    sources, addresses = count(1, 10), count()
    with server(lake.root) as (port, process):
        for name, requests in attacks.items():
            file = setting.scratch / "requests"
            file.write_bytes(b"\0".join(requests))
            for many_sources in (1, 10):
                quiet = _times(port, keys, addresses)
                with program("benchmarks.hostile", port, next(sources), many_sources, file):
                    beset = _times(port, keys, addresses)
                yield from _figures(f"{name}, sources: {many_sources}", quiet, beset)
        yield figure("server memory, beset by redirects", "MB", [resident_mb(process.pid, "VmHWM")])


def _figures(case: str, quiet: _Times, beset: _Times) -> Iterator[Figure]:
    for name, ours, theirs in (("list of jobs", beset.reads, quiet.reads), ("new jobs", beset.writes, quiet.writes)):
        as_many = [statistics.median(theirs)] * len(ours)  # what each of the others is compared with
        yield from beside(f"another's {name}, {case}", "ms", {OURS: ours, QUIET: as_many})
        worst = {OURS: [percentile_99(ours)], QUIET: [percentile_99(theirs)]}
        yield from beside(f"p99 of another's {name}, {case}", "ms", worst)
    yield figure(f"another's unanswered, {case}", "requests", [beset.unanswered])


def _times(port: int, keys: tuple[str, str], addresses: Iterator[int]) -> _Times:
    """Read the list of the reader, and write a job of the writer and dismiss it, SAMPLES times."""
    times = _Times([], [], 0)
    body = json.dumps({"title": "Do it", "summary": "Now."})
    for _ in range(SAMPLES):
        number = next(addresses)
        address = {"X-Forwarded-For": f"10.{number >> 8 & 255}.{number & 255}.1"}
        reader, writer = ({"Authorization": f"Bearer {key}", **address} for key in keys)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=MOST_SECONDS)
        with closing(connection):
            try:
                _ask(connection, "GET", "/jobs", None, reader, times.reads)
                job = json.loads(_ask(connection, "POST", "/jobs", body, writer, times.writes))
                dismissed = json.dumps({"action_id": "dismiss"})
                _ask(connection, "POST", f"/jobs/{job['id']}/actions", dismissed, writer, [])
            except TimeoutError:
                times = times._replace(unanswered=times.unanswered + 1)
    return times


def _ask(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: str | None,
    headers: dict[str, str],
    taken: list[float],
) -> bytes:
    """One answer, whose milliseconds are added. Raises RuntimeError if it is an error."""
    started = time.perf_counter()
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    answer = response.read()
    taken.append(1000 * (time.perf_counter() - started))
    if response.status >= 300:
        raise RuntimeError(f"{method} {path}: {response.status} {answer.decode()}")
    return answer


def _approved(jobs: Jobs, code: str, *, is_link: bool) -> str:
    """The id of an approved job about the path of a code, which may be a short code."""
    job = blank_job(HOSTILE, f"type of {code}", f"Redirect {code}", utc_now())
    job = replace(job, path=f"/{code}", short_code=code if is_link else None, domain="go.example.com")
    made = jobs.create(job, *_by())
    jobs.act(HOSTILE, made.id, APPROVE_FIX, *_by())
    return made.id


def _by() -> tuple[Actor, datetime]:
    return COMMAND_LINE, utc_now()


def _request(line: str, header: str, body: str = "") -> bytes:
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{line} HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}\r\n{length}\r\n{body}".encode()
