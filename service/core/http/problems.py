"""Converts errors of the lower floors to Problems, in one place for API, pages, tools and commands."""

from typing import Final

from queries import ClusterTimeout, InvalidParameter, QueryTimeout
from service.core.http.errors import ParameterRefused, Problem, TooSlow

PROBLEMS: Final = (Problem, InvalidParameter, QueryTimeout)
"""Exceptions of endpoints and pages that are shown to clients; the last two come from the floor below."""


def problem_of(error: Problem | InvalidParameter | QueryTimeout) -> Problem:
    """The problem to send for one of PROBLEMS."""
    match error:
        case InvalidParameter():
            return ParameterRefused(error.problem, error.remedy)
        case ClusterTimeout():
            reason = "The cluster took too long and was stopped."
            return TooSlow(message=f"{reason} Its results so far are cached for five minutes: retry.")
        case QueryTimeout():
            return TooSlow()
    return error
