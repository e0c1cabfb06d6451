"""The address that signs a browser in."""

from service.settings import Settings

_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # not bound to, but replaced


def enter_url(settings: Settings, code: str) -> str:
    """The sign-in link with a code, under the address at which browsers reach the server."""
    host = _ANY_ADDRESS.get(settings.host, settings.host)
    name = f"[{host}]" if ":" in host else host
    origin = settings.public_url or f"http://{name}:{settings.port}"
    return f"{origin}{settings.base_path}/app/enter?code={code}"
