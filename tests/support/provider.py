"""A complete third-party OpenID Connect provider, in its own process."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

PEOPLE = {
    "alice": {"org_id": "acme", "role": "editor"},
    "vera": {"org_id": "acme", "role": "viewer"},
    "bob": {"org_id": "other"},
    "eve": {},
}
"""The provider's users, each with the claims in its tokens."""


@contextmanager
def real_provider():
    """Run the provider; yield its issuer."""
    if importlib.util.find_spec("oidc_provider_mock") is None:
        pytest.skip("the package oidc-provider-mock is not installed")
    words = [word for sub, said in PEOPLE.items() for word in ("--user-claims", json.dumps({"sub": sub, **said}))]
    command = [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", "0", *words]
    environ = os.environ | {"NO_COLOR": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ) as process:
        told = ""
        while not (place := re.search(r"running on http://127\.0\.0\.1:(\d+)", told)):
            line = process.stderr.readline()
            assert line, f"the provider ended: {told}"
            told += line
        reader = threading.Thread(target=process.stderr.read)
        reader.start()
        try:
            yield f"http://localhost:{place[1]}"
        finally:
            process.terminate()
            reader.join()


def settings_of(issuer):
    """Return the settings for a server on which users sign in through this provider."""
    client = {"oidc_client_id": "dashboard", "oidc_client_secret": "s3cret"}
    return {"jwks": f"{issuer}/jwks", "jwt_issuer": issuer, "jwt_audience": "api", **client}
