"""Link tags: which strings are valid, how a cell lists tags, and the campaign in a target URL."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data import BadInput
from data.links.tags import MAX_TAGS, campaign_of, check_tags, is_tag, joined_tags, split_tags
from tests.support.tables import examples_at_once

HOSTILE = ["<script>alert(1)</script>", '"', "=1+1", "a, b", "ünï", "🚀" * 64, "a|b;c", "'; DROP TABLE links; --"]


def test_tags_are_sorted_and_stripped_of_spaces():
    assert check_tags([" b", "a ", "B"], "the link") == ("B", "a", "b")


@pytest.mark.parametrize("tag", [*HOSTILE, "x" * 64])
def test_a_tag_may_be_hostile_or_64_characters_long(tag):
    assert check_tags([tag], "the link") == (tag,)


@examples_at_once("tag", "shown")
def test_an_invalid_tag_is_rejected_with_its_place(tag, shown):
    with pytest.raises(BadInput, match=re.escape(f"line 3: {shown} is not a valid tag; use 1 to 64 characters")):
        check_tags(["fine", tag], "line 3")


def test_a_tag_that_is_given_twice_is_rejected():
    with pytest.raises(BadInput, match=r"the link: the tag 'a' is given twice; give it once\."):
        check_tags(["a", "b", " a"], "the link")


def test_more_than_twenty_tags_are_rejected():
    tags = [f"t{number:02}" for number in range(MAX_TAGS + 1)]
    assert check_tags(tags[:-1], "the link") == tuple(tags[:-1])
    with pytest.raises(BadInput, match=r"the link: there are too many tags; a link may have at most 20\."):
        check_tags(tags, "the link")


TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=64).filter(is_tag)


@given(st.lists(TEXTS | st.sampled_from(HOSTILE), max_size=20, unique=True))
def test_tags_joined_into_a_cell_are_split_unchanged(tags):
    assert split_tags(joined_tags(tags)) == tags


@examples_at_once("cell", "tags")
def test_a_cell_with_tags_may_have_spaces_and_quotes(cell, tags):
    assert tuple(split_tags(cell)) == tags


@examples_at_once("target_url", "campaign")
def test_the_campaign_in_a_target_url_is_read(target_url, campaign):
    assert campaign_of(target_url) == campaign
