"""The labelled corpus: requests with a known classification, each with its public source."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from data.rules.classifier import Request

FOLDER = Path(__file__).parent.parent / "data" / "rules" / "corpus"
NAMES = ("people", "bots", "ai_agents", "referrals", "traps")
LABELS = ("bot_category", "agent_kind", "ai_source", "device_type")


@cache
def labelled(name: str) -> list[dict[str, Any]]:
    """Return the rows of one file: the parts of a request, some of LABELS, and the source."""
    with (FOLDER / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def request_of(row: dict[str, Any]) -> Request:
    query = (row.get("url") or "").partition("#")[0].partition("?")[2]
    return Request.from_log(row.get("user_agent") or "", "GET", row.get("referrer") or "", query)
