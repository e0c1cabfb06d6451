"""Measures the quality and speed of classification: `uv run python -m benchmarks.classification`.

Quality is measured over the tests' labelled corpus and over public logs, and speed over the user agents of a generated
log. Both are compared with two packages for the same purpose, which answer fewer questions: neither recognizes
referrals or kinds of AI agents, and ua-parser recognizes only spiders. Each is judged only on the questions that it
answers.
"""

import json
import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final

import crawleruseragents
import typer
from rich.console import Console
from rich.table import Table
from ua_parser import Domain, parse_device
from ua_parser.loaders import load_lazy_builtins
from ua_parser.regex import Resolver

from benchmarks.figures import RUNS, Figure
from benchmarks.logged import Share, logged, share_by_line
from benchmarks.made import DAYS, LAST_DAY
from data.rules.bots import BotRules
from data.rules.classifier import Classifier, Request
from data.visits import AI_CATEGORIES, BOT_CATEGORIES
from service.demo.sample import Sample
from tests.support.corpus import NAMES, labelled, request_of

SAMPLED: Final = 100_000
AI_AGENTS: Final = frozenset(AI_CATEGORIES) - {"ai_referral"}
_AI_CRAWLERS: Final = [
    re.compile(row["pattern"]) for row in crawleruseragents.CRAWLER_USER_AGENTS_DATA if "ai-crawler" in row["tags"]
]


@dataclass(frozen=True)
class Quality:
    """The quality of the answers to a yes-or-no question: the share of right answers among the requests answered with
    yes (precision), and among the requests labelled yes (recall).
    """

    question: str
    who: str
    labelled: int
    precision: float
    recall: float


def quality(question: str, who: str, labels: Sequence[bool], predictions: Sequence[bool]) -> Quality:
    """Return the precision and recall of the predictions, compared with the labels."""
    right = sum(label and one for label, one in zip(labels, predictions, strict=True))
    return Quality(question, who, sum(labels), right / max(1, sum(predictions)), right / max(1, sum(labels)))


def qualities(rows: list[dict[str, Any]]) -> list[Quality]:
    """Return our quality for each category, then ours and the peers' for the questions that peers also answer."""
    classifier = Classifier()
    predicted = [classifier.classify(request_of(row)).bot_category for row in rows]
    labels = [row["bot_category"] for row in rows]
    agents = [row.get("user_agent") or "" for row in rows]
    automata = [label not in ("human", "ai_referral") for label in labels]
    ai_agents = [label in AI_AGENTS for label in labels]
    spiders = [(device := parse_device(agent)) is not None and device.family == "Spider" for agent in agents]
    crawlers = [bool(crawleruseragents.is_crawler(agent)) for agent in agents]
    ai_crawlers = [any(pattern.search(agent) for pattern in _AI_CRAWLERS) for agent in agents]
    return [
        *(
            quality(category, "ours", [label == category for label in labels], [one == category for one in predicted])
            for category in BOT_CATEGORIES
        ),
        quality("automaton?", "ours", automata, [one not in ("human", "ai_referral") for one in predicted]),
        quality("automaton?", "crawler-user-agents", automata, crawlers),
        quality("automaton?", "ua-parser", automata, spiders),
        quality("AI agent?", "ours", ai_agents, [one in AI_AGENTS for one in predicted]),
        quality("AI agent?", "crawler-user-agents", ai_agents, ai_crawlers),
    ]


def logged_shares() -> dict[tuple[str, str], Share]:
    """Return the precision and recall for bots over the lines of public logs of 2024-26, by half of the repositories
    and by classifier: our rules, or a public list.
    """
    classifier, shares = Classifier(), {}
    everything = list(logged())
    for half in ("report", "learn"):
        rows = [row for row in everything if row.half == half]
        ours = [classifier.classify(Request.from_log(row.user_agent)).device_type == "bot" for row in rows]
        crawlers = [bool(crawleruseragents.is_crawler(row.user_agent)) or not row.user_agent for row in rows]
        shares[half, "ours"] = share_by_line(rows, ours)
        shares[half, "crawler-user-agents"] = share_by_line(rows, crawlers)
    return shares


def speeds(user_agents: list[str]) -> list[Figure]:
    """Measure the distinct user agents classified per second of CPU time on one core, alternating between us and the
    peers.
    """

    def ours() -> Callable[[str], object]:
        classifier = Classifier()
        return lambda user_agent: classifier.classify(Request.from_log(user_agent))

    def automata() -> Callable[[str], object]:
        rules = BotRules()
        return lambda user_agent: next(rules.matches(user_agent), None)

    def ua_parser() -> Callable[[str], object]:
        resolve = Resolver(load_lazy_builtins())
        return lambda user_agent: resolve(user_agent, Domain.USER_AGENT | Domain.OS)

    ways: dict[str, Callable[[], Callable[[str], object]]] = {
        "ours, with OS and browser": ours,
        "ours, automata only": automata,
        "ua-parser": ua_parser,
        "crawler-user-agents": lambda: crawleruseragents.is_crawler,
    }
    runs: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(RUNS):
        for name, make in ways.items():
            classify = make()
            classify(user_agents[0])  # the first call compiles patterns
            begun = time.process_time()
            for user_agent in user_agents:
                classify(user_agent)
            runs[name].append(len(user_agents) / (time.process_time() - begun))
    return [
        Figure(name, "user agents/s", statistics.median(values), min(values), max(values))
        for name, values in runs.items()
    ]


def main(
    output: Annotated[Path | None, typer.Option(help="write the figures as JSON to this file too")] = None,
) -> None:
    """Measure quality over the labelled corpus and over public logs, and speed; print three tables.

    Example: uv run python -m benchmarks.classification --output classification.json
    """
    rows = list(chain.from_iterable(map(labelled, NAMES)))
    results = qualities(rows)
    shares = logged_shares()
    lines = Sample(SAMPLED, LAST_DAY, DAYS).lines()  # nine of ten distinct user agents are people's, as in a log
    fast = speeds(list(dict.fromkeys(line.rsplit('"', 2)[1] for line in lines)))
    _print(results, fast, len(rows))
    _print_shares(shares)
    if output:
        figures = {
            "quality": [asdict(one) for one in results],
            "logs": [{"half": half, "who": who, **share._asdict()} for (half, who), share in shares.items()],
            "speed": [asdict(one) for one in fast],
        }
        output.write_text(json.dumps(figures, indent=2), "utf-8")


def _print(results: list[Quality], fast: list[Figure], rows: int) -> None:
    console = Console(width=120)
    table = Table(title=f"{rows:,} labelled requests", title_justify="left", box=None)
    for column in ("question", "who", "labelled", "precision", "recall"):
        table.add_column(column, justify="left" if column in ("question", "who") else "right")
    for one in results:
        table.add_row(one.question, one.who, f"{one.labelled:,}", f"{one.precision:.4f}", f"{one.recall:.4f}")
    console.print(table)
    table = Table(
        "who", "unit", "median", "min", "max", title="Distinct user agents, one core", title_justify="left", box=None
    )
    for figure in fast:
        table.add_row(
            figure.case, figure.unit, *(f"{value:,.0f}" for value in (figure.median, figure.least, figure.most))
        )
    console.print(table)


def _print_shares(shares: dict[tuple[str, str], Share]) -> None:
    title = "bots in public logs of 2024-26, by line (learn: the half that the rules were learned from)"
    table = Table(title=title, title_justify="left", box=None)
    for column in ("half", "who", "repositories", "lines", "of bots", "precision", "recall"):
        table.add_column(column, justify="left" if column in ("half", "who") else "right")
    for (half, who), share in shares.items():
        counts = (share.repositories, share.lines, share.labelled)
        table.add_row(half, who, *(f"{count:,}" for count in counts), f"{share.precision:.4f}", f"{share.recall:.4f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    typer.run(main)
