"""The OpenAPI document, made and compressed once in a process for each base path."""

import functools

import orjson
import pytest

import service.app
from service.http import openapi


def describe_once(patch: pytest.MonkeyPatch) -> None:
    """Let all applications of this process, and of those that are forked from it, share one document."""
    patch.setattr(openapi, "document", functools.cache(openapi.document))
    patch.setattr(service.app, "document_handler", functools.cache(service.app.document_handler))
    service.app.document_handler(orjson.dumps(openapi.document("")))
