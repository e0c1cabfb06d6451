"""Schemathesis sends valid and invalid requests: no response is a 5xx or differs from the declared schemas."""

import gc
import itertools
from datetime import UTC, datetime

import pytest
from hypothesis import given

from service.app import openapi
from service.jobs.store import Jobs
from tests.faults.trials import tried
from tests.service.jobs.findings import broken
from tests.support import identity
from tests.support.control import open_store
from tests.support.visits import land, visit

DOCUMENT = openapi.document("")
LABELS = [f"{method.upper()} {path}" for path, methods in DOCUMENT["paths"].items() for method in methods]
SOURCES = itertools.count()


@pytest.fixture(scope="module")
def schemathesis():
    """Schemathesis with its checks. It is slow to import, so only the process that runs the tests imports it.

    Some of its modules are imported on first use, and pytest rewrites them then. In Python 3.11, a garbage collection
    at that moment can raise an error (CPython issue 106905), so the garbage collector is disabled.
    """
    gc.disable()
    try:
        import schemathesis  # noqa: PLC0415
        import schemathesis.specs.openapi.checks  # noqa: PLC0415

        yield schemathesis
    finally:
        gc.enable()


@pytest.fixture(scope="module")
def operations(schemathesis):
    """Return the operations of the document by label."""
    results = schemathesis.openapi.from_dict(DOCUMENT).get_all_operations()
    operations = {found.label: found for result in results for found in [result.ok()]}
    assert sorted(operations) == sorted(LABELS)
    return operations


@pytest.fixture(scope="module")
def checks(schemathesis):
    """The checks for every response."""
    checks = schemathesis.specs.openapi.checks
    of_an_answer = [checks.status_code_conformance, checks.content_type_conformance, checks.response_schema_conformance]
    return [schemathesis.checks.not_a_server_error, *of_an_answer]


@pytest.fixture(scope="module")
def asked(shared_lake, tmp_path_factory, serving):
    """Send a case to a real server as a user of acme with an identity token, each time from another source."""
    land(shared_lake, "acme", [visit(), visit(bot_category="ai_assistant", ai_source="ChatGPT")])
    with open_store(Jobs, shared_lake) as jobs:
        jobs.upsert(broken(), datetime.now(UTC))
        (job,) = jobs.of("acme")
    changes = identity.settings_of(tmp_path_factory.mktemp("identity")) | {"trusted_proxies": "127.0.0.1"}
    with serving(shared_lake, **changes) as server:

        def asked(case):
            number = next(SOURCES)
            if case.path.startswith("/jobs/{id}") and number % 4:  # usually an existing job
                case.path_parameters["id"] = job.id
            source = f"198.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
            headers = {"Authorization": f"Bearer {identity.token()}", "X-Forwarded-For": source}
            return case.call(base_url=server.address, headers=headers)

        yield asked


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("label", LABELS)
def test_every_response_is_declared_and_none_is_a_5xx(asked, operations, checks, label, mode):
    from schemathesis import GenerationMode  # noqa: PLC0415

    operation = operations[label]
    if mode == "negative" and not (operation.query or operation.body or operation.path_parameters):
        pytest.skip("nothing in the request can be invalid")

    @tried(2)
    @given(operation.as_strategy(generation_mode=GenerationMode(mode)))
    def ask(case):
        case.validate_response(asked(case), checks=checks)

    ask()
