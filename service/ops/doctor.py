"""Checks an installation: its settings, its disk, and the lake."""

import sqlite3
import stat
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from shutil import disk_usage
from typing import Final

from data import BadInput, Lake, TrafficError
from data.disk.files import has_room, link_problem, sync
from data.manifest.clock import TOLERANCE
from data.store.country_file import country_database
from data.store.status import LakeStatus, status_of
from data.text import plural
from queries import ENTRIES, ClusterOptions, Scope, Warehouse, open_cluster
from service.access.api_keys import ApiKeys
from service.core.control_database import ControlDatabase
from service.core.settings import SETTINGS, Settings, cluster_options, read_settings
from service.ops.check import Check
from service.ops.header_check import headers_in_words
from service.ops.owner_checks import check_exclusions, check_names_in_use, check_own_agents

PREFIX: Final = "TRAFFIC_"
MISSPELT: Final = 0.75
"""Minimum similarity, from 0 to 1, between a misspelt name and the intended name."""
MIN_FREE_BYTES: Final = 100_000_000
"""Minimum free disk space: below it, imports and spilling queries will soon fail."""
FEW_FREE_BYTES: Final = 2_000_000_000
MAX_SYNC_SECONDS: Final = 0.2
"""Maximum acceptable duration of a sync, since each response to POST /visits waits for one."""
MAX_LIST_AGE: Final = timedelta(days=14)
MAX_ANSWER_SECONDS: Final = 2.0


def examine(environ: Mapping[str, str], now: datetime) -> Iterator[Check]:
    """Check the installation that these environment variables describe; yield each result immediately. `now` is in UTC.

    The checks end early if the settings are invalid, if the lake cannot be opened, or if a check raises an error. Two
    files are written into the staging folder and deleted. Opening the lake may create missing folders, migrate its
    databases, and set the mode of control.sqlite.
    """
    try:
        settings = read_settings(environ)
    except BadInput as error:
        yield Check("broken", "settings", str(error))
        return
    yield check_names(environ)
    yield check_address(settings)
    try:
        lake = Lake(settings.lake, must_write=False)
        with closing(lake.manifest):
            yield check_space(lake.root, disk_usage(lake.root).free)
            yield check_sync(lake)
            unreadable = check_files(lake)
            yield unreadable
            yield check_secrecy(lake)
            status = status_of(lake, now)
            problem = status.manifest_problem
            yield Check("broken" if problem else "ok", "manifest", problem or "it matches the lake's files.")
            yield check_clock(lake, status, now)
            yield check_own_agents(lake)
            yield check_names_in_use(lake)
            yield check_exclusions(lake, now)
            yield check_lists(status, now)
            yield check_countries(lake, settings)
            yield Check("ok", "headers", headers_in_words(lake))
            yield check_keys(lake, settings)
            yield check_published(lake)
            if unreadable.level == "ok":
                yield check_answer(lake, status, now)
                if options := cluster_options(settings):
                    yield check_cluster(lake, options, status)
    except (TrafficError, sqlite3.Error, OSError) as error:
        yield Check("broken", "lake", str(error))


def check_published(lake: Lake) -> Check:
    """Check whether the last publication of each copy succeeded, and whether the copies may contain erased visits."""
    published = lake.manifest.copies.find()
    for copy in published:
        if copy.problem:
            return Check("warning", "copies", f"{copy.organization} was not published: {copy.problem}")
        if copy.due_since:
            text = f"{copy.target} may hold erased visits of {copy.organization}; run `traffic publish`."
            return Check("warning", "copies", text)
    return Check("ok", "copies", "published copies are up to date." if published else "nothing is published.")


def check_names(environ: Mapping[str, str]) -> Check:
    """Check for misspelt variables, which have no effect."""
    known = {setting.variable.removeprefix(PREFIX) for setting in SETTINGS}
    for variable in sorted(environ):
        name = variable.removeprefix(PREFIX)
        if variable != name and name not in known and (meant := get_close_matches(name, known, 1, MISSPELT)):
            remedy = f"is not a setting and has no effect; set {PREFIX}{meant[0]} instead."
            return Check("warning", "settings", f"{variable} {remedy}")
    return Check("ok", "settings", "they are valid.")


def check_address(settings: Settings) -> Check:
    """Check which clients can connect, and which may send X-Forwarded-For."""
    subject, host, proxies = "proxies", settings.host, settings.trusted_proxies
    unlimited = [str(network) for network in proxies if not network.prefixlen]
    if unlimited:
        text = "so any client can choose its address for the rate limit; name only the networks of your proxies."
        return Check("warning", subject, f"TRAFFIC_TRUSTED_PROXIES has {unlimited[0]}, {text}")
    named = ", ".join(map(str, proxies))
    try:
        is_local = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        is_local = False
    if not is_local:
        if proxies:
            return Check("ok", subject, f"other machines can reach {host}; X-Forwarded-For is trusted from {named}.")
        remedy = "put a proxy with TLS in front, and name its network in TRAFFIC_TRUSTED_PROXIES."
        return Check("warning", subject, f"other machines can reach {host} over plain http; {remedy}")
    if not proxies:
        return Check("ok", subject, f"only this machine can reach {host}; for a proxy, set TRAFFIC_TRUSTED_PROXIES.")
    if not any(network.is_loopback for network in proxies):
        text = f"only this machine can reach {host}, but TRAFFIC_TRUSTED_PROXIES is {named}"
        return Check("warning", subject, f"{text}: all clients of a proxy here share one rate limit; add 127.0.0.1.")
    return Check("ok", subject, f"only this machine can reach {host}; X-Forwarded-For is trusted from {named}.")


def check_space(root: Path, free: int) -> Check:
    """Check whether the disk has room; `free` is in bytes."""
    text = f"{free / 1e9:,.1f} GB are free at {root}"
    if free >= FEW_FREE_BYTES:
        return Check("ok", "disk space", f"{text}.")
    remedy = "; delete other files, or old days with `traffic retain`."
    return Check("warning" if free >= MIN_FREE_BYTES else "broken", "disk space", f"{text}{remedy}")


def check_sync(lake: Lake, clock: Callable[[], float] = time.perf_counter) -> Check:
    """Check whether this user can write into the lake, and how long a sync takes."""
    if lake.is_read_only and not has_room(lake.root):
        return Check("broken", "disk writes", f"{lake.root} cannot be written: its disk is full; free some space.")
    if lake.is_read_only:
        remedy = "run this as the service's user, or give the folder to this user with chown -R."
        return Check("broken", "disk writes", f"{lake.root} cannot be written by this user; {remedy}")
    probe, seconds = lake.staging / f"doctor-{uuid.uuid4().hex}", []
    try:
        for number in range(5):
            started_at = clock()
            probe.write_bytes(b"%d" % number)
            sync(probe)
            seconds.append(clock() - started_at)
    except OSError as error:
        return Check("broken", "disk writes", f"{lake.root} cannot be written: {error.strerror}; check its disk.")
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)
    median = sorted(seconds)[len(seconds) // 2]
    text = f"a write reaches the disk after {1_000 * median:,.1f} ms"
    if median > MAX_SYNC_SECONDS:
        return Check("warning", "disk writes", f"{text}, and POST /visits waits for it; use a faster disk.")
    return Check("ok", "disk writes", f"{text}.")


def check_files(lake: Lake) -> Check:
    """Check that this user can open every live file, and no symbolic link leads there. `traffic verify` reads them."""
    paths = [lake.root / path for path in lake.manifest.files.live_of_any_kind()]
    if link := next(filter(None, (link_problem(lake.root, path) for path in paths)), ""):
        return Check("broken", "files", f"{link}.")
    problems = []
    for path in paths:
        try:
            path.open("rb").close()
        except OSError as error:
            problems.append(f"{path} cannot be read ({error.strerror or error})")
    if not problems:
        return Check("ok", "files", f"{plural(len(paths), 'file')} can be read.")
    others = f", and {plural(len(problems) - 1, 'other file')} cannot either" if len(problems) > 1 else ""
    remedy = (
        "make this user the owner of the lake's files with chown -R, or run `traffic verify` and restore the files "
        "that it lists from a backup."
    )
    return Check("broken", "files", f"{problems[0]}{others}; {remedy}")


def check_secrecy(lake: Lake) -> Check:
    """Check whether other users of this machine can read the databases with secrets."""
    paths = lake.root / "control.sqlite", lake.root / "salts.sqlite"  # hashes of keys and sessions; salts of visitors
    open_to_all = [path for path in paths if path.exists() and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)]
    if open_to_all:
        names = " ".join(map(str, open_to_all))
        return Check("warning", "permissions", f"other users may read the lake's secrets; run chmod 600 {names}.")
    return Check("ok", "permissions", "only their owner can read the databases with secrets.")


def check_clock(lake: Lake, status: LakeStatus, now: datetime) -> Check:
    """Check the clock against the times recorded in the lake and against the clock of its disk."""
    remedy = "set it with NTP; see timedatectl."
    if status.clock_was_at:
        text = f"it is {now:%Y-%m-%d %H:%M} UTC, but the lake recorded {status.clock_was_at:%Y-%m-%d %H:%M}"
        return Check("warning", "clock", f"{text}: it is behind, or was ahead; {remedy}")
    probe = lake.staging / f"doctor-{uuid.uuid4().hex}"
    probe.touch()
    difference = abs(now.timestamp() - probe.stat().st_mtime)  # set by the disk
    probe.unlink()
    if difference > TOLERANCE.total_seconds():
        return Check("warning", "clock", f"it differs from the clock of the disk by {difference:,.0f} s; {remedy}")
    return Check("ok", "clock", f"it is {now:%Y-%m-%d %H:%M} UTC, no earlier than any time recorded in the lake.")


def check_lists(status: LakeStatus, now: datetime) -> Check:
    """Check the age of the newest IP list. The lists distinguish agents from impostors."""
    fetched_at = status.agents_refreshed_at
    if fetched_at is None:
        return Check("warning", "IP lists", "none installed, so no agent is verified; run `traffic agents refresh`.")
    text = f"newest list: {fetched_at:%Y-%m-%d}"
    if now - fetched_at > MAX_LIST_AGE:
        return Check("warning", "IP lists", f"{text}; run `traffic agents refresh`, every week from cron.")
    return Check("ok", "IP lists", f"{text}.")


def check_countries(lake: Lake, settings: Settings) -> Check:
    """Check whether the country database is valid, if there is one."""
    try:
        database = country_database(lake, settings.geoip)
    except BadInput as error:
        return Check("broken", "countries", f"{error}; run `traffic countries`, or set another in TRAFFIC_GEOIP.")
    if database is None:
        return Check("ok", "countries", "only countries in logs are known; `traffic countries` sets up a database.")
    return Check("ok", "countries", f"they are looked up in {database.description}.")


def check_keys(lake: Lake, settings: Settings) -> Check:
    """Check whether a key or an identity provider gives access to the API."""
    with closing(ControlDatabase(lake)) as control:
        active = [key for key in ApiKeys(control).all_keys() if key.state == "active"]
    if active:
        return Check("ok", "API keys", f"{plural(len(active), 'key')} can be used.")
    if settings.jwks:
        return Check("ok", "API keys", "none; the identity provider's tokens are accepted.")
    remedy = "run `traffic keys create --org NAME --name dashboard`."
    return Check("warning", "API keys", f"no key is active, so no program can use the API; {remedy}")


def check_answer(lake: Lake, status: LakeStatus, now: datetime) -> Check:
    """Measure a first answer: the dashboard of the organization with the most visits, for its last 30 days."""
    if not status.total.visits:
        return Check("warning", "first answer", "no visits to count; run `traffic import LOG --org NAME`.")
    organization = max(status.organizations, key=lambda name: status.organizations[name].visits)
    started_at = time.perf_counter()
    with closing(Warehouse(lake)) as warehouse:
        last_day = status.organizations[organization].last_day or now.date()
        snapshot = warehouse.snapshot(Scope(organization, last_day - timedelta(days=29), last_day))
        warehouse.answer(ENTRIES["dashboard"], snapshot)
    seconds = time.perf_counter() - started_at
    text = f"the dashboard of {organization} took {seconds:,.1f} s, including the start of the engine"
    if seconds > MAX_ANSWER_SECONDS:
        return Check("warning", "first answer", f"{text}; run `traffic compact`, which precomputes past days.")
    return Check("ok", "first answer", f"{text}.")


def check_cluster(lake: Lake, options: ClusterOptions, status: LakeStatus) -> Check:
    """Check whether the cluster's executors can read the largest organization's newest day; measure an answer."""
    subject = "cluster"
    if not status.total.visits:
        return Check("warning", subject, "no visits to count; run `traffic import LOG --org NAME`.")
    organization = max(status.organizations, key=lambda name: status.organizations[name].visits)
    day = status.organizations[organization].last_day or date.min
    try:
        with closing(open_cluster(lake, Warehouse(lake), replace(options, from_visits=0))) as cluster:
            scope = Scope(organization, day, day)
            cluster.count_everywhere(scope)
            started_at = time.perf_counter()
            cluster.answer(ENTRIES["traffic-overview"], cluster.snapshot(scope))
    except TrafficError as error:
        return Check("broken", subject, str(error))
    took = f"an answer took {time.perf_counter() - started_at:,.1f} s."
    return Check("ok", subject, f"its executors read the visits of {organization} on {day}; {took}")
