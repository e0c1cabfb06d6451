"""Settings: read from the environment, validated, and named in errors."""

from pathlib import Path

import pytest

from data import BadInput
from service.core.setting_values import parse_origin
from service.core.settings import SETTINGS, Settings, read_settings, setting
from tests.support.tables import examples

IDENTITY = {"TRAFFIC_JWT_ISSUER": "https://login.example/", "TRAFFIC_JWT_AUDIENCE": "traffic"}


def test_unset_variables_give_the_defaults():
    assert read_settings({}) == Settings()


def test_empty_variables_count_as_unset():
    assert read_settings({known.variable: " " for known in SETTINGS}) == Settings()


def test_important_settings_keep_their_defaults():
    found = Settings()
    assert (found.lake, found.port, found.pages, found.skip_assets) == (Path("data/lake"), 8000, True, False)
    assert (found.monitor_port, found.values, found.retention_days, found.geoip, found.smtp) == (None,) * 5
    assert (found.trusted_proxies, found.mail_to, found.jwt_writers) == ((), {}, ())


@examples("name", "text", "value")
def test_every_setting_can_be_set(name, text, value):
    found = getattr(read_settings(IDENTITY | {setting(name).variable: text, "TRAFFIC_UNKNOWN": "ignored"}), name)
    found = tuple(map(str, found)) if isinstance(found, tuple) else found
    assert (str(found) if isinstance(found, Path) else found) == value


def test_printed_settings_contain_no_secret():
    secrets = {"TRAFFIC_ENGINE": "sc://spark.example:15002/;token=s3cret", "TRAFFIC_OIDC_CLIENT_SECRET": "s3cret"}
    assert "s3cret" not in repr(read_settings(secrets))


@examples("variable", "value")
def test_the_error_for_an_invalid_value_names_its_variable(variable, value):
    with pytest.raises(BadInput, match=variable):
        read_settings({variable: value})


@pytest.mark.parametrize("missing", ["TRAFFIC_JWKS", *IDENTITY, "TRAFFIC_PUBLIC_URL"])
def test_incomplete_identity_provider_settings_are_rejected(missing):
    given = {"TRAFFIC_JWKS": "keys.json", **IDENTITY}
    client = {"TRAFFIC_OIDC_CLIENT_ID": "dashboard", "TRAFFIC_PUBLIC_URL": "https://traffic.example"}
    assert read_settings(given).jwks == "keys.json"
    assert read_settings(given | client).oidc_client_id == "dashboard"
    for settings in [given] * (missing in IDENTITY) + [given | client] * (missing != "TRAFFIC_JWT_AUDIENCE"):
        with pytest.raises(BadInput, match=missing):
            read_settings({**settings, missing: ""})


@pytest.mark.parametrize(
    ("given", "expected"),
    [("http://traffic.example:80", "http://traffic.example"), ("https://traffic.example:443", "https://traffic.example"),
     ("https://traffic.example:80", "https://traffic.example:80"), ("HTTPS://Traffic.Example", "https://traffic.example"),
     ("https://traffic.example:08443", "https://traffic.example:8443"), ("http://[0:0::1]:80", "http://[::1]"),
     ("https://[2001:DB8::1]:8443", "https://[2001:db8::1]:8443")],
)  # fmt: skip
def test_an_origin_is_normalized_as_in_browsers(given, expected):
    assert parse_origin(given) == expected


@pytest.mark.parametrize(
    "given", ["https://a.example:0", "https://a.example:65536", "https://[::g]", "https://bücher.example"]
)
def test_an_origin_that_browsers_never_send_is_rejected(given):
    with pytest.raises(BadInput, match=r"port|origin"):
        parse_origin(given)
