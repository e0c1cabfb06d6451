"""Applies the verdicts on clients that the edge (the network in front of a server) logs. Only Cloudflare's logs contain
them.
"""

from typing import Final

from data.rules.bots import bot_classification
from data.visits import Classification

KINDS: Final = {
    "Academic Research": "other", "Accessibility": "other", "Advertising & Marketing": "other", "Aggregator": "other",
    "AI Assistant": "assistant_fetch", "AI Crawler": "training", "AI Search": "ai_search_index", "Archiver": "other",
    "Feed Fetcher": "feed", "Monitoring & Analytics": "monitor", "Other": "other", "Page Preview": "preview",
    "Search Engine Crawler": "search", "Search Engine Optimization": "seo", "Security": "other",
    "Social Media Marketing": "other", "Webhooks": "other",
}  # fmt: skip
"""The agent_kind of a bot that Cloudflare verified, by its category; `other` for a category that is not listed.

Evidence: https://developers.cloudflare.com/bots/concepts/bot/verified-bots/categories/
"""
_KINDS_OF_ADDRESSES: Final = {"searchEngine": "search", "monitoringService": "monitor"}
"""The agent_kind that a Cloudflare class of addresses implies; other classes imply none.

Evidence: https://developers.cloudflare.com/logs/logpush/logpush-job/datasets/zone/http_requests/#clientipclass
"""
_CERTAIN: Final = "1"
"""The bot score of requests that are certainly automated; a score of 0 means that none was computed.

Evidence: https://developers.cloudflare.com/bots/concepts/bot-score/
"""


def with_verdict(
    by_agent: Classification, category: str | None, address_class: str | None, score: str | None
) -> Classification:
    """Apply the edge's verdict to a classification; it decides only if nothing else names a bot."""
    if not is_unnamed(by_agent):
        return by_agent
    kind = KINDS.get(category, "other") if category else _KINDS_OF_ADDRESSES.get(address_class or "")
    if kind is None and score == _CERTAIN and by_agent.device_type != "bot":
        kind = "other"
    return bot_classification(kind, by_agent.agent, "medium", method="edge") if kind else by_agent


def is_unnamed(classification: Classification) -> bool:
    """Return whether a classification is of a person, or of a bot recognized only by a generic sign."""
    return classification.device_type != "bot" or classification.detection_method == "heuristic"
