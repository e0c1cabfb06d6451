"""Converts errors of the lower floors to Problems, in one place for the API, pages, tools and commands."""

import sqlite3
from typing import Final

from data.errors import Conflict
from queries import ClusterTimeout, EngineLost, FilesGone, InvalidParameter, OutOfMemory, QueryTimeout
from service.core.http.errors import InternalError, Interrupted, ParameterRefused, Problem, TooMuchMemory, TooSlow

TEMPORARY: Final = (QueryTimeout, OutOfMemory, FilesGone, EngineLost, Conflict, sqlite3.OperationalError)
"""Exceptions from the lower floors after which a retry may succeed. They are also logged."""
PROBLEMS: Final = (Problem, InvalidParameter, *TEMPORARY)
"""Exceptions from endpoints and pages that are shown to clients."""


def problem_of(error: Exception) -> Problem:
    """Return the problem to send for one of PROBLEMS."""
    problem: Problem = InternalError()
    match error:
        case Problem():
            problem = error
        case InvalidParameter():
            problem = ParameterRefused(error.problem, error.remedy)
        case ClusterTimeout():
            message = "Retry: the results so far are cached for five minutes."
            problem = TooSlow("The query on the cluster took too long and was stopped.", message)
        case QueryTimeout():
            problem = TooSlow()
        case OutOfMemory():
            problem = TooMuchMemory()
        case FilesGone() | EngineLost() | Conflict():
            problem = Interrupted()
        case sqlite3.OperationalError() if (getattr(error, "sqlite_errorcode", 0) & 0xFF) == sqlite3.SQLITE_BUSY:
            problem = Interrupted()
    return problem
