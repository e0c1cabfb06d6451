"""Settings: read from the environment, checked, and complained about by name."""

import ipaddress
from pathlib import Path

import pytest

from data import SHORT_CODE_PATTERN, BadInput
from service.settings import SETTINGS, Settings, read_settings
from tests.support.tables import examples

IDENTITY = {"TRAFFIC_JWT_ISSUER": "https://login.example/", "TRAFFIC_JWT_AUDIENCE": "traffic"}


def test_without_any_variable_or_with_empty_ones_there_are_defaults():
    assert (
        read_settings({})
        == read_settings({known.variable: " " for known in SETTINGS})
        == Settings()
        == Settings(
            lake=Path("data/lake"),
            host="127.0.0.1",
            port=8000,
            monitor_port=None,
            cors_origins=(),
            base_path="",
            pages=True,
            public_url="",
            trusted_proxies=(),
            hook_networks=(),
            values=None,
            memory="300MB",
            engine="",
            engine_from=50_000_000,
            engine_timeout=120,
            engine_lake="",
            publish="",
            retention_days=None,
            short_code_pattern=SHORT_CODE_PATTERN,
            skip_assets=False,
            geoip=None,
            jwks="",
            jwt_issuer="",
            jwt_audience="",
            jwt_algorithms=("RS256", "ES256", "EdDSA"),
            jwt_lifetime=24,
            jwt_organization_claim="org_id",
            jwt_role_claim="role",
            jwt_organization="",
            oidc_client_id="",
            oidc_client_secret="",
            oidc_scopes="openid profile",
            session_hours=8,
            smtp=None,
            mail_to={},
            mail_from="",
        )
    )


def test_every_setting_can_be_set():
    found = read_settings(
        {
            "TRAFFIC_LAKE": " /srv/lake ",
            "TRAFFIC_HOST": "::",
            "TRAFFIC_PORT": "0",
            "TRAFFIC_TRUSTED_PROXIES": "10.0.0.0/8, ::1 ,192.0.2.7,",
            "TRAFFIC_HOOK_NETWORKS": "192.168.7.0/24,fd00::/8",
            "TRAFFIC_VALUES": "values.toml",
            "TRAFFIC_ENGINE": "sc://spark.example:15002/;token=s3cret",
            "TRAFFIC_ENGINE_FROM": "0",
            "TRAFFIC_ENGINE_TIMEOUT": "600",
            "TRAFFIC_ENGINE_LAKE": "/mnt/lake",
            "TRAFFIC_RETENTION_DAYS": " 90 ",
            "TRAFFIC_SKIP_ASSETS": "1",
            "TRAFFIC_GEOIP": "countries.mmdb",
            "TRAFFIC_JWKS": "https://login.example/keys",
            "TRAFFIC_JWT_ALGORITHMS": "EdDSA, RS256,,EdDSA",
            "TRAFFIC_JWT_LIFETIME": "1",
            "TRAFFIC_JWT_ORGANIZATION_CLAIM": "tenant",
            "TRAFFIC_JWT_ROLE_CLAIM": "permission",
            "TRAFFIC_JWT_ORGANIZATION": "house",
            "TRAFFIC_PUBLIC_URL": "https://traffic.example/",
            "TRAFFIC_OIDC_CLIENT_ID": "dashboard",
            "TRAFFIC_OIDC_CLIENT_SECRET": "s3cret",
            "TRAFFIC_OIDC_SCOPES": "email  openid",
            "TRAFFIC_SESSION_HOURS": "1",
            "TRAFFIC_UNKNOWN": "ignored",
            **IDENTITY,
        }
    )
    assert (found.lake, found.values, found.host, found.port) == (Path("/srv/lake"), Path("values.toml"), "::", 0)
    assert found.trusted_proxies == tuple(map(ipaddress.ip_network, ("10.0.0.0/8", "::1/128", "192.0.2.7/32")))
    assert found.hook_networks == tuple(map(ipaddress.ip_network, ("192.168.7.0/24", "fd00::/8")))
    assert (found.jwt_issuer, found.jwt_audience) == tuple(IDENTITY.values())
    assert (found.jwt_algorithms, found.jwt_lifetime) == (("EdDSA", "RS256"), 1)
    assert (found.jwt_organization_claim, found.jwt_role_claim) == ("tenant", "permission")
    assert (found.jwt_organization, found.retention_days, found.skip_assets) == ("house", 90, True)
    assert (found.public_url, found.oidc_client_id) == ("https://traffic.example", "dashboard")
    assert (found.oidc_client_secret, found.oidc_scopes, found.session_hours) == ("s3cret", "email openid", 1)
    assert (found.engine_from, found.engine_timeout, found.engine_lake) == (0, 600, "/mnt/lake")
    assert found.engine == "sc://spark.example:15002/;token=s3cret"
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    ("written", "path"),
    [("/", ""), ("v1", "/v1"), ("/v1", "/v1"), ("/v1/", "/v1"), ("/a/b-c_d.e/", "/a/b-c_d.e"), ("///", "")],
)
def test_a_base_path_begins_with_a_slash_and_ends_without(written, path):
    assert read_settings({"TRAFFIC_BASE_PATH": written}).base_path == path


@examples("variable", "value")
def test_a_bad_value_is_refused_by_the_name_of_its_variable(variable, value):
    with pytest.raises(BadInput, match=variable):
        read_settings({variable: value})


@pytest.mark.parametrize("missing", ["TRAFFIC_JWKS", *IDENTITY, "TRAFFIC_PUBLIC_URL"])
def test_an_identity_provider_and_signing_in_there_need_issuer_audience_keys_and_a_public_url(missing):
    given = {"TRAFFIC_JWKS": "keys.json", **IDENTITY}
    client = {"TRAFFIC_OIDC_CLIENT_ID": "dashboard", "TRAFFIC_PUBLIC_URL": "https://traffic.example"}
    assert read_settings(given).jwks == "keys.json"
    assert read_settings(given | client).oidc_client_id == "dashboard"
    for settings in [given] * (missing in IDENTITY) + [given | client] * (missing != "TRAFFIC_JWT_AUDIENCE"):
        with pytest.raises(BadInput, match=missing):
            read_settings({**settings, missing: ""})
