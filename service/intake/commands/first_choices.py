"""Choices to make before an organization's first visit, some of them final. On a terminal, the user is asked;
otherwise the choices are reported.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from data import BadInput, Lake
from data.rules.exclusions import Exclusion
from data.text import plural
from service.core.commands.confirmation import answer_to
from service.core.commands.printing import inform

if TYPE_CHECKING:
    from data.ingest.summary import Summary
    from data.store.country_file import Download

_NONE: Final = "none"
_SEARCHED_BYTES: Final = 16 << 20
"""Number of bytes at the beginning of each log that are searched for the user's own address."""


def ask_first_choices(lake: Lake, organization: str, logs: Sequence[Path], files: str, database: Path | None) -> None:
    """Ask for the time zone and the user's own addresses; also ask about files and countries, unless flags or the lake
    settle them already.

    Nothing changes until all questions are answered. Raises BadInput for a log that cannot be read.
    """
    from data.local_time import check_zone
    from data.logs.source import beginning
    from data.store.country_file import set_up

    for log in logs:  # report an unreadable log before asking
        beginning(log, 1)
    own = own_address(os.environ, logs)
    inform(f"{organization} is new. Make some choices before its first visit; Enter selects the default in brackets.")
    zone = answer_to(
        "Time zone in which its days begin (cannot be changed later)", guessed_zone(os.environ), check_zone
    )
    question = "Images, stylesheets, scripts and fonts: left out of answers (aside), or counted"
    aside = None if files else answer_to(question, "aside", _checked_aside)
    if own:
        inform(f"You are connected from {own}, which is in these logs.")
    question = "Your own addresses or networks, to be left out of answers, separated by spaces"
    rules = answer_to(question, own or _NONE, _checked_addresses)
    download = None
    if not _has_countries(lake, database):
        question = "Path of a downloaded country database; `traffic countries` lists free ones"
        download = answer_to(question, _NONE, _checked_download)
    with lake.import_lock():  # wait for a running import, which has already read the zone
        lake.manifest.organizations.set_zone(organization, zone)
    if aside is not None and aside != lake.manifest.exclusions.are_files_aside(organization):
        lake.manifest.exclusions.switch_files(organization, aside=aside)
    for rule in rules:
        lake.manifest.exclusions.add(organization, rule)
    if download:
        set_up(lake, download)


def report_first_import(
    lake: Lake, organization: str, summaries: Iterable["Summary"], database: Path | None, *, is_asked: bool
) -> None:
    """Report what the logs and the lake lack and, unless the user was asked, which choices apply and how to change
    them.
    """
    read = [summary for summary in summaries if summary.visits]
    if not read:
        return
    if not any(summary.with_fetch_metadata for summary in read):
        inform(
            "No `Sec-Fetch-*` headers are logged, so files are recognized only by their paths. A line in the server's"
        )
        inform("  configuration adds them: data/logs/README.md#recommended-log-formats")
    if not any(lake.ip_lists.glob("*.json")):
        inform(
            "The lake has no address lists. With the lists from `traffic agents refresh`, later imports verify agents"
        )
        inform("  and distinguish more machines from people.")
    if is_asked:
        return
    zone, exclusions = lake.manifest.organizations.zone(organization), lake.manifest.exclusions
    files = "set aside" if exclusions.are_files_aside(organization) else "counted"
    rules = len(exclusions.rules(organization))
    own = f"set aside by {plural(rules, 'rule')}" if rules else "counted"
    countries = "looked up" if _has_countries(lake, database) else "known only where the log has them"
    inform(f"{organization} is new: days follow {zone}, files are {files}, own visits {own}, countries {countries}.")
    inform("  Its time zone cannot change. Addresses excluded and countries set up later do not apply to these visits.")
    inform("  To start over, use traffic zone set, traffic exclude add and traffic countries for a new name, and")
    inform(f"  import under that name; `traffic erase --org {organization} --all` deletes these visits.")


def _has_countries(lake: Lake, database: Path | None) -> bool:
    return database is not None or lake.country_database.exists()


def guessed_zone(environ: Mapping[str, str], root: Path = Path("/")) -> str:
    """Return this machine's time zone, from TZ, /etc/timezone or the symbolic link /etc/localtime; UTC if none of them
    names a known zone.
    """
    from data.local_time import DEFAULT_ZONE, zone_names

    named, clock = [environ.get("TZ", "").removeprefix(":")], root / "etc/localtime"
    with suppress(OSError, UnicodeDecodeError):
        named.append((root / "etc/timezone").read_text("utf-8").strip())
    if clock.is_symlink():
        named.append(str(clock.readlink()))
    known = {*zone_names()}
    zone = next((zone for name in named if (zone := name.rpartition("zoneinfo/")[2]) in known), DEFAULT_ZONE)
    return DEFAULT_ZONE if zone == "Etc/UTC" else zone


def own_address(environ: Mapping[str, str], logs: Sequence[Path]) -> str:
    """Return the client address of this SSH session if it is in one of the logs; otherwise "". Raises BadInput if a log
    cannot be read.
    """
    from data.logs.source import beginning
    from data.rules.ip_lists import parse_address

    address = parse_address(environ.get("SSH_CONNECTION", "").partition(" ")[0])
    if address is None:
        return ""
    found = re.compile(rb"(?<![0-9a-f.])" + re.escape(str(address).encode()) + rb"(?![0-9a-f]|\.[0-9])")
    return str(address) if any(found.search(beginning(log, _SEARCHED_BYTES)) for log in logs) else ""


def _checked_aside(text: str) -> bool:
    if text not in {"aside", "counted"}:
        raise BadInput(f"{text!r} is not a choice; write aside or counted.")
    return text == "aside"


def _checked_addresses(text: str) -> list[Exclusion]:
    from data.rules.own_rules import checked_exclusion

    return [] if text == _NONE else [checked_exclusion("address", one) for one in re.split(r"[,\s]+", text)]


def _checked_download(text: str) -> "Download | None":
    from data.store.country_file import read_download

    return None if text == _NONE else read_download(Path(text).expanduser())
