"""The labelled corpus: real user agents, referrers and campaigns, and what they must come out as."""

import pytest

from data.visits import BOT_CATEGORIES, CATEGORY_OF_KIND, DEVICE_TYPES
from tests.support.corpus import LABELS, NAMES, labelled, request_of

LEAST = {
    ("people", "bot_category"): 1.0,
    ("people", "device_type"): 0.98,
    ("bots", "bot_category"): 0.99,
    ("ai_agents", "bot_category"): 0.99,
    ("ai_agents", "ai_source"): 0.99,
    ("referrals", "bot_category"): 0.99,
    ("referrals", "ai_source"): 0.99,
    ("traps", "bot_category"): 0.99,
}


@pytest.mark.parametrize(("name", "label"), LEAST)
def test_the_corpus_comes_out_as_it_is_labelled(classifier, name, label):
    rows = [row for row in labelled(name) if label in row]
    told = [(row[label], getattr(classifier.classify(request_of(row)), label), row) for row in rows]
    wrong = [(expected, found, row) for expected, found, row in told if found != expected]
    share = 1 - len(wrong) / len(rows)
    assert share >= LEAST[name, label], f"{share:.4f}, such as {wrong[:5]}"


@pytest.mark.parametrize("name", NAMES)
def test_every_row_of_the_corpus_has_labels_and_a_source(name):
    rows = labelled(name)
    assert len(rows) >= 200
    for row in rows:
        assert row.keys() <= {"user_agent", "referrer", "url", "source", *LABELS}
        assert row["bot_category"] in BOT_CATEGORIES
        assert CATEGORY_OF_KIND.get(row.get("agent_kind"), row["bot_category"]) == row["bot_category"]
        assert row.get("device_type", "bot") in DEVICE_TYPES
        assert row["source"].startswith("https://")


def test_no_request_stands_twice_in_the_corpus():
    requests = [
        (name, row.get("user_agent"), row.get("referrer"), row.get("url")) for name in NAMES for row in labelled(name)
    ]
    assert len(set(requests)) == len(requests)
