"""The comparison of our names with present lists."""

import json
from importlib import metadata

import pytest

from benchmarks import names
from benchmarks.names import Listed, ai_robots_txt, crawler_user_agents, difference, said, spelled
from tests.support.user_agents import CHROME, GPTBOT


@pytest.mark.parametrize(
    ("pattern", "name", "texts"),
    [
        ("GPTBot", "A", ("GPTBot",)),
        (r"cohere\.ai|Cohere-Command/", "A", ("cohere.ai", "Cohere-Command/")),
        ("Perplexity(?:Bot|-User)", "Perplexity", ("Perplexity",)),
        (r"Foo/\d+", "Foo", ("Foo",)),
        (r"(Foo(?:A|B))", r"\g<1>", ()),
    ],
)
def test_plain_texts_of_a_pattern_are_tried(pattern, name, texts):
    assert spelled(pattern, name) == texts


def test_what_both_call_ai_differs_in_nothing(classifier):
    assert difference(classifier, Listed("GPTBot", "AI", True, (GPTBOT,))) is None


def test_what_only_a_list_calls_ai_is_a_difference(classifier):
    found = difference(classifier, Listed("GoogleOther", "AI_CRAWLER", True, (GPTBOT, "GoogleOther")))
    assert (found.user_agent, said(found.ours)) == ("GoogleOther", "other_bot, other, GoogleOther, high")


def test_a_bot_that_we_take_for_a_person_is_a_difference(classifier):
    found = difference(classifier, Listed("A monitor", "monitoring", False, (CHROME,)))
    assert said(found.ours) == "human"


def test_a_bot_without_ai_may_have_another_name(classifier):
    assert difference(classifier, Listed("Semrush", "seo", False, ("SemrushBot",))) is None


def test_agents_of_ai_robots_txt_are_read(tmp_path):
    (tmp_path / "robots.json").write_text(json.dumps({"GPTBot": {"function": "training"}}))
    assert [*ai_robots_txt(tmp_path / "robots.json")] == [Listed("GPTBot", "training", True, ("GPTBot",))]


def test_each_crawler_of_the_list_is_tried(classifier):
    assert [row for row in crawler_user_agents() if not row.user_agents] == []


def test_a_missing_list_is_skipped_with_a_reason(monkeypatch, capsys):
    def fail(error):
        def read():
            raise error
            yield

        return read

    lists = {"one": fail(metadata.PackageNotFoundError()), "two": fail(OSError("npm cannot fetch it")), "three": list}
    monkeypatch.setattr(names, "LISTS", lists)
    names.main(None)
    assert capsys.readouterr().err.splitlines() == [
        "one is left out: it is not installed; run this with `uv run --group names`.",
        "two is left out: npm cannot fetch it.",
        "three: 0 names, 0 of them AI; 0 differ.",
    ]
