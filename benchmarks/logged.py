"""User agents from public access logs of 2024-26, with the number of lines and the kind of sender for each.

user_agents.tsv.gz has one row per repository, year and user agent, without addresses, paths or referrers. Lines that
begin with # name the repositories, their commits and their half: the rules were learned from one half, and their
quality is reported for the other. The rules were frozen after 11 repositories had been read, but before the other 7,
which have other owners; one rule (Coc Coc's `Chrome/48.2`) was learned from the latter. One log makes up two thirds of
the lines that rules were learned from. User agents that contain addresses were dropped.

A row is labelled by a grammar of browsers' user agents, by the package isbot or, where neither decides, by hand, from
the requests of its clients. The author of the rules labelled the rows, so read the figures as an upper bound. Genuine
browser user agents that scanners borrow count as people's, since only the path gives a scanner away. Until there were
rules for them, 43 rows (976 lines) with versions that no browser ever had (releases.toml), and 81 rows (1,108 lines)
with other user agents that no browser sends (forged.toml, and Firefox's engine), were labelled people's: the figures do
not measure these rules. 19,815 lines of media players are set aside. Before the rules for these 124 rows, recall was
0.9845 (report, then with one more repository) and 0.9708 (learn).
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

FILE: Final = Path(__file__).parent / "user_agents.tsv.gz"


class Logged(NamedTuple):
    """A user agent, and the number of lines with it in a repository's logs of one year."""

    repository: str
    half: str  # learn, report
    year: int
    lines: int
    label: str  # automaton, person, aside (media players: neither answer is wrong)
    user_agent: str


class Share(NamedTuple):
    """Recall (recognized lines among the lines of bots) and precision (lines of bots among the recognized lines)."""

    repositories: int
    lines: int
    labelled: int  # lines of bots
    precision: float
    recall: float


def logged() -> Iterator[Logged]:
    """Yield the rows of the file."""
    repositories: dict[str, tuple[str, str]] = {}
    with gzip.open(FILE, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            first, *rest = line.rstrip("\n").split("\t")
            if first == "#":
                number, name, _commit, half = rest
                repositories[number] = name, half
            else:
                year, lines, label, user_agent = rest
                yield Logged(*repositories[first], int(year), int(lines), label, user_agent)


def share_by_line(rows: list[Logged], is_bot: list[bool]) -> Share:
    """Return precision and recall over the lines of `rows`, without the rows set aside."""
    predicted = [(row, bot) for row, bot in zip(rows, is_bot, strict=True) if row.label != "aside"]
    labelled = sum(row.lines for row, _ in predicted if row.label == "automaton")
    positives = sum(row.lines for row, bot in predicted if bot)
    right = sum(row.lines for row, bot in predicted if bot and row.label == "automaton")
    repositories = len({row.repository for row in rows})
    return Share(
        repositories,
        sum(row.lines for row, _ in predicted),
        labelled,
        right / max(1, positives),
        right / max(1, labelled),
    )
