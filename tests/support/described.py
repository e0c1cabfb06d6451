"""The OpenAPI document, made and compressed once in a process for each base path."""

import functools

import orjson
import pytest

from service.app import application, openapi


def describe_once(patch: pytest.MonkeyPatch) -> None:
    """Let all applications of this process, and of those that are forked from it, share one document."""
    patch.setattr(openapi, "document", functools.cache(openapi.document))
    patch.setattr(application, "Document", functools.cache(application.Document))
    application.Document(orjson.dumps(openapi.document("")))
