"""An identity provider for tests: a file with its keys, and tokens signed with them."""

from tests.support import tokens


def settings_of(folder):
    """Return the settings of a server that trusts this provider."""
    file = folder / "jwks.json"
    file.write_text(tokens.KEYS)
    return {"jwks": file, **tokens.IDENTITY}


def token(organization="acme", role="editor", sub="somebody"):
    """Return a valid token."""
    return tokens.token_of("ec", org_id=organization, role=role or tokens.ABSENT, sub=sub)


def bearer(text):
    """Return the headers of a request with a token or a key."""
    return {"Authorization": f"Bearer {text}"}


def as_(organization="acme", role="editor", sub="somebody"):
    """Return the headers of a request with a valid token."""
    return bearer(token(organization, role, sub))
