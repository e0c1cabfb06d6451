"""The database of a manifest, for tests that read or damage it; only its room uses SQL on it otherwise."""


def database_of(manifest):
    """The database of an open manifest, with `rows` and `transaction`."""
    return manifest._database
