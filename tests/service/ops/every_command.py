"""Every `traffic` command: how it behaves on a read-only lake, and on a lake with an outdated manifest.

A command without a row here makes tests/service/ops/test_every_command.py fail.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from data.rules.exclusions import Exclusion
from data.store.lake import Lake
from service.access.api_keys import ApiKeys
from service.jobs.store import Jobs
from tests.faults.lakes import log
from tests.service.jobs.findings import broken
from tests.support.addresses import country_database
from tests.support.control import open_store
from tests.support.visits import links

REFUSED: Final = "refused"
"""In place of an exit code: the command reports why it cannot work, and changes nothing."""
GOES_ON: Final = "goes on"
"""In place of an exit code: the command runs until it is stopped, so another test covers it."""


class Row(NamedTuple):
    """The arguments for a command (names from places() are in braces), and how it ends."""

    words: str
    read_only: int | str
    """How it ends on a read-only lake."""
    outdated: int | str
    """How it ends with a manifest that is older than the files."""


EVERY: Final = {
    "serve": Row("--port 0", REFUSED, GOES_ON),
    "sign-in": Row("--org acme", REFUSED, 0),
    "import": Row("{log} --org acme --domain go.example", REFUSED, REFUSED),
    "follow": Row("{log} --org acme --domain go.example", REFUSED, REFUSED),
    "query": Row("top-links {days}", 0, 0),
    "views": Row("{days}", 0, 0),
    "report": Row("{days} --format text", 0, 0),
    "mail": Row("--org acme --to ops@acme.example", 0, 0),
    "mcp": Row("--org acme", 0, 0),
    "classify": Row("--user-agent GPTBot", 0, 0),
    "countries": Row("{countries}", REFUSED, 0),
    "reclassify": Row("", REFUSED, REFUSED),
    "compact": Row("", REFUSED, REFUSED),
    "erase": Row("--org acme --short-code sale --yes", REFUSED, REFUSED),
    "retain": Row("--days 1 --yes --trust-clock", REFUSED, REFUSED),
    "verify": Row("", 0, 1),
    "rebuild": Row("--yes", 2, 0),
    "publish": Row("{copy}", REFUSED, REFUSED),
    "backup": Row("{backup}", 0, REFUSED),
    "status": Row("--format json", 0, 0),
    "doctor": Row("", 1, 1),
    "agents list": Row("", 0, 0),
    "agents refresh": Row("--from {lists}", REFUSED, 0),
    "behaviour on": Row("--org acme", REFUSED, REFUSED),
    "behaviour off": Row("--org acme", REFUSED, REFUSED),
    "behaviour rejudge": Row("", REFUSED, REFUSED),
    "behaviour explain": Row("{days}", 0, 0),
    "files": Row("aside --org acme --yes", REFUSED, REFUSED),
    "exclude add": Row("--path /admin --org acme", REFUSED, REFUSED),
    "exclude list": Row("--org acme", 0, 0),
    "exclude remove": Row("--path /secret --org acme", REFUSED, REFUSED),
    "hooks list": Row("--org acme", 0, 0),
    "jobs list": Row("--org acme", 0, 0),
    "jobs show": Row("{job}", 0, 0),
    "jobs detect": Row("--org acme", REFUSED, 0),
    "jobs replay": Row("{job}", 0, 0),
    "jobs placebo": Row("--org acme", 0, 0),
    "keys create": Row("--org acme --name another", REFUSED, 0),
    "keys list": Row("", 0, 0),
    "keys revoke": Row("{key}", REFUSED, 0),
    "links import": Row("{links} --org acme", REFUSED, REFUSED),
    "links add": Row("more https://shop.example --org acme", REFUSED, REFUSED),
    "links remove": Row("sale --org acme --yes", REFUSED, REFUSED),
    "links list": Row("--org acme", 0, 0),
    "links export": Row("--org acme --format csv", 0, 0),
    "robots plan": Row("--org acme", 0, 0),
    "robots check": Row("{robots} --org acme", 0, 0),
    "zone set": Row("Europe/Berlin --org berlin", REFUSED, REFUSED),
    "zone show": Row("--org acme", 0, 0),
}
"""The rows, by command."""
PREVIEWS: Final = {
    "behaviour rejudge --dry-run": Row("", 0, 0),
    "erase --dry-run": Row("--org acme --short-code sale", 0, REFUSED),
    "jobs detect --dry-run": Row("--org acme", 0, 0),
    "jobs detect --explain": Row("--org acme", 0, 0),
    "links import --dry-run": Row("{links} --org acme", 0, 0),
    "reclassify --dry-run": Row("", 0, REFUSED),
    "retain --dry-run": Row("--days 1", 0, 0),
}
"""The rows for commands with a flag that only previews their effects."""
TRIED: Final = {**EVERY, **PREVIEWS}
WITHOUT_LAKE: Final = {"agents release", "demo", "formats explain"}
"""The commands that do not open an existing lake."""


def places(lake: Lake, folder: Path) -> dict[str, str]:
    """Put the files that commands use into a lake and next to it; return the values of the names in braces."""
    with open_store(ApiKeys, lake) as keys, open_store(Jobs, lake) as jobs:
        key = keys.create_key("acme", "test")
        jobs.upsert(broken(), datetime.now(UTC))
        (job,) = jobs.of("acme")
    links(lake, "acme", [{"short_code": "sale", "target_url": "https://shop.example"}])
    lake.manifest.exclusions.add("acme", Exclusion("path", "/secret"))
    (folder / "lists").mkdir()
    for name, text in {
        "new.log": log("new", 3),
        "links.csv": "short_code,target_url\na,https://shop.example\n",
        "robots.txt": "User-agent: *\nDisallow:\n",
        "lists/openai-gptbot.json": '{"prefixes": [{"ipv4Prefix": "20.42.10.0/24"}]}',
    }.items():
        (folder / name).write_text(text)
    country_database(folder / "countries.mmdb", {"20.42.10.0/24": {"country": {"iso_code": "US"}}})
    return {
        "log": f"{folder}/new.log", "links": f"{folder}/links.csv", "robots": f"{folder}/robots.txt",
        "lists": f"{folder}/lists", "countries": f"{folder}/countries.mmdb", "copy": f"{folder}/copy",
        "backup": f"{folder}/backup", "job": job.id, "key": key[:12],
        "days": "--org acme --start-date 2025-12-01 --end-date 2026-06-01",
    }  # fmt: skip


def words(name: str, at: dict[str, str]) -> list[str]:
    """Return the words of a command line, with the names in braces replaced by their values."""
    return [*name.split(), *TRIED[name].words.format(**at).split()]
