"""Problems: the messages for callers of the API, and for pages and commands."""

import pytest

import service.app.operations  # noqa: F401  # which imports the problems of all rooms
from data import TrafficError
from service.core.http.errors import NotFound, Problem


def subclasses(kind):
    """Return a class and all of its subclasses."""
    return {kind}.union(*map(subclasses, kind.__subclasses__()))


REASONED = sorted(subclasses(Problem) & subclasses(TrafficError), key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", REASONED)
def test_pages_and_commands_print_only_the_reason(kind):
    assert str(kind("the reason.")) == "the reason."


@pytest.mark.parametrize("kind", REASONED)
def test_callers_get_the_error_with_advice(kind):
    assert {*kind("the reason.").body} == {"error", "message"}
    assert all(kind("the reason.").body.values())


def test_other_problems_print_error_and_advice():
    assert str(NotFound()) == "Not found. Check the address."


def test_jobs_and_hooks_have_problems_with_a_reason():
    assert {kind.__name__ for kind in REASONED} >= {
        "JobNotFound",
        "JobConflict",
        "TooLarge",
        "NoSuchHook",
        "HookConflict",
    }
