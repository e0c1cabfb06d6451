"""Measures an organization's response times during each of several attacks on the server by another organization.

Each attack has its own server and copy of the lake. The measured organization, the neighbour, sends requests of the
same kinds at the same rates twice: first alone, then during the attack.
"""

import json
import math
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Final, TypedDict

from rich.console import Console

from benchmarks.bars import QUIET
from benchmarks.figures import OURS, Figure, beside, figure, percentile_99
from benchmarks.neighbours import HOSTILE, PATHS, Secrets, lake_of_two, request_of, secrets_of
from benchmarks.servers import key_of, program, resident_mb, server
from benchmarks.worlds import WHOLE, Setting
from data import Lake
from service.core.clock import utc_now
from service.core.control_database import ControlDatabase
from service.jobs.findings import blank_job
from service.jobs.implementations import MAX_CONTENT_BYTES, RULE, RULE_TYPE, Draft
from service.jobs.records import COMMAND_LINE, Actor
from service.jobs.states import APPROVE_FIX
from service.jobs.store import Jobs

SECONDS: Final = 32
"""Minimum time of each measurement, alone and during the attack: enough for 320 writes. Uncached queries may take up to
three times as long."""
MOST_QUESTIONS: Final = 5_000
WARM_SECONDS: Final = 5
SETTLING_SECONDS: Final = 15
"""Approximate time for copying and preparing an attack's lake."""
BODY_BYTES: Final = 4 << 20
DISTINCT_BODIES: Final = 12
"""Number of different bodies of visits, which are sent in rotation."""
VISITS_OF_BODY: Final = 10_000
RULES: Final = 100
"""Number of shipped redirects, each of the maximum size: 25 MB in total."""
ATTACHMENTS: Final = 50
"""Number of jobs to which redirects are attached repeatedly."""
WRITERS: Final = tuple(f"writer-{number}" for number in range(8))
"""Names of organizations that create jobs: several, since each may have at most 100 open jobs of a type."""
PAGES: Final = 600

_PROGRESS: Final = Console(stderr=True)


class Measured(TypedDict):
    """The fields of benchmarks.asking.Answers, as read from JSON."""

    milliseconds: list[float]
    failures: list[str]


@dataclass(frozen=True)
class Kind:
    """A kind of request that the neighbour sends. `make` builds each request from its number."""

    rate: float
    """Requests per second, whether or not earlier ones have been answered; 0: one after another."""
    make: Callable[[Secrets, int], bytes]


@dataclass(frozen=True)
class Attack:
    """The hostile organization's requests, and the number of connections from each of its sources."""

    name: str
    requests: Callable[[Secrets], Iterable[bytes]]
    """Requests, sent one after another; their bodies may be unfinished."""
    connections: int
    sources: int = 1
    patience: float = 0
    """Seconds after which the hostile organization hangs up; 0: never."""
    pause: float = 1
    """Seconds between a refusal and the next attempt; without a pause, large bodies would load only the loopback."""
    also: Mapping[str, Kind] = field(default_factory=dict)
    """Kinds of requests that the neighbour sends in addition to KINDS, by name; bars.py has a bar for each."""


def _cached(secrets: Secrets, number: int) -> bytes:
    return request_of(f"GET {PATHS[number % len(PATHS)]}", _key(secrets.key))


def _uncached(secrets: Secrets, number: int) -> bytes:
    days = f"start_date={WHOLE.start_date - timedelta(1 + number)}&end_date={WHOLE.end_date}"
    return request_of(f"GET /analytics/dashboard?{days}", _key(secrets.key))


def _write(secrets: Secrets, number: int) -> bytes:
    visit = {"url": f"https://go.example.com/code{number}", "user_agent": "Mozilla/5.0 (X11) Firefox/140.0"}
    return request_of("POST /visits", _key(secrets.key), json.dumps(visit))


def _list_of_jobs(secrets: Secrets, _: int) -> bytes:
    return request_of("GET /jobs", _key(secrets.key))


def _new_job(secrets: Secrets, number: int) -> bytes:
    key = _key(secrets.writer_keys[number % len(WRITERS)])
    return request_of("POST /jobs", key, json.dumps({"title": "Do it", "summary": "Now."}))


KINDS: Final = {"cached": Kind(20, _cached), "uncached": Kind(0, _uncached), "writes": Kind(10, _write)}
"""The neighbour's requests during every attack."""
JOB_KINDS: Final = {"list of jobs": Kind(10, _list_of_jobs), "new jobs": Kind(10, _new_job)}


def _unfinished(request: bytes) -> bytes:
    """Return a request without the last bytes of its body."""
    return request[:-8]


def _unfinished_visits(secrets: Secrets) -> list[bytes]:
    return [_unfinished(request_of("POST /visits", _key(secrets.hostile_key), "[" * BODY_BYTES))]


def _unfinished_implementations(secrets: Secrets) -> list[bytes]:
    line = "POST /jobs/job_x/implementations"
    return [_unfinished(request_of(line, _key(secrets.hostile_key), "[" * (BODY_BYTES // 2)))]


def _distinct_visits(secrets: Secrets) -> Iterator[bytes]:
    for body in range(DISTINCT_BODIES):
        rows = (
            f'{{"url":"https://go.example.com/{body}/{number}?q={number}","ip":"2001:db8:{body:x}::{number:x}",'
            f'"referrer":"https://site{number}.example/{body}","user_agent":"Mozilla/5.0 (Linux; Android 14; Model '
            f"{body}-{number}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{100 + number % 60}.0.{number}.{body} "
            'Mobile Safari/537.36"}'
            for number in range(VISITS_OF_BODY)
        )
        yield request_of("POST /visits", _key(secrets.hostile_key), "\n".join(rows))


def _polls(secrets: Secrets) -> list[bytes]:
    return [request_of("GET /implementations/active", _key(secrets.hostile_key))]


def _attachments(secrets: Secrets) -> list[bytes]:
    to = json.dumps({"implementation_type": "patch", "redirect_to": "https://example.com/"})
    key = _key(secrets.hostile_key)
    return [request_of(f"POST /jobs/{job_id}/implementations", key, to) for job_id in secrets.approved_jobs]


def _pages(secrets: Secrets) -> Iterator[bytes]:
    for number in range(PAGES):  # different each time, so that none is cached
        first = date(2017, 1, 1) + timedelta(number)
        yield request_of(f"GET /app/?start_date={first}&end_date={WHOLE.end_date}", f"Cookie: traffic={secrets.cookie}")


ATTACKS: Final = (
    Attack("16 unfinished bodies of visits", _unfinished_visits, 16),
    Attack("400 unfinished implementations", _unfinished_implementations, 20, sources=20, pause=20),
    Attack("40 bodies of 10,000 distinct visits", _distinct_visits, 1, sources=40, pause=5),
    Attack("20 polls of 25 MB of rules", _polls, 20, also=JOB_KINDS),
    Attack("200 polls of 25 MB of rules", _polls, 20, sources=10, also=JOB_KINDS),
    Attack("50 attachments to 500,000 links", _attachments, 5, sources=10, also=JOB_KINDS),
    Attack("5 pages of nine years, left", _pages, 5, patience=1),
)


def attacks(setting: Setting) -> Iterator[Figure]:
    """Yield the figures of each attack (see `beset`), and print progress."""
    lake = lake_of_two(setting)
    for number, attack in enumerate(ATTACKS):
        minutes = math.ceil((len(ATTACKS) - number) * (2 * SECONDS + WARM_SECONDS + SETTLING_SECONDS) / 60)
        _PROGRESS.print(f"  Attack {number + 1} of {len(ATTACKS)}: {attack.name}; about {minutes} minutes left")
        yield from beset(setting.scratch, lake, attack)


def beset(scratch: Path, lake: Path, attack: Attack, seconds: float = SECONDS) -> Iterator[Figure]:
    """Yield the neighbour's response times during one attack and alone, its failures, and the server's peak memory."""
    root, file = scratch / "attacked", scratch / "hostile"
    shutil.copytree(lake, root)
    secrets = secrets_of(root)
    if attack.also:
        secrets = _with_jobs(root, secrets)
    file.write_bytes(b"\0".join(attack.requests(secrets)))
    kinds = {**KINDS, **attack.also}
    asked = [_asked(scratch, secrets, name, kind, 2 * seconds + WARM_SECONDS) for name, kind in kinds.items()]
    with server(root) as (port, process), program("benchmarks.asking", port, *asked) as neighbour:
        _measured(neighbour, WARM_SECONDS)
        quiet = _measured(neighbour, seconds)
        sources = (port, 1, attack.sources, file, attack.connections, attack.patience, attack.pause)
        with program("benchmarks.hostile", *sources) as crowd:
            answers = _measured(neighbour, seconds)
            crowd.terminate()
            _PROGRESS.print(
                f"  {attack.name}: {crowd.stdout.readline().strip() if crowd.stdout else ''}", soft_wrap=True
            )
        for name, found in answers.items():
            times = {OURS: found["milliseconds"], QUIET: quiet[name]["milliseconds"]}
            p99 = {who: [percentile_99(values)] for who, values in times.items()}
            yield from beside(f"another's {name}, p99, {attack.name}", "ms", p99)
        failures = [failure for found in answers.values() for failure in found["failures"]]
        _PROGRESS.print(f"  failures: {dict(Counter(failures))}", markup=False)
        yield figure(f"another's unanswered, {attack.name}", "requests", [len(failures)])
        yield figure(f"server memory, beset by {attack.name}", "MB", [resident_mb(process.pid, "VmHWM")])
    shutil.rmtree(root)


def _with_jobs(root: Path, secrets: Secrets) -> Secrets:
    """Ship rules and approve jobs that accept redirects; return the secrets with these jobs and keys of WRITERS."""
    lake = Lake(root)
    with closing(lake.manifest), closing(ControlDatabase(lake)) as control:
        jobs = Jobs(control)
        for number in range(RULES):
            job_id = _approved(jobs, f"old{number}", is_link=False)
            rule = json.dumps({**RULE, "from": f"/old{number}"})
            jobs.attach(HOSTILE, job_id, Draft("patch", RULE_TYPE, rule.ljust(MAX_CONTENT_BYTES)), *_by())
            jobs.set_implementation_status(HOSTILE, job_id, 1, *_by(), status="shipped")
        approved = tuple(_approved(jobs, f"gone{number}", is_link=True) for number in range(ATTACHMENTS))
    return replace(secrets, approved_jobs=approved, writer_keys=tuple(key_of(root, name) for name in WRITERS))


def _approved(jobs: Jobs, code: str, *, is_link: bool) -> str:
    """Create an approved job about the path of a short code, and return its ID."""
    job = blank_job(HOSTILE, f"type of {code}", f"Redirect {code}", utc_now())
    job = replace(job, path=f"/{code}", short_code=code if is_link else None, domain="go.example.com")
    made = jobs.create(job, *_by())
    jobs.act(HOSTILE, made.id, APPROVE_FIX, *_by())
    return made.id


def _by() -> tuple[Actor, datetime]:
    return COMMAND_LINE, utc_now()


def _asked(scratch: Path, secrets: Secrets, name: str, kind: Kind, seconds: float) -> str:
    """Write a file with enough requests for `seconds`, and return the argument for benchmarks.asking that names it."""
    file = scratch / f"asked-{name}"
    many = int(kind.rate * seconds) + 1 if kind.rate else MOST_QUESTIONS
    file.write_bytes(b"\0".join(kind.make(secrets, number) for number in range(many)))
    return f"{name}={kind.rate}={file}"


def _measured(neighbour: subprocess.Popen[str], seconds: float) -> dict[str, Measured]:
    assert neighbour.stdin
    assert neighbour.stdout
    neighbour.stdin.write(f"{seconds}\n")
    neighbour.stdin.flush()
    measured: dict[str, Measured] = json.loads(neighbour.stdout.readline())
    return measured


def _key(key: str) -> str:
    return f"Authorization: Bearer {key}"
